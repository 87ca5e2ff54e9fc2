//! Giving back, taking late, and looking inside.

use redis::Value;

use crate::support::{HOUR, NOON, Options, Server, ask, decide, digest, error};

/// The five integers of a debit, and what did not fit.
fn debit(redis: &mut redis::Connection, line: &str) -> [i64; 6] {
    ask::<Vec<i64>>(redis, line).try_into().unwrap()
}

#[test]
fn a_refund_gives_back_what_was_taken_in_this_window() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 10 1m 6");
    assert_eq!(decide(&mut redis, "RL.REFUND k 2"), [1, 10, 6, 0, 59_500]);
    assert_eq!(decide(&mut redis, "RL.REFUND k 1 AGE 0.4"), [1, 10, 7, 0, 59_500]);
    assert_eq!(decide(&mut redis, "RL.REFUND k 1 age 1m")[2], 7, "taken in the window before: it has left by itself");
    server.clock().advance(60_000_000);
    assert_eq!(ask::<Option<Vec<i64>>>(&mut redis, "RL.REFUND k 1"), None);
}

#[test]
fn a_refund_to_a_sliding_window_goes_to_the_count_it_was_taken_from() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.SLIDING k 60 1m 60");
    server.clock().set(NOON + 89_500_000);
    // Half of the window before is still covered.
    assert_eq!(decide(&mut redis, "RL.SLIDING k 60 1m 10")[..3], [1, 60, 20]);
    assert_eq!(decide(&mut redis, "RL.REFUND k 20 AGE 1m")[2], 30);
    assert_eq!(decide(&mut redis, "RL.REFUND k 4")[2], 34);
    assert_eq!(decide(&mut redis, "RL.REFUND k 4 AGE 3m")[2], 34);
}

#[test]
fn a_refund_to_a_bucket_spares_what_was_refilled_since() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 10 1 8");
    server.clock().advance(3_000_500);
    assert_eq!(decide(&mut redis, "RL.REFUND k 5 AGE 3")[..3], [1, 10, 7]);
    assert_eq!(decide(&mut redis, "RL.REFUND k 5 AGE 1h")[2], 7);
    assert_eq!(decide(&mut redis, "RL.REFUND k 2")[2], 9);
}

#[test]
fn a_refund_never_goes_beyond_unused_and_then_the_key_is_gone() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for line in ["RL.FIXED k 10 1m 4", "RL.SLIDING k 10 1m 4", "RL.SLIDINGLOG k 10 1m 4", "RL.TOKENBUCKET k 10 1/h 4"] {
        decide(&mut redis, line);
        assert_eq!(decide(&mut redis, "RL.REFUND k 9007199254740991"), [1, 10, 10, 0, 0], "{line}");
        assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0);
        assert_eq!(ask::<Option<Vec<i64>>>(&mut redis, "RL.REFUND k 1"), None);
    }
}

#[test]
fn a_leaky_bucket_takes_nothing_back() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.LEAKY k 10 1/h 4");
    assert_eq!(error(&mut redis, "RL.REFUND k 1"), "ERR a leaky bucket limiter takes nothing back");
    assert_eq!(decide(&mut redis, "RL.PEEK k")[2], 6);
}

#[test]
fn amount_0_changes_nothing() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 10 1/h 4");
    let before = digest(&mut redis);
    server.clock().advance(-HOUR);
    assert_eq!(decide(&mut redis, "RL.REFUND k 0")[2], 6);
    assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1/h 0")[2], 6);
    assert_eq!(digest(&mut redis), before);
    // But an amount that gives nothing back brings the time of the state to now, as any call does.
    decide(&mut redis, "RL.REFUND k 1 AGE 1d");
    assert_ne!(digest(&mut redis), before);
}

#[test]
fn a_debit_takes_what_is_not_there_down_to_a_balance_of_minus_capacity() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 4"), [1, 10, 6, 0, 4_000, 0]);
    assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 12"), [0, 10, 0, 7_000, 16_000, 0]);
    assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 12"), [0, 10, 0, 11_000, 20_000, 8]);
    let before = digest(&mut redis);
    assert_eq!(debit(&mut redis, "RL.DEBIT k 10 1 1"), [0, 10, 0, 11_000, 20_000, 1]);
    assert_eq!(digest(&mut redis), before, "nothing fitted, nothing was written");
    server.clock().advance(11_000_500);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1")[..3], [1, 10, 0]);
    assert_eq!(debit(&mut redis, "RL.DEBIT new 0 1 5"), [0, 0, 0, -1, 0, 5]);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS new"), 0);
}

#[test]
fn inspect_explains() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let told = |redis: &mut redis::Connection, line: &str| -> Vec<String> {
        ask::<()>(redis, "DEL k");
        decide(redis, line);
        let reply: Vec<Value> = ask(redis, "RL.INSPECT k");
        reply.into_iter().map(|value| redis::from_redis_value(value).unwrap()).collect()
    };
    let last = (NOON / 1_000).to_string();
    let last = last.as_str();
    assert_eq!(
        told(&mut redis, "RL.FIXED k 10 90s 4"),
        [
            "kind",
            "fixed window",
            "limit",
            "10",
            "window",
            "90s",
            "used",
            "4",
            "last_ms",
            last,
            "remaining",
            "6",
            "reset_ms",
            "89500"
        ]
    );
    assert_eq!(
        told(&mut redis, "RL.SLIDING k 10 1h 4")[..10],
        ["kind", "sliding window", "limit", "10", "window", "1h", "current", "4", "previous", "0"]
    );
    assert_eq!(
        told(&mut redis, "RL.TOKENBUCKET k 100 100/m 4")[..8],
        ["kind", "token bucket", "capacity", "100", "rate", "1/600ms", "used", "4"]
    );
    assert_eq!(
        told(&mut redis, "RL.LEAKY k 100 5/h")[..6],
        ["kind", "leaky bucket", "capacity", "100", "rate", "1/12m"]
    );
    assert_eq!(ask::<Value>(&mut redis, "RL.INSPECT missing"), Value::Nil);

    let mut resp3 = server.connect_by(3);
    assert!(matches!(ask::<Value>(&mut resp3, "RL.INSPECT k"), Value::Map(fields) if fields.len() == 7));
}
