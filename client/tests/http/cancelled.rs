//! Whoever goes away in the middle of it.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Policy};
use tokio::runtime::Builder;

use crate::support::{ask, get, limiter};

#[test]
fn a_runtime_that_shuts_down_makes_limits_unavailable() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let _inside = handle.enter();
    let api = Policy::fixed_window("api", 10, HOUR).unwrap();
    let layer = RateLimitLayer::new(limiter()).limit(api.clone(), KeyBy::constant("all"));
    let of_a_shadow = RateLimitLayer::new(limiter()).limit(api.shadow(), KeyBy::constant("all"));
    runtime.shutdown_background();
    for (layer, status) in [(layer, 503), (of_a_shadow, 200)] {
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(answer) = pin!(ask(&layer, get())).poll(&mut context) else { panic!("it waits for a task") };
        assert_eq!(answer.status, status, "{answer:?}");
    }
}
