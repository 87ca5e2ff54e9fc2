//! The layer of HTTP servers, by what it asks a real Redis.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, StatusCode};
use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, MINUTE, Policy, Rate};
use tower::{Layer as _, ServiceExt as _, service_fn};

use tokio::time::{sleep, timeout};

use crate::answers::{limiter_of, policies};
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
    let per_user = Policy::token_bucket("user", 5, Rate::per(1, HOUR)).unwrap();
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

/// A user's request that is given up while the server is stopped, which then goes on.
async fn given_up(layer: &RateLimitLayer, user: &str, server: &mut Server) {
    server.stop();
    timeout(Duration::from_millis(50), status(layer, user)).await.expect_err("the server is stopped");
    server.cont();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_goes_away_before_the_reply_costs_the_others_nothing() {
    let mut server = Server::new();
    let limiter = limiter_of(&server);
    let per_user = Policy::fixed_window("user", 2, HOUR).unwrap();
    let site = Policy::fixed_window("site", 10, HOUR).unwrap();
    let layer = layer(&limiter, &per_user, &site);
    assert_eq!(status(&layer, "alice").await, StatusCode::OK);
    assert_eq!(status(&layer, "alice").await, StatusCode::OK);
    given_up(&layer, "alice", &mut server).await;
    wait_until("the site's unit is given back", || calls(&server, "rl.refund") == 1);
    assert_eq!(limiter.peek(&site, "all").await.unwrap().remaining, Some(8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_denial_of_who_goes_away_before_the_reply_is_remembered() {
    let mut server = Server::new();
    let limiter = limiter_of(&server);
    let per_user = Policy::fixed_window("user", 1, HOUR).unwrap();
    let layer = RateLimitLayer::new(limiter).limit(per_user, KeyBy::header("x-user"));
    // Once more where it takes longer than a denial is remembered.
    let mut users = (0..20).map(|number| format!("user-{number}"));
    let is_remembered = loop {
        let user = users.next().expect("a second in which a denial is remembered");
        assert_eq!(status(&layer, &user).await, StatusCode::OK);
        let asked = calls(&server, "rl.fixed");
        let begun = Instant::now();
        given_up(&layer, &user, &mut server).await;
        wait_until("it is denied", || calls(&server, "rl.fixed") == asked + 1);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(status(&layer, &user).await, StatusCode::TOO_MANY_REQUESTS);
        let is_remembered = calls(&server, "rl.fixed") == asked + 1;
        if begun.elapsed() < Duration::from_secs(1) {
            break is_remembered;
        }
    };
    assert!(is_remembered, "it was asked again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_algorithm_but_a_queue_gives_back_and_a_queue_is_not_asked() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let nothing = Policy::fixed_window("nothing", 0, HOUR).unwrap();
    for policy in policies() {
        let name = policy.name();
        let subject = format!("all of {name}");
        let layer = RateLimitLayer::new(limiter.clone())
            .limit(policy.clone(), KeyBy::constant(subject.clone()))
            .limit(nothing.clone(), KeyBy::header("x-user"));
        let refunds = calls(&server, "rl.refund");
        assert_eq!(status(&layer, name).await, StatusCode::TOO_MANY_REQUESTS);
        if name == "leaky" {
            assert_eq!(calls(&server, "rl.leaky"), 0);
        } else {
            wait_until("it is given back", || calls(&server, "rl.refund") == refunds + 1);
            assert_eq!(limiter.peek(&policy, &subject).await.unwrap().remaining, Some(3), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn redis_refuses_who_would_wait_too_long_and_keeps_no_place() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let queue = Policy::leaky_bucket("queue", 10, Rate::per(1, MINUTE)).unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).limit(queue.clone(), KeyBy::header("x-user"));
    assert_eq!(status(&layer, "alice").await, StatusCode::OK);
    for _ in 0..50 {
        assert_eq!(status(&layer, "alice").await, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(limiter.peek(&queue, "header:x-user:alice").await.unwrap().remaining, Some(9));
    // One more a second, on a machine where this takes longer than that.
    assert!(calls(&server, "rl.leaky") <= 1 + 5, "{} calls", calls(&server, "rl.leaky"));
}
