//! Counting with redis-rl, through its client: one call checks and takes in one step.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use redis_rl_client::{Limiter, Outage, Policy};

use crate::Fallible;
use crate::answer::{Budget, X_RATELIMIT_TURN, refusal, whole_seconds};
use crate::caller::Caller;
use crate::fleet::SERVERS;
use crate::redis_server::ANSWERS_WITHIN;

/// A limiter that has reached Redis. `outage` decides when Redis is away.
///
/// A server in earnest would set a deadline of some 20 ms. Here a slow machine must not pass for an outage, or nothing is
/// exact; and where Redis is killed nobody waits, for connections are refused at once. And the number of servers is told: those
/// of the run before count as there for two seconds more.
pub async fn connect(redis: SocketAddr, outage: Outage) -> Fallible<Limiter> {
    let builder = Limiter::builder(format!("redis://{redis}"))
        .deadline(ANSWERS_WITHIN)
        .connect_timeout(ANSWERS_WITHIN)
        .on_outage(outage)
        .nodes(SERVERS.len() as u32)
        .without_fleet();
    Ok(builder.connect().await?)
}

#[derive(Clone)]
struct Limit {
    limiter: Limiter,
    policy: Policy,
}

/// Puts the limit before an app.
pub fn layer(app: Router, limiter: Limiter, policy: Policy) -> Router {
    app.layer(from_fn_with_state(Limit { limiter, policy }, check))
}

async fn check(State(limit): State<Limit>, Caller(user): Caller, request: Request, next: Next) -> Response {
    let decision = limit.limiter.check(&limit.policy, user).await;
    let mut response = if decision.allowed {
        next.run(request).await
    } else if decision.is_unavailable() {
        refusal(StatusCode::SERVICE_UNAVAILABLE, decision.retry_after)
    } else {
        refusal(StatusCode::TOO_MANY_REQUESTS, decision.retry_after)
    };

    let headers = response.headers_mut();
    // Without Redis a server does not know what is left, and tells no numbers.
    if let (Some(remaining), Some(reset)) = (decision.remaining, decision.reset_after) {
        Budget { limit: decision.limit, remaining, reset: whole_seconds(reset) }.write(headers);
    }
    if !decision.delay.is_zero() {
        headers.insert(X_RATELIMIT_TURN, whole_seconds(decision.delay).into());
    }
    response
}
