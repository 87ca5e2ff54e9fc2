//! Refunds and debits across steps of the clock.

use redis::{Connection, Value};

use crate::support::{HOUR, NOON, Options, SECOND, ask, decide};

fn debit(redis: &mut Connection, line: &str) -> Vec<i64> {
    ask(redis, line)
}

/// What is later than now counts as taken now, so it is what a refund of now gives back, and one of long ago does not.
#[test]
fn back_a_refund_gives_back_what_counts_as_taken_now() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for kind in ["FIXED", "SLIDING", "SLIDINGLOG"] {
        for step in [-2 * 24 * HOUR, -HOUR, -SECOND] {
            ask::<()>(&mut redis, "FLUSHALL");
            server.clock().set(NOON + 10 * SECOND);
            decide(&mut redis, &format!("RL.{kind} k 10 1m 3"));
            server.clock().advance(100);
            decide(&mut redis, &format!("RL.{kind} k 10 1m 6"));
            server.clock().set(NOON + 10 * SECOND + step);
            let mut refund = |line: &str| decide(&mut redis, line)[2];
            assert_eq!(refund("RL.REFUND k 5 AGE 3m"), 1, "{kind}, {step}: nothing of it is so old");
            assert_eq!(refund("RL.REFUND k 3 AGE 0"), 4, "{kind}, {step}");
            assert_eq!(refund("RL.REFUND k 5 AGE 3m"), 4, "{kind}, {step}");
            server.clock().advance(500);
            let mut refund = |line: &str| decide(&mut redis, line)[2];
            assert_eq!(refund("RL.REFUND k 3"), 7, "{kind}, {step}");
            assert_eq!(refund("RL.REFUND k 99 AGE 0"), 10, "{kind}, {step}: never beyond unused");
            assert_eq!(ask::<Value>(&mut redis, "RL.REFUND k 1"), Value::Nil, "{kind}, {step}");
        }
    }
}

#[test]
fn back_a_bucket_takes_back_what_was_not_refilled_by_then() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for step in [-2 * 24 * HOUR, -HOUR, -SECOND] {
        ask::<()>(&mut redis, "FLUSHALL");
        server.clock().set(NOON);
        decide(&mut redis, "RL.TOKENBUCKET k 10 1 10");
        server.clock().advance(step);
        assert_eq!(
            decide(&mut redis, "RL.REFUND k 5 AGE 3")[2],
            2,
            "{step}: three of the five have come back by themselves"
        );
        assert_eq!(decide(&mut redis, "RL.REFUND k 5 AGE 1h")[2], 2, "{step}");
        assert_eq!(decide(&mut redis, "RL.REFUND k 1")[2], 3, "{step}");
    }
}

#[test]
fn back_a_debt_stays_and_is_paid_from_then_on() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for step in [-2 * 24 * HOUR, -HOUR, -SECOND] {
        ask::<()>(&mut redis, "FLUSHALL");
        server.clock().set(NOON);
        assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 15"), [0, 10, 0, 6_000, 15_000, 0]);
        server.clock().advance(step);
        assert_eq!(decide(&mut redis, "RL.PEEK k"), [0, 10, 0, 6_000, 15_000], "{step}");
        assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 7"), [0, 10, 0, 11_000, 20_000, 2], "{step}: five fitted");
        server.clock().advance(10_999_000);
        assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1")[0], 0, "{step}");
        server.clock().advance(1_000);
        assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1")[0], 1, "{step}");
    }
}

/// A debit that takes nothing brings the state to now all the same, as any call does.
#[test]
fn back_a_debit_that_does_not_fit_moves_only_the_time() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    debit(&mut redis, "RL.DEBIT k 10 1 20");
    server.clock().advance(-HOUR);
    assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 1"), [0, 10, 0, 11_000, 20_000, 1]);
    server.clock().advance(11 * SECOND);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1")[0], 1);
}

#[test]
fn ahead_there_is_nothing_to_give_back_and_a_debt_is_paid() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED f 10 1m 9");
    decide(&mut redis, "RL.SLIDINGLOG log 10 1m 9");
    debit(&mut redis, "RL.DEBIT b 10 1 20");
    server.clock().advance(HOUR);
    for key in ["f", "log", "b"] {
        assert_eq!(ask::<Value>(&mut redis, &format!("RL.REFUND {key} 5")), Value::Nil, "{key}");
    }
    assert_eq!(debit(&mut redis, "RL.DEBIT b 10 1 4")[..3], [1, 10, 6]);
    server.clock().advance(-HOUR);
    assert_eq!(debit(&mut redis, "RL.DEBIT b 10 1 0")[..3], [1, 10, 6], "corrected");
}
