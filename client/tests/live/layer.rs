//! The layer of HTTP servers, by what it asks a real Redis.

use axum::body::Body;
use http::{Request, StatusCode};
use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, Policy};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::answers::limiter_of;
use crate::support::{Server, info, wait_until};

/// So many calls of a command the server has run.
fn calls(server: &Server, command: &str) -> u64 {
    let stats = info(&mut server.connect(), "commandstats", &format!("cmdstat_{command}"));
    let calls = stats.and_then(|stats| stats.strip_prefix("calls=")?.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

/// The status that a user's request gets of a server behind the layer.
async fn status(layer: &RateLimitLayer, user: &str) -> StatusCode {
    let service =
        layer.layer(service_fn(async |_: Request<Body>| Ok::<_, std::convert::Infallible>(Default::default())));
    let request = Request::get("/").header("x-user", user).body(Body::empty()).unwrap();
    let response: http::Response<Body> = service.oneshot(request).await.unwrap();
    response.status()
}

fn layer(limiter: &Limiter, per_user: &Policy, site: &Policy) -> RateLimitLayer {
    RateLimitLayer::new(limiter.clone())
        .limit(per_user.clone(), KeyBy::header("x-user"))
        .limit(site.clone(), KeyBy::constant("all"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_refused_request_took_elsewhere_is_given_back_and_going_on_costs_nothing() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let per_user = Policy::fixed_window("user", 2, HOUR).unwrap();
    let site = Policy::fixed_window("site", 10, HOUR).unwrap();
    let layer = layer(&limiter, &per_user, &site);

    assert_eq!(status(&layer, "alice").await, StatusCode::OK);
    assert_eq!(status(&layer, "alice").await, StatusCode::OK);
    assert_eq!(calls(&server, "rl.fixed"), 4, "each request is held against both limits");
    assert_eq!(status(&layer, "alice").await, StatusCode::TOO_MANY_REQUESTS);
    wait_until("the site's unit is given back", || calls(&server, "rl.refund") == 1);
    assert_eq!(limiter.peek(&site, "all").await.unwrap().remaining, Some(8));

    let asked = calls(&server, "rl.fixed");
    for _ in 0..50 {
        assert_eq!(status(&layer, "alice").await, StatusCode::TOO_MANY_REQUESTS);
    }
    // One more a second, on a machine where this takes longer than that.
    assert!(calls(&server, "rl.fixed") - asked <= 2 * 5, "{} calls", calls(&server, "rl.fixed") - asked);
    assert_eq!(status(&layer, "bob").await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_site_that_is_full_costs_its_users_nothing() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let per_user = Policy::token_bucket("user", 5, redis_rl_client::Rate::per(1, HOUR)).unwrap();
    let site = Policy::fixed_window("site", 1, HOUR).unwrap();
    let layer = layer(&limiter, &per_user, &site);
    assert_eq!(status(&layer, "alice").await, StatusCode::OK);
    for user in ["bob", "carol", "dave"] {
        assert_eq!(status(&layer, user).await, StatusCode::TOO_MANY_REQUESTS);
    }
    wait_until("what was taken is given back", || calls(&server, "rl.refund") >= 1);
    for user in ["bob", "carol", "dave"] {
        assert_eq!(
            limiter.peek(&per_user, format!("header:x-user:{user}")).await.unwrap().remaining,
            Some(5),
            "{user}"
        );
    }
    let alice = limiter.peek(&per_user, "header:x-user:alice").await.unwrap();
    assert_eq!(alice.remaining, Some(4), "the one who was served");
}
