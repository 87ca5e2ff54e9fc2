//! Several limits on one layer.

use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{DAY, HOUR, Limiter, Outage, Policy, Rate, SECOND};

use crate::support::{ask, get, get_with, limiter, settle, unreachable, used};

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

#[tokio::test]
async fn what_the_others_took_of_this_servers_part_is_given_back() {
    let limiter = unreachable(Outage::LocalShare);
    let per_key = Policy::fixed_window("key", 3, DAY).unwrap();
    for site in [
        Policy::fixed_window("fixed", 10, DAY).unwrap(),
        Policy::sliding_window("sliding", 10, DAY).unwrap(),
        Policy::sliding_log("log", 10, DAY).unwrap(),
        Policy::token_bucket("bucket", 10, Rate::per(1, DAY)).unwrap(),
    ] {
        let by_key = KeyBy::header(format!("x-{}", site.name()));
        let layer = layer(&limiter, &[&site]).limit(per_key.clone(), by_key);
        let header = format!("x-{}", site.name());
        let served_of = async |key: &str| {
            let mut served = 0;
            for _ in 0..100 {
                served += u32::from(ask(&layer, get_with(&[(&header, key)])).await.is_served());
            }
            served
        };
        assert_eq!(served_of("abuser").await, 3, "{header}");
        assert_eq!(served_of("bob").await, 3, "{header}: the abuser used up the site's part");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leaky_bucket_is_asked_when_all_others_have_allowed() {
    let limiter = limiter();
    let one = Policy::fixed_window("one", 1, HOUR).unwrap();
    let queue = Policy::leaky_bucket("queue", 5, Rate::per(1, HOUR)).unwrap();
    let layer = layer(&limiter, &[&queue, &one]).max_delay(DAY);
    assert!(ask(&layer, get()).await.is_served());
    for _ in 0..10 {
        assert_eq!(ask(&layer, get()).await.status, 429);
    }
    settle().await;
    assert_eq!(used(&limiter, &queue, "all").await, 1, "who was refused took a place, which can't be given back");
}

#[tokio::test(start_paused = true)]
async fn what_a_leaky_bucket_refuses_is_given_back_elsewhere() {
    let limiter = limiter();
    let quota = Policy::fixed_window("quota", 10, HOUR).unwrap();
    let queue = Policy::leaky_bucket("queue", 1, Rate::per(1, HOUR)).unwrap();
    let layer = layer(&limiter, &[&queue, &quota]);
    assert!(ask(&layer, get()).await.is_served());
    for _ in 0..20 {
        let refused = ask(&layer, get()).await;
        assert_eq!((refused.status, refused.header("x-ratelimit-limit")), (429, Some("1")));
        settle().await;
    }
    assert_eq!(used(&limiter, &quota, "all").await, 1);
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
