//! What the client asks and what it makes of the reply.

use std::time::Duration;

use redis_rl_client::{Builder, DAY, Decision, ErrorKind, HOUR, Limiter, MINUTE, Policy, Rate, Source};

use crate::support::{Server, ask, send};

/// With so much time that no busy machine makes an outage of it.
pub fn builder_for(server: &Server) -> Builder {
    Limiter::builder(format!("redis://127.0.0.1:{}", server.port()))
        .deadline(Duration::from_secs(10))
        .nodes(1)
        .without_fleet()
}

pub fn limiter_of(server: &Server) -> Limiter {
    builder_for(server).connect_lazy().unwrap()
}

/// One policy of each algorithm, of three units.
pub fn policies() -> [Policy; 5] {
    [
        Policy::fixed_window("fixed", 3, HOUR),
        Policy::sliding_window("sliding", 3, HOUR),
        Policy::sliding_log("log", 3, HOUR),
        Policy::token_bucket("bucket", 3, Rate::per(3, HOUR)),
        Policy::leaky_bucket("leaky", 3, Rate::per(3, HOUR)),
    ]
    .map(Result::unwrap)
}

fn numbers(decision: &Decision) -> (bool, u64, Option<u64>) {
    (decision.allowed, decision.limit, decision.remaining)
}

#[tokio::test]
async fn every_algorithm_is_asked_for_and_decides() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    for policy in policies() {
        let name = policy.name();
        for remaining in [2, 1, 0] {
            let decision = limiter.check(&policy, "alice").await;
            assert_eq!(numbers(&decision), (true, 3, Some(remaining)), "{name}");
            assert_eq!((decision.source, &*decision.policy), (Source::Redis, name));
            assert_eq!(decision.retry_after, Some(Duration::ZERO), "{name}");
            assert_eq!(decision.delay > Duration::ZERO, name == "leaky" && remaining < 2, "{name}: {decision:?}");
        }
        let denied = limiter.check(&policy, "alice").await;
        assert_eq!(numbers(&denied), (false, 3, Some(0)), "{name}");
        assert!(denied.retry_after.unwrap() > Duration::from_secs(1), "{name}: {denied:?}");
        assert!(denied.reset_after.unwrap() <= 2 * HOUR, "{name}: {denied:?}");
        assert!(limiter.check(&policy, "bob").await.allowed, "{name}");
    }
    let keys: Vec<String> = ask(&mut server.connect(), "KEYS rl:{alice}:*");
    assert_eq!(keys.len(), 5, "{keys:?}");
}

#[tokio::test]
async fn costs_peeks_refunds_and_debits_are_those_of_the_commands() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let policy = Policy::token_bucket("api", 10, Rate::per(10, HOUR)).unwrap();

    let unused = limiter.peek(&policy, "alice").await.unwrap();
    assert_eq!(numbers(&unused), (true, 10, Some(10)));
    assert_eq!(limiter.refund(&policy, "alice", 5, None).await.unwrap(), unused, "there is nothing to give back to");

    assert_eq!(limiter.check_n(&policy, "alice", 4).await.remaining, Some(6));
    assert_eq!(limiter.peek(&policy, "alice").await.unwrap().remaining, Some(6));
    assert_eq!(limiter.refund(&policy, "alice", 3, None).await.unwrap().remaining, Some(9));
    // In 12 minutes two of them have come back by themselves.
    let aged = limiter.refund(&policy, "alice", 2, Some(12 * MINUTE)).await.unwrap();
    assert_eq!(aged.remaining, Some(9));

    let debit = limiter.debit(&policy, "alice", 12).await.unwrap();
    assert_eq!((numbers(&debit.decision), debit.rest), ((false, 10, Some(0)), 0));
    let debit = limiter.debit(&policy, "alice", 100).await.unwrap();
    assert_eq!(debit.rest, 93, "a debt ends at the capacity");

    let never = limiter.check_n(&policy, "bob", 11).await;
    assert_eq!((never.allowed, never.retry_after), (false, None));
}

#[tokio::test]
async fn what_an_algorithm_can_not_do_is_not_asked_for() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    for policy in policies() {
        let takes_back = policy.name() != "leaky";
        let refunded = limiter.refund(&policy, "alice", 1, None).await.map_err(|error| error.kind());
        assert_eq!(refunded.is_ok(), takes_back, "{}: {refunded:?}", policy.name());
        let debited = limiter.debit(&policy, "alice", 1).await.map_err(|error| error.kind());
        let expected = (policy.name() != "bucket").then_some(ErrorKind::Invalid);
        assert_eq!(debited.err(), expected, "{}", policy.name());
    }
    let too_much = limiter.try_check_n(&policies()[0], "alice", 1 << 53).await.unwrap_err();
    assert_eq!(too_much.kind(), ErrorKind::Invalid);
    assert!(!limiter.check_n(&policies()[0], "alice", 1 << 53).await.allowed, "a fault is closed");
}

#[tokio::test]
async fn rates_and_windows_arrive_as_they_were_given() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let mut redis = server.connect();
    for (policy, field, expected) in [
        (Policy::fixed_window("p", 10, Duration::from_micros(1_500_001)), "window", "1500.001ms"),
        (Policy::sliding_window("p", 10, HOUR), "window", "1h"),
        (Policy::token_bucket("p", 10, Rate::per(7, Duration::from_millis(250))), "rate", "7/250ms"),
        (Policy::leaky_bucket("p", 10, Rate::per(1, 36_500 * DAY)), "rate", "1/36500d"),
    ] {
        let policy = policy.unwrap();
        let decision = limiter.check(&policy, "alice").await;
        assert!(decision.allowed && decision.source == Source::Redis, "{expected}: {decision:?}");
        let told: Vec<String> = send(&mut redis, "RL.INSPECT rl:{alice}:p").unwrap();
        assert!(told.windows(2).any(|pair| pair == [field, expected]), "{field} {expected}: {told:?}");
        ask::<()>(&mut redis, "FLUSHALL");
    }
}

#[test]
fn without_a_runtime_it_says_so() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let [fixed, ..] = policies();
    let mut check = std::pin::pin!(limiter.try_check(&fixed, "alice"));
    let polled = check.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    let std::task::Poll::Ready(Err(error)) = polled else { panic!("{polled:?}") };
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
