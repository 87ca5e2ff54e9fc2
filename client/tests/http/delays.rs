//! Turns in a leaky bucket.

use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Policy, Rate, SECOND};
use tokio::time::{Instant, timeout};

use crate::support::{ask, get, limiter, settle, used};

#[tokio::test(start_paused = true)]
async fn a_turn_is_waited_for_up_to_the_longest_delay() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(2)).unwrap();
    let quota = Policy::fixed_window("quota", 100, HOUR).unwrap();
    let layer = RateLimitLayer::new(limiter.clone())
        .limit(queue.clone(), KeyBy::constant("all"))
        .limit(quota.clone(), KeyBy::constant("all"));
    // Turns at 0, 0.5, 1 and 1.5 s. The last comes later than the second that is the longest by default.
    let tries = std::iter::repeat_with(|| {
        let layer = layer.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            let answer = ask(&layer, get()).await;
            (answer.status, begun.elapsed().as_millis(), answer.header("retry-after").map(str::to_owned))
        })
    });
    let mut seen = Vec::new();
    for attempt in tries.take(4).collect::<Vec<_>>() {
        let (status, millis, retry_after) = attempt.await.unwrap();
        // Timers wake by whole milliseconds.
        seen.push((status, millis / 100, retry_after));
    }
    assert_eq!(seen, [(200, 0, None), (200, 5, None), (200, 10, None), (429, 0, Some("2".to_owned()))]);
    settle().await;
    assert_eq!(used(&limiter, &quota, "all").await, 3, "what it took elsewhere is given back");
}

#[tokio::test(start_paused = true)]
async fn the_longest_delay_is_a_setting_and_a_place_stays_taken() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(1)).unwrap();
    let patient = RateLimitLayer::new(limiter.clone()).limit(queue.clone(), KeyBy::constant("all")).max_delay(HOUR);
    let hasty = patient.clone().max_delay(SECOND / 2);
    assert!(ask(&hasty, get()).await.is_served());
    let refused = ask(&hasty, get()).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"), "nothing that this server would wait for");
    assert_eq!(used(&limiter, &queue, "all").await, 2);
    let begun = Instant::now();
    assert!(ask(&patient, get()).await.is_served());
    assert_eq!(begun.elapsed().as_secs(), 2, "behind both");
}

#[tokio::test(start_paused = true)]
async fn the_longest_of_several_delays_counts() {
    let slow = Policy::leaky_bucket("slow", 10, Rate::per(1, 3 * SECOND)).unwrap();
    let fast = Policy::leaky_bucket("fast", 10, Rate::per_second(1)).unwrap();
    let layer = RateLimitLayer::new(limiter())
        .limit(fast.clone(), KeyBy::constant("all"))
        .limit(slow, KeyBy::constant("all"))
        .limit(fast, KeyBy::constant("others"))
        .max_delay(HOUR);
    ask(&layer, get()).await;
    let begun = Instant::now();
    assert!(ask(&layer, get()).await.is_served());
    assert_eq!(begun.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_has_used_what_it_took() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(1)).unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).limit(queue.clone(), KeyBy::constant("all")).max_delay(HOUR);
    ask(&layer, get()).await;
    drop(ask(&layer, get()));
    assert_eq!(used(&limiter, &queue, "all").await, 1, "nothing was asked yet");
    timeout(SECOND / 10, ask(&layer, get())).await.unwrap_err();
    settle().await;
    assert_eq!(used(&limiter, &queue, "all").await, 2);
}
