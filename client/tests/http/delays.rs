//! Turns in a leaky bucket.

use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{HOUR, Limiter, MINUTE, Policy, Rate, SECOND};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Answer, ask, get, limiter, settle, used};

fn layer(limiter: &Limiter, queue: &Policy) -> RateLimitLayer {
    RateLimitLayer::new(limiter.clone()).limit(queue.clone(), KeyBy::constant("all"))
}

/// The answer, and in how many tenths of a second it came: timers wake by whole milliseconds.
fn start(layer: &RateLimitLayer) -> JoinHandle<(Answer, u128)> {
    let layer = layer.clone();
    tokio::spawn(async move {
        let begun = Instant::now();
        let answer = ask(&layer, get()).await;
        (answer, begun.elapsed().as_millis() / 100)
    })
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_waited_for_up_to_the_longest_delay() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(2)).unwrap();
    let quota = Policy::fixed_window("quota", 100, HOUR).unwrap();
    let layer = layer(&limiter, &queue).limit(quota.clone(), KeyBy::constant("all"));
    // Turns at 0, 0.5, 1 and 1.5 s. The last comes later than the second that is the longest by default.
    let mut seen = Vec::new();
    for attempt in [(); 4].map(|()| start(&layer)) {
        let (answer, tenths) = attempt.await.unwrap();
        seen.push((answer.status, tenths, answer.header("retry-after").map(str::to_owned)));
    }
    assert_eq!(seen, [(200, 0, None), (200, 5, None), (200, 10, None), (429, 0, Some("1".to_owned()))]);
    settle().await;
    assert_eq!(used(&limiter, &quota, "all").await, 3, "what it took elsewhere is given back");
}

#[tokio::test(start_paused = true)]
async fn who_would_wait_too_long_takes_no_place() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(1)).unwrap();
    let patient = layer(&limiter, &queue).max_delay(HOUR);
    let hasty = patient.clone().max_delay(SECOND / 2);
    assert!(ask(&hasty, get()).await.is_served());
    for _ in 0..5 {
        let refused = ask(&hasty, get()).await;
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.header("x-ratelimit-limit"), Some("1"), "more places than one are too many to wait for");
        assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    }
    assert_eq!(used(&limiter, &queue, "all").await, 1);
    let (answer, tenths) = start(&patient).await.unwrap();
    assert!(answer.is_served());
    assert_eq!(tenths, 10, "behind the one who was served");
    assert_eq!(answer.header("x-ratelimit-limit"), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_when_told_is_served() {
    let queue = Policy::leaky_bucket("queue", 5, Rate::per(1, 2 * SECOND)).unwrap();
    let layer = layer(&limiter(), &queue);
    let mut served = 0;
    for _ in 0..20 {
        let answer = ask(&layer, get()).await;
        served += u32::from(answer.is_served());
        let wait = answer.header("retry-after").map_or(0, |seconds| seconds.parse().unwrap());
        sleep(wait * SECOND).await;
    }
    // Served at once, then each time refused, told 2 s, and served.
    assert_eq!(served, 10);
}

#[tokio::test(start_paused = true)]
async fn more_than_the_rate_is_served_at_the_rate() {
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(2)).unwrap();
    let layer = layer(&limiter(), &queue);
    let mut attempts = Vec::new();
    // A quarter more than the rate, for a minute.
    for _ in 0..150 {
        attempts.push(start(&layer));
        sleep(SECOND * 2 / 5).await;
    }
    let mut served = 0;
    for attempt in attempts {
        let (answer, tenths) = attempt.await.unwrap();
        served += u64::from(answer.is_served());
        assert!(tenths <= 10, "a delay of {tenths} tenths");
    }
    assert!((2 * MINUTE.as_secs()..=2 * MINUTE.as_secs() + 3).contains(&served), "{served} in a minute at 2 a second");
}

#[tokio::test(start_paused = true)]
async fn the_longest_of_several_delays_counts() {
    let slow = Policy::leaky_bucket("slow", 10, Rate::per(1, 3 * SECOND)).unwrap();
    let fast = Policy::leaky_bucket("fast", 10, Rate::per_second(1)).unwrap();
    let layer = layer(&limiter(), &fast)
        .limit(slow, KeyBy::constant("all"))
        .limit(fast, KeyBy::constant("others"))
        .max_delay(HOUR);
    ask(&layer, get()).await;
    let (answer, tenths) = start(&layer).await.unwrap();
    assert!(answer.is_served());
    assert_eq!(tenths, 30);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_has_used_what_it_took() {
    let limiter = limiter();
    let queue = Policy::leaky_bucket("queue", 10, Rate::per_second(1)).unwrap();
    let layer = layer(&limiter, &queue).max_delay(HOUR);
    ask(&layer, get()).await;
    drop(ask(&layer, get()));
    assert_eq!(used(&limiter, &queue, "all").await, 1, "nothing was asked yet");
    timeout(SECOND / 10, ask(&layer, get())).await.unwrap_err();
    settle().await;
    assert_eq!(used(&limiter, &queue, "all").await, 2);
}
