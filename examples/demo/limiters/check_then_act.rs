//! The counter that everybody writes first: read it, compare, and count the request up once it is served. Between the
//! read and the write others have read the same number, and all of them are let in.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use redis::aio::MultiplexedConnection;

use crate::Fallible;
use crate::answer::{Budget, refusal, whole_seconds};
use crate::caller::Caller;
use crate::limiters::WINDOW;
use crate::redis_server;

#[derive(Clone)]
struct Counter {
    limit: u64,
    redis: MultiplexedConnection,
}

/// Puts the limit before an app.
pub async fn layer(app: Router, limit: u64, redis: SocketAddr) -> Fallible<Router> {
    let counter = Counter { limit, redis: redis_server::connect(redis).await? };
    Ok(app.layer(from_fn_with_state(counter, check_then_act)))
}

async fn check_then_act(
    State(mut counter): State<Counter>,
    Caller(user): Caller,
    request: Request,
    next: Next,
) -> Response {
    let answer = counter.limited(&user, request, next).await;
    answer.unwrap_or_else(|problem| (StatusCode::INTERNAL_SERVER_ERROR, format!("{problem}\n")).into_response())
}

impl Counter {
    async fn limited(&mut self, user: &str, request: Request, next: Next) -> Fallible<Response> {
        let key = format!("rl:{{{user}}}:check-then-act");
        let (count, left) = self.check(&key).await?;
        let mut response = if count < self.limit {
            let response = next.run(request).await;
            self.act(&key).await?;
            response
        } else {
            refusal(StatusCode::TOO_MANY_REQUESTS, Some(left))
        };
        let remaining = self.limit.saturating_sub(count + 1);
        Budget { limit: self.limit, remaining, reset: whole_seconds(left) }.write(response.headers_mut());
        Ok(response)
    }

    /// How many were counted in this window, and how long it still lasts.
    async fn check(&mut self, key: &str) -> Fallible<(u64, Duration)> {
        let (count, left): (Option<u64>, i64) = redis::pipe().get(key).pttl(key).query_async(&mut self.redis).await?;
        // Negative: there is no counter yet, so the window opens with this request.
        let left = u64::try_from(left).map_or(WINDOW, Duration::from_millis);
        Ok((count.unwrap_or(0), left))
    }

    async fn act(&mut self, key: &str) -> Fallible<()> {
        let mut count_up = redis::pipe();
        count_up.incr(key, 1).ignore();
        count_up.cmd("EXPIRE").arg(key).arg(WINDOW.as_secs()).arg("NX").ignore();
        Ok(count_up.query_async(&mut self.redis).await?)
    }
}
