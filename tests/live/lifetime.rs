//! A key vanishes no earlier than its state is as good as unused, and does vanish.

use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::{NOON, Options, SECOND, Server, ask, decide, wait_until};

/// The moment of expiry must lie between the reset that the reply tells and a quarter of it, or a second, later; give or
/// take the time between the two questions.
fn assert_expiry_fits(redis: &mut Connection, reset: i64) {
    let left: i64 = ask(redis, "PTTL k");
    let latest = reset + 1_000.max(reset / 4);
    assert!((reset - 1..=latest + 1).contains(&left), "{left} ms left of the key, {reset} ms until it is unused");
}

#[test]
fn the_expiry_follows_the_state() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let lines = [
        "RL.TOKENBUCKET k 1000 100",
        "RL.TOKENBUCKET k 1000 1 400",
        "RL.TOKENBUCKET k 10 1/h",
        "RL.TOKENBUCKET k 1000000 8000",
        "RL.TOKENBUCKET k 3 3/7",
        "RL.FIXED k 1000 1",
        "RL.FIXED k 1000 1m",
        "RL.FIXED k 1000 1w",
        "RL.SLIDING k 1000 1",
        "RL.SLIDING k 1000 1h",
        "RL.SLIDINGLOG k 1000 1",
        "RL.SLIDINGLOG k 1000 1h",
        "RL.LEAKY k 1000 10 5",
    ];
    for line in lines {
        ask::<()>(&mut redis, "DEL k");
        for step in [0, 0, 1_000, 10_000, 100_000, SECOND, 10 * SECOND, 100 * SECOND] {
            server.clock().advance(step);
            let [allowed, _, _, _, reset] = decide(&mut redis, line);
            if allowed == 1 {
                assert_expiry_fits(&mut redis, reset);
            }
        }
    }
}

#[test]
fn a_shorter_window_brings_the_expiry_back() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 10 1d");
    let [.., reset] = decide(&mut redis, "RL.FIXED k 10 1m");
    assert_expiry_fits(&mut redis, reset);
    decide(&mut redis, "RL.TOKENBUCKET b 10 1/d 10");
    decide(&mut redis, "RL.TOKENBUCKET b 20 100 5");
    assert!(ask::<i64>(&mut redis, "PTTL b") <= 1_151);
}

/// At each millisecond a key that is gone must be as good as one that is there: checked by asking at the very moment.
#[test]
fn a_key_is_there_until_it_is_unused_and_then_goes() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let cases = [
        ("RL.TOKENBUCKET k 4 2 3", "RL.TOKENBUCKET k 4 2 4", 1_500),
        ("RL.FIXED k 4 3 3", "RL.FIXED k 4 3 4", 2_500),
        ("RL.SLIDING k 4 3 3", "RL.SLIDING k 4 3 4", 5_500),
        ("RL.SLIDINGLOG k 4 3 3", "RL.SLIDINGLOG k 4 3 4", 3_000),
        ("RL.LEAKY k 4 2 3", "RL.LEAKY k 4 2 4", 1_500),
    ];
    for (take, take_all, reset) in cases {
        server.clock().set(NOON);
        assert_eq!(decide(&mut redis, take)[4], reset);
        server.clock().set(NOON + reset * 1_000 - 1_500);
        assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 1, "a moment before");
        assert_eq!(decide(&mut redis, take_all)[0], 0);
        server.clock().set(NOON + reset * 1_000 + 1_002_000);
        assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0, "more than a second after");
    }
}

#[test]
fn an_unused_state_is_as_good_as_none_whether_it_was_collected_or_not() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 10 1 5");
    server.clock().advance(5_000_500);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 1, "not yet collected");
    assert_eq!(ask::<Option<Vec<i64>>>(&mut redis, "RL.PEEK k"), None);
    // Another kind may take it over.
    assert_eq!(decide(&mut redis, "RL.FIXED k 10 1m")[..3], [1, 10, 9]);
    let [.., reset] = decide(&mut redis, "RL.PEEK k");
    assert_expiry_fits(&mut redis, reset);
    // And back, into a string that is longer.
    server.clock().advance(60_000_500);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 9007199254740991 1/d")[..2], [1, 9_007_199_254_740_991]);
}

#[test]
fn a_key_made_immortal_gets_its_expiry_back_with_the_next_admitted_call() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 2 1m");
    ask::<()>(&mut redis, "PERSIST k");
    let [.., reset] = decide(&mut redis, "RL.FIXED k 2 1m");
    assert_expiry_fits(&mut redis, reset);

    ask::<()>(&mut redis, "PERSIST k");
    assert_eq!(decide(&mut redis, "RL.FIXED k 2 1m")[0], 0);
    assert_eq!(ask::<i64>(&mut redis, "PTTL k"), -1, "a denied call writes nothing");
}

#[test]
fn an_immortal_key_locks_nobody_out() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 2 10s 2");
    ask::<()>(&mut redis, "PERSIST k");
    server.clock().advance(9_500_500);
    assert_eq!(decide(&mut redis, "RL.FIXED k 2 10s"), [1, 2, 1, 0, 10_000]);
}

#[test]
fn the_server_collects_unused_keys_that_nobody_asks_for() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for key in 0..1_000 {
        decide(&mut redis, &format!("RL.TOKENBUCKET {key} 10 1"));
    }
    assert_eq!(ask::<i64>(&mut redis, "DBSIZE"), 1_000);
    server.clock().advance(2_003_000);
    wait_until("the keys are gone", || ask::<i64>(&mut redis, "DBSIZE") == 0);
}

#[test]
fn the_real_clock_ends_keys_too() {
    let server = Server::new();
    let mut redis = server.connect();
    let start = Instant::now();
    decide(&mut redis, "RL.TOKENBUCKET k 1000 1000 200");
    wait_until("the key is gone", || ask::<i64>(&mut redis, "EXISTS k") == 0);
    assert!(start.elapsed() >= Duration::from_millis(200), "gone after {:?}", start.elapsed());
}

#[test]
fn a_key_that_is_taken_over_gets_an_expiry_of_its_own() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 10 1s");
    server.clock().advance(600_000);
    // The old expiry, in 900 ms, would be right: but it went with the old value.
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 2"), [1, 10, 9, 0, 500]);
    let left: i64 = ask(&mut redis, "PTTL k");
    assert!((500..=1_501).contains(&left), "{left}");
}
