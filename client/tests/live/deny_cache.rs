//! What denied callers cost Redis, and how soon they are let in again.

use std::time::Duration;

use redis_rl_client::{Limiter, MINUTE, Policy, Rate, Source};
use tokio::time::{Instant, sleep, sleep_until};

use crate::answers::limiter_of;
use crate::support::{Server, ask, calls};

/// No denial is believed for longer.
const LONGEST: Duration = Duration::from_secs(1);

/// One a minute.
fn policy() -> Policy {
    Policy::token_bucket("p", 1, Rate::per(1, MINUTE)).unwrap()
}

/// Takes the one unit, and is denied by Redis. Tells when.
async fn deny(limiter: &Limiter, subject: &str) -> Instant {
    assert!(limiter.check(&policy(), subject).await.allowed);
    let denied = limiter.check(&policy(), subject).await;
    assert_eq!((denied.allowed, denied.source), (false, Source::Redis));
    let at = Instant::now();
    assert_eq!(limiter.check(&policy(), subject).await.source, Source::DenyCache);
    at
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_caller_who_goes_on_costs_redis_a_call_a_second() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let redis = &mut server.connect();
    assert!(limiter.check(&policy(), "alice").await.allowed);
    let before = calls(redis, "rl.");
    let (began, mut checks) = (Instant::now(), 0);
    while began.elapsed() < 3 * LONGEST - Duration::from_millis(50) {
        let decision = limiter.check(&policy(), "alice").await;
        assert!(!decision.allowed && decision.retry_after > Some(50 * Duration::from_secs(1)), "{decision:?}");
        checks += 1;
        tokio::task::yield_now().await;
    }
    let asked = calls(redis, "rl.") - before;
    eprintln!("  {checks} checks cost {asked} calls in {:.2?}", began.elapsed());
    assert!((2..=4).contains(&asked), "{asked} calls in three seconds");
    // Another caller, another cost and another policy are asked for.
    assert_eq!(limiter.check(&policy(), "bob").await.source, Source::Redis);
    let other = Policy::token_bucket("q", 1, Rate::per(1, MINUTE)).unwrap();
    assert_eq!(limiter.check(&other, "alice").await.source, Source::Redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_shorter_is_not_cut_and_not_stretched() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let policy = Policy::token_bucket("p", 1, Rate::per(10, Duration::from_secs(2))).unwrap();
    assert!(limiter.check(&policy, "alice").await.allowed);
    let denied = limiter.check(&policy, "alice").await;
    let told = denied.retry_after.unwrap();
    assert!(told <= Duration::from_millis(200), "{denied:?}");
    sleep_until(Instant::now() + told).await;
    let decision = limiter.check(&policy, "alice").await;
    assert_eq!((decision.allowed, decision.source), (true, Source::Redis));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_give_back_raise_or_delete_shows_within_a_second() {
    let server = Server::new();
    let (limiter, other) = (limiter_of(&server), limiter_of(&server));
    let refunded = deny(&limiter, "refunded").await;
    let raised = deny(&limiter, "raised").await;
    let deleted = deny(&limiter, "deleted").await;
    other.refund(&policy(), "refunded", 1, None).await.unwrap();
    ask::<()>(&mut server.connect(), "DEL rl:{deleted}:p");
    let wide = Policy::token_bucket("p", 100, Rate::per(100, Duration::from_secs(1))).unwrap();
    for (subject, policy, denied) in
        [("refunded", &policy(), refunded), ("raised", &wide, raised), ("deleted", &policy(), deleted)]
    {
        sleep_until(denied + LONGEST).await;
        let decision = limiter.check(policy, subject).await;
        assert_eq!((decision.allowed, decision.source), (true, Source::Redis), "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_same_limiter_gives_back_shows_at_once() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    for number in 0..100 {
        let subject = number.to_string();
        deny(&limiter, &subject).await;
        limiter.refund(&policy(), &subject, 1, None).await.unwrap();
        let decision = limiter.check(&policy(), &subject).await;
        assert_eq!((decision.allowed, decision.source), (true, Source::Redis));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_denied_callers_costs_no_more_than_one_call_each_a_second() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    deny(&limiter, "alice").await;
    let redis = &mut server.connect();
    let before = calls(redis, "rl.");
    let crowd = (0..50).map(|_| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(1_500) {
                assert!(!limiter.check(&policy(), "alice").await.allowed);
                sleep(Duration::from_millis(1)).await;
            }
        })
    });
    for one in crowd.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    let asked = calls(redis, "rl.") - before;
    eprintln!("  50 callers cost {asked} calls in 1.5 s");
    assert!(asked <= 2 * 50, "{asked} calls");
}
