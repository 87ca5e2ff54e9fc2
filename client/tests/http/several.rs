//! Several limits on one layer.

use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, Policy, Rate, SECOND};

use crate::support::{ask, get, limiter, settle, used};

fn layer(limiter: &Limiter, policies: &[&Policy]) -> RateLimitLayer {
    let layer = RateLimitLayer::new(limiter.clone());
    policies.iter().fold(layer, |layer, policy| layer.limit((*policy).clone(), KeyBy::constant("all")))
}

#[tokio::test(start_paused = true)]
async fn what_the_others_took_is_given_back() {
    let limiter = limiter();
    let one = Policy::fixed_window("one", 1, HOUR).unwrap();
    let others = [
        Policy::fixed_window("fixed", 5, HOUR).unwrap(),
        Policy::sliding_window("sliding", 5, HOUR).unwrap(),
        Policy::sliding_log("log", 5, HOUR).unwrap(),
        Policy::token_bucket("bucket", 5, Rate::per(1, HOUR)).unwrap(),
    ];
    let all: Vec<_> = others.iter().chain([&one]).collect();
    let layer = layer(&limiter, &all);
    assert!(ask(&layer, get()).await.is_served());
    for _ in 0..3 {
        assert_eq!(ask(&layer, get()).await.status, 429);
        settle().await;
        for policy in &all {
            assert_eq!(used(&limiter, policy, "all").await, 1, "{}", policy.name());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leaky_bucket_takes_nothing_back() {
    let limiter = limiter();
    let one = Policy::fixed_window("one", 0, HOUR).unwrap();
    let queue = Policy::leaky_bucket("queue", 5, Rate::per(1, HOUR)).unwrap();
    assert_eq!(ask(&layer(&limiter, &[&one, &queue]), get()).await.status, 429);
    settle().await;
    assert_eq!(used(&limiter, &queue, "all").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_shadow_counts_but_neither_refuses_nor_has_others_given_back() {
    let limiter = limiter();
    let shadow = Policy::fixed_window("shadow", 2, HOUR).unwrap().shadow();
    let real = Policy::fixed_window("real", 3, HOUR).unwrap();
    let layer = layer(&limiter, &[&shadow, &real]);
    for calls in 1..=3 {
        assert!(ask(&layer, get()).await.is_served());
        settle().await;
        assert_eq!(used(&limiter, &shadow, "all").await, calls.min(2));
        assert_eq!(used(&limiter, &real, "all").await, calls);
    }
    // Refused by the real one. The shadow denies too and took nothing, so nothing of it comes back.
    assert_eq!(ask(&layer, get()).await.status, 429);
    settle().await;
    assert_eq!(used(&limiter, &shadow, "all").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_shadow_counts_what_passes_the_others() {
    let limiter = limiter();
    let shadow = Policy::fixed_window("shadow", 10, HOUR).unwrap().shadow();
    let real = Policy::fixed_window("real", 1, HOUR).unwrap();
    let layer = layer(&limiter, &[&shadow, &real]);
    assert!(ask(&layer, get()).await.is_served());
    assert_eq!(ask(&layer, get()).await.status, 429);
    settle().await;
    assert_eq!(used(&limiter, &shadow, "all").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_shadow_neither_delays_nor_needs_an_identity() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 100, Rate::per_second(1)).unwrap().shadow();
    let layer = layer(&limiter, &[&queue]).limit(queue.clone(), KeyBy::header("x-api-key"));
    let begun = tokio::time::Instant::now();
    for _ in 0..10 {
        assert!(ask(&layer, get()).await.is_served());
    }
    assert!(begun.elapsed() < SECOND);
}
