//! Long runs: not one unit is lost or won, however often a limiter is asked.
//!
//! A greedy poller asks for single units once a millisecond, until it is denied. Then less than one unit is left, so where
//! the bucket holds a unit more than a millisecond refills, nothing flows over, and all that it was given has to come out:
//! after time `t` exactly `⌊capacity + rate × t⌋` units. In a smaller bucket some flows over; what comes out is known all
//! the same.
//!
//! The ordinary tests play a hundredth of each run. For all of it: `cargo test --release -- --include-ignored`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rl_limiter::layout::State;
use rl_limiter::{Capacity, Cost, FixedWindow, Limit, Limiter, Micros, Rate, TokenBucket, Window};

const ALL_CALLS: u64 = 10_000_000;
const SOME_CALLS: u64 = ALL_CALLS / 100;

/// A Monday at noon in 2026, UTC: aligned to minutes and hours, not to days.
const NOON: u64 = 1_796_040_000_000_000;

/// Capacity and rate of a bucket, and the rate once more as a plain fraction: units, every so many microseconds.
type Bucket = (u64, &'static str, u128, u128);

/// From one unit in many seconds to several each millisecond; whole, periodic, with as many digits as a rate may have, with
/// as small a step, and so finely divided that it takes 128 bits.
const BUCKETS: [Bucket; 8] = [
    (1_000, "1000000000/d", 1_000_000_000, 86_400_000_000),
    (1_000, "7/3", 7, 3_000_000),
    (9, "8000", 8_000, 1_000_000),
    (50, "8000", 8_000, 1_000_000),
    (3, "100/60", 100, 60_000_000),
    (2, "0.123456789012", 123_456_789_012, E18),
    (2, "123.456789012345", 123_456_789_012_345, E18),
    (1_000, "999.999999999999", 999_999_999_999_999, E18),
];

const E18: u128 = 1_000_000_000_000_000_000;

#[test]
fn a_greedy_poller_gets_exactly_what_a_bucket_was_given() {
    BUCKETS.iter().for_each(|bucket| drain(bucket, SOME_CALLS));
}

#[test]
#[ignore = "long: ten million calls to each bucket"]
fn a_greedy_poller_gets_exactly_what_a_bucket_was_given_in_the_long_run() {
    BUCKETS.iter().for_each(|bucket| drain(bucket, ALL_CALLS));
}

#[test]
fn a_bucket_of_one_gives_one_whenever_it_is_full() {
    poll_a_bucket_of_one(SOME_CALLS);
}

#[test]
#[ignore = "long: ten million calls"]
fn a_bucket_of_one_gives_one_whenever_it_is_full_in_the_long_run() {
    poll_a_bucket_of_one(ALL_CALLS);
}

#[test]
fn every_window_gives_exactly_its_limit() {
    exhaust_windows(SOME_CALLS);
}

#[test]
#[ignore = "long: ten million calls"]
fn every_window_gives_exactly_its_limit_in_the_long_run() {
    exhaust_windows(ALL_CALLS);
}

/// Asks until denied, each millisecond, and checks after each of them that everything came out.
fn drain(bucket: &Bucket, calls: u64) {
    let &(capacity, rate, units, micros) = bucket;
    let parsed = Rate::parse("rate", rate.as_bytes()).unwrap();
    let mut poller = Poller::new(TokenBucket::new(Capacity::new(capacity).unwrap(), parsed));
    let mut millis = 0;
    while poller.calls < calls {
        let given = u128::from(capacity) + units * u128::from(millis * 1_000) / micros;
        let taken = loop {
            let more = poller.takes_one(millis);
            let taken = u128::from(poller.taken);
            assert!(taken <= given, "capacity {capacity}, rate {rate}: {taken} taken after {millis} ms");
            if !more {
                break taken;
            }
        };
        assert_eq!(taken, given, "capacity {capacity}, rate {rate}, after {millis} ms");
        millis += 1;
    }
    println!("capacity {capacity}, rate {rate}: {} calls in {millis} ms, {} taken", poller.calls, poller.taken);
}

/// 3/s into a bucket of one: it is full 333⅓ ms after it was emptied, which a poller sees at 334 ms. The ⅔ ms that flow over
/// are lost each time, and nothing else is.
fn poll_a_bucket_of_one(calls: u64) {
    let mut poller = Poller::new(TokenBucket::new(Capacity::ONE, Rate::parse("rate", b"3").unwrap()));
    for millis in 0..calls {
        assert_eq!(poller.takes_one(millis), millis % 334 == 0, "after {millis} ms");
    }
    println!("capacity 1, rate 3: {} calls, {} taken", poller.calls, poller.taken);
}

/// 17 in each window of 40 ms.
fn exhaust_windows(calls: u64) {
    let limiter = FixedWindow::new(Limit::new(17).unwrap(), Window::parse("window", b"40ms").unwrap());
    let mut poller = Poller::new(limiter);
    for millis in 0..calls {
        assert_eq!(poller.takes_one(millis), millis % 40 < 17, "after {millis} ms");
    }
    println!("17 per 40 ms: {} calls, {} taken", poller.calls, poller.taken);
}

/// Somebody who asks for one unit at a time. The limiter's state is bytes between two calls.
struct Poller<L: Limiter> {
    limiter: L,
    stored: Option<Vec<u8>>,
    calls: u64,
    taken: u64,
}

impl<L: Limiter> Poller<L> {
    fn new(limiter: L) -> Self {
        Self { limiter, stored: None, calls: 0, taken: 0 }
    }

    fn takes_one(&mut self, millis: u64) -> bool {
        let state = self.stored.as_deref().map(|bytes| L::State::try_from(State::decode(bytes).unwrap()).unwrap());
        let now = Micros::new(NOON + millis * 1_000).unwrap();
        let outcome = self.limiter.decide(state, now, Cost::ONE);
        if let Some(next) = outcome.next {
            let bytes = self.stored.get_or_insert_default();
            bytes.clear();
            bytes.extend_from_slice(&next.into().encode());
        }
        self.calls += 1;
        self.taken += u64::from(outcome.decision.allowed);
        outcome.decision.allowed
    }
}
