//! A state in which nothing is used is a missing one, whatever its stamp says: every call is answered and stored as on an
//! unused limiter. Calls don't lead to such states, what is given back does.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rl_limiter::{
    Capacity, Cost, FixedWindow, Limit, Limiter, LimiterState, Micros, Rate, TokenBucket, Window, fixed_window,
    token_bucket,
};

/// A Monday at noon in 2026, UTC.
const NOON: u64 = 1_796_040_000_000_000;

#[test]
fn a_fixed_window_that_counts_nothing_is_missing() {
    let window = |limit, micros| FixedWindow::new(Limit::new(limit).unwrap(), Window::from_micros(micros).unwrap());
    let remembered = window(10, 60_000_000);
    let state = fixed_window::State::new(remembered, moment(NOON), 0).unwrap();
    let callers = [remembered, window(0, 60_000_000), window(3, 1_000), window(1_000, 86_400_000_000)];
    callers.iter().for_each(|&caller| missing(caller, state));
}

#[test]
fn a_token_bucket_that_spent_nothing_is_missing() {
    let bucket =
        |capacity, units, micros| TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::new(units, micros).unwrap());
    let remembered = bucket(10, 7, 3_000_000);
    let state = token_bucket::State::new(remembered, moment(NOON), 0).unwrap();
    let callers = [remembered, bucket(0, 7, 3_000_000), bucket(3, 1, 1), bucket(1_000, 1, 86_400_000_000)];
    callers.iter().for_each(|&caller| missing(caller, state));
}

fn missing<L>(caller: L, state: L::State)
where
    L: Limiter + std::fmt::Debug,
    L::State: PartialEq + std::fmt::Debug,
{
    // Before, at and after the stamp, and two days before it: the clock went back.
    for at in [NOON - 172_800_000_000, NOON - 1, NOON, NOON + 1, NOON + 60_000_000].map(moment) {
        assert!(state.is_unused(at));
        for cost in [0, 1, 3, 10, 11, 1_001].map(|cost| Cost::new(cost).unwrap()) {
            assert_eq!(caller.decide(Some(state), at, cost), caller.decide(None, at, cost), "{caller:?} at {at:?}");
            assert_eq!(caller.peek(Some(state), at, cost), caller.peek(None, at, cost), "{caller:?} at {at:?}");
        }
    }
}

fn moment(micros: u64) -> Micros {
    Micros::new(micros).unwrap()
}
