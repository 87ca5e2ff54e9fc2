//! The server's clock steps.

mod each_step;
mod history;
mod kind;
mod link;
mod promotion;
mod random_steps;
mod settling;

use crate::support::{HOUR, NOON, Options, ask, decide};

#[test]
fn back_nobody_is_locked_out_longer_than_one_refill_or_window() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET b 10 1 10");
    decide(&mut redis, "RL.FIXED f 10 1m 10");
    decide(&mut redis, "RL.SLIDING s 10 1m 10");
    decide(&mut redis, "RL.SLIDINGLOG log 10 1m 10");
    decide(&mut redis, "RL.LEAKY l 10 1 10");
    server.clock().advance(-2 * 24 * HOUR);
    // Used stays used, as if it had been used now.
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1"), [0, 10, 0, 1_000, 10_000]);
    assert_eq!(decide(&mut redis, "RL.FIXED f 10 1m"), [0, 10, 0, 59_500, 59_500]);
    assert_eq!(decide(&mut redis, "RL.SLIDING s 10 1m"), [0, 10, 0, 65_500, 119_500]);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG log 10 1m"), [0, 10, 0, 60_000, 60_000]);
    assert_eq!(decide(&mut redis, "RL.LEAKY l 10 1"), [0, 10, 0, 1_000, 10_000]);
    // The denied calls moved the stamps to now, and the expiry with them, so that waiting helps.
    for (key, reset) in [("b", 10_000), ("f", 59_500), ("s", 119_500), ("log", 60_000), ("l", 10_000)] {
        let left: i64 = ask(&mut redis, &format!("PTTL {key}"));
        assert!((reset - 1..=reset + reset / 4 + 1_000).contains(&left), "{key}: {left}");
    }
    server.clock().advance(998_500);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1")[0], 0);
    server.clock().advance(2_000);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1")[0], 1);
    server.clock().advance(58_500_000);
    assert_eq!(decide(&mut redis, "RL.FIXED f 10 1m"), [1, 10, 9, 0, 60_000]);
}

#[test]
fn back_peek_and_cost_0_write_nothing() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET b 10 1 10");
    let state: Vec<u8> = ask(&mut redis, "GET b");
    server.clock().advance(-HOUR);
    assert_eq!(decide(&mut redis, "RL.PEEK b"), [0, 10, 0, 1_000, 10_000]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1 0"), [0, 10, 0, 1_000, 10_000]);
    assert_eq!(ask::<Vec<u8>>(&mut redis, "GET b"), state);
    decide(&mut redis, "RL.TOKENBUCKET b 10 1");
    assert_ne!(ask::<Vec<u8>>(&mut redis, "GET b"), state);
}

#[test]
fn ahead_counts_as_time_that_passed() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET b 10 1/h 10");
    decide(&mut redis, "RL.FIXED f 10 1h 10");
    server.clock().advance(HOUR + 500);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1/h")[..3], [1, 10, 0]);
    assert_eq!(decide(&mut redis, "RL.FIXED f 10 1h")[..3], [1, 10, 9]);
    server.clock().advance(365 * 24 * HOUR);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1/h")[..3], [1, 10, 9]);
}

#[test]
fn ahead_and_back_again_admits_no_more_than_the_leap_refilled() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET b 10 1 10");
    server.clock().advance(3_000_500);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1")[..3], [1, 10, 2]);
    server.clock().set(NOON);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1 2")[..3], [1, 10, 0]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1")[..4], [0, 10, 0, 1_000]);
}

#[test]
fn back_over_an_edge_what_the_window_before_still_counts_for_counts_as_taken_now() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.SLIDING s 10 1m 9");
    server.clock().set(NOON + 79_500_000);
    // Two thirds of the window before are still covered: six of its nine units.
    assert_eq!(decide(&mut redis, "RL.SLIDING s 10 1m 3")[..3], [1, 10, 1]);
    server.clock().advance(-HOUR);
    assert_eq!(decide(&mut redis, "RL.SLIDING s 10 1m 2")[..3], [0, 10, 1]);
    assert_eq!(decide(&mut redis, "RL.SLIDING s 10 1m 1")[..3], [1, 10, 0]);
}
