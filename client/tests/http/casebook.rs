//! Cases of `tests/casebook/casebook.json` that are about headers.

use std::time::Duration;

use redis_rl_client::http::{Dialect, KeyBy, RateLimitLayer};
use redis_rl_client::{Limiter, MINUTE, Outage, Policy, SECOND};

use crate::support::{Answer, ask, get, limiter, unreachable, used};

fn layer(limiter: Limiter, policies: &[Policy], dialects: &[Dialect]) -> RateLimitLayer {
    let layer = RateLimitLayer::new(limiter).headers(dialects.iter().copied());
    policies.iter().fold(layer, |layer, policy| layer.limit(policy.clone(), KeyBy::constant("all")))
}

async fn last_of(layer: &RateLimitLayer, calls: u32) -> Answer {
    for _ in 1..calls {
        assert!(ask(layer, get()).await.is_served());
    }
    ask(layer, get()).await
}

#[tokio::test(start_paused = true)]
async fn rc_215_retry_after_is_in_seconds() {
    let policy = Policy::fixed_window("api", 5, MINUTE).unwrap();
    let layer = layer(limiter(), &[policy], &[Dialect::RateLimitDraft06]);
    assert!(last_of(&layer, 5).await.is_served());
    tokio::time::advance(2 * SECOND).await;
    let answer = ask(&layer, get()).await;
    assert_eq!(answer.header("retry-after"), Some("58"));
    assert_eq!(answer.header("ratelimit-reset"), Some("58"));
    assert_eq!(answer.header("ratelimit-remaining"), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn rc_219_resets_are_deltas_under_one_setting_and_epochs_under_the_other() {
    let policy = Policy::fixed_window("api", 60, MINUTE).unwrap();
    let limiter = limiter();
    let draft =
        layer(limiter.clone(), std::slice::from_ref(&policy), &[Dialect::RateLimitDraft06, Dialect::XRateLimitEpoch]);
    let answer = ask(&draft, get()).await;
    assert_eq!(answer.header("ratelimit-reset"), Some("60"));
    assert_eq!(answer.header("x-ratelimit-reset"), Some("1814400060"));
    tokio::time::advance(Duration::from_millis(59_001)).await;
    let answer = ask(&draft, get()).await;
    assert_eq!(answer.header("ratelimit-remaining"), Some("58"));
    assert_eq!(answer.header("ratelimit-reset"), Some("1"));
    let by_default = RateLimitLayer::new(limiter).limit(policy, KeyBy::constant("all"));
    assert_eq!(ask(&by_default, get()).await.header("x-ratelimit-reset"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn rc_220_an_epoch_is_in_seconds_and_stands_still() {
    let policy = Policy::fixed_window("api", 5, 30 * SECOND).unwrap();
    let layer = layer(limiter(), &[policy], &[Dialect::XRateLimitEpoch]);
    assert_eq!(ask(&layer, get()).await.header("x-ratelimit-reset"), Some("1814400030"));
    tokio::time::advance(10 * SECOND).await;
    assert_eq!(ask(&layer, get()).await.header("x-ratelimit-reset"), Some("1814400030"));
}

#[tokio::test(start_paused = true)]
async fn rc_221_of_several_limits_the_one_with_the_least_left_is_told() {
    let policies =
        [Policy::fixed_window("short", 10, SECOND).unwrap(), Policy::fixed_window("long", 15, 20 * SECOND).unwrap()];
    let layer = layer(limiter(), &policies, &[Dialect::RateLimitDraft06]);
    let answer = last_of(&layer, 9).await;
    assert_eq!(answer.header("ratelimit-remaining"), Some("1"));
    assert_eq!(answer.header("ratelimit-reset"), Some("1"));
    tokio::time::advance(SECOND).await;
    let answer = last_of(&layer, 6).await;
    assert_eq!(answer.header("ratelimit-remaining"), Some("0"));
    assert_eq!(answer.header("ratelimit-reset"), Some("19"));
}

#[tokio::test]
async fn rc_204_failing_open_shows_and_failing_closed_refuses() {
    let policy = Policy::fixed_window("api", 5, MINUTE).unwrap();
    let open =
        ask(&layer(unreachable(Outage::Open), std::slice::from_ref(&policy), &[Dialect::XRateLimit]), get()).await;
    assert!(open.is_served());
    assert_eq!(open.header("x-ratelimit-remaining"), None);
    let closed = ask(&layer(unreachable(Outage::Closed), &[policy], &[Dialect::XRateLimit]), get()).await;
    assert_eq!(closed.status, 503);
    assert!(closed.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(closed.header("x-ratelimit-remaining"), None);
}

#[tokio::test]
async fn rc_205_an_error_is_not_told_as_a_number() {
    let policy = Policy::fixed_window("api", 5, MINUTE).unwrap();
    let all = [Dialect::XRateLimit, Dialect::RateLimit, Dialect::RateLimitDraft06];
    let layer = layer(unreachable(Outage::Open), &[policy], &all);
    for _ in 0..5 {
        let answer = ask(&layer, get()).await;
        assert!(answer.is_served());
        assert_eq!(answer.headers, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn rc_153_a_missing_identity_is_not_the_empty_subject() {
    let (limiter, policy) = (limiter(), Policy::fixed_window("api", 1, MINUTE).unwrap());
    for key_by in [KeyBy::header("x-api-key"), KeyBy::peer_address(), KeyBy::with(|_| Some(""))] {
        let strict = RateLimitLayer::new(limiter.clone()).limit(policy.clone(), key_by.clone());
        let lax = RateLimitLayer::new(limiter.clone()).limit(policy.clone(), key_by.optional());
        for _ in 0..3 {
            assert_eq!(ask(&strict, get()).await.status, 400);
            assert!(ask(&lax, get()).await.is_served());
        }
    }
    for subject in ["", "header:x-api-key:", "ip:", "with:"] {
        assert_eq!(used(&limiter, &policy, subject).await, 0, "{subject:?}");
    }
}
