//! A service is called only when it is ready.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use redis_rl_client::http::{KeyBy, RateLimit, RateLimitLayer};
use redis_rl_client::{HOUR, Policy, Rate, SECOND};
use tokio::time::timeout;
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use crate::support::{Body, get, limiter};

fn layer(limit: u64) -> RateLimitLayer {
    RateLimitLayer::new(limiter()).limit(Policy::fixed_window("api", limit, HOUR).unwrap(), KeyBy::constant("all"))
}

/// Panics when it is called without having been found ready; a clone has to be found ready anew.
#[derive(Default)]
struct Picky {
    ready: bool,
}

impl Clone for Picky {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<Body>> for Picky {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been found ready");
        ready(Ok(Response::new(Body::default())))
    }
}

#[tokio::test(start_paused = true)]
async fn the_one_that_was_found_ready_is_called() {
    let mut service = layer(3).layer(Picky::default());
    for status in [200, 200, 200, 429, 429] {
        let response = service.ready().await.unwrap().call(get()).await.unwrap();
        assert_eq!(response.status(), status);
    }
}

#[tokio::test(start_paused = true)]
#[should_panic = "called without having been found ready"]
async fn the_picky_service_is_picky() {
    let _ = Picky { ready: true }.clone().call(get()).await;
}

type Slow = RateLimit<
    ConcurrencyLimit<tower::util::BoxCloneService<Request<Body>, Response<Body>, Infallible>>,
    redis_rl_client::http::ProblemJson,
>;

/// Serves one request at a time, each for a second.
fn one_at_a_time(limit: u64) -> Slow {
    let serve = service_fn(|_| async {
        tokio::time::sleep(SECOND).await;
        Ok(Response::new(Body::default()))
    });
    layer(limit).layer(ConcurrencyLimit::new(serve.boxed_clone(), 1))
}

#[tokio::test(start_paused = true)]
async fn back_pressure_goes_through() {
    let mut service = one_at_a_time(100);
    let first = service.ready().await.unwrap().call(get());
    timeout(SECOND, service.ready()).await.map(|_| ()).expect_err("ready while the only place is taken");
    assert_eq!(first.await.unwrap().status(), 200);
    timeout(SECOND, service.ready()).await.expect("not ready with the place free again").unwrap();
}

#[tokio::test(start_paused = true)]
async fn places_come_back_from_requests_that_are_refused_or_given_up() {
    let mut service = one_at_a_time(1);
    drop(service.ready().await.unwrap().call(get()));
    let mut given_up = service.ready().await.unwrap().call(get());
    timeout(SECOND / 2, &mut given_up).await.map(|_| ()).unwrap_err();
    drop(given_up);
    for _ in 0..10 {
        let ready = timeout(SECOND, service.ready()).await.expect("a place is lost").unwrap();
        assert_eq!(ready.call(get()).await.unwrap().status(), 429, "what was given up counts");
    }
}

#[tokio::test(start_paused = true)]
async fn many_at_once_through_a_buffer() {
    let serve = service_fn(|_: Request<Body>| async {
        tokio::time::sleep(SECOND / 100).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    let service = layer(60).layer(Buffer::new(ConcurrencyLimit::new(serve, 2), 4));
    let calls: Vec<_> = (0..100).map(|_| tokio::spawn(service.clone().oneshot(get()))).collect();
    let mut served = 0;
    for call in calls {
        served += u32::from(call.await.unwrap().unwrap().status() == 200);
    }
    assert_eq!(served, 60);
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_service_go_through() {
    let serve = service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>("broken") });
    assert_eq!(layer(1).layer(serve).oneshot(get()).await.map(|_| ()), Err("broken"));
}

#[tokio::test(start_paused = true)]
async fn a_place_is_held_while_a_turn_is_waited_for() {
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(1)).unwrap();
    let layer = RateLimitLayer::new(limiter()).limit(queue, KeyBy::constant("all"));
    let mut service = layer.layer(ConcurrencyLimit::new(Picky::default(), 1));
    service.ready().await.unwrap().call(get()).await.unwrap();
    let delayed = service.ready().await.unwrap().call(get());
    timeout(SECOND / 2, service.ready()).await.map(|_| ()).unwrap_err();
    assert_eq!(delayed.await.unwrap().status(), 200);
}
