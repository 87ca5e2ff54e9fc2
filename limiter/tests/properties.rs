//! Random calls to the algorithms, each answer held against a model that computes it by definition from all that happened
//! before, and against every rule that a call can break.
//!
//! The ordinary tests make a quarter of a million calls. For some ten million: `PROPTEST_CASES=20000 cargo test --release`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod harness;
#[allow(dead_code, reason = "shared with tests that need other parts")]
mod model;
mod random;
mod settling;

use harness::{Conditions, compare, compare_in_debt};
use model::fixed_window::FixedWindow;
use model::leaky_bucket::LeakyBucket;
use model::sliding_window::SlidingWindow;
use model::token_bucket::TokenBucket;

#[test]
fn a_fixed_window_keeps_its_promise() {
    compare::<FixedWindow>(Conditions::Steady, 200);
}

#[test]
fn a_fixed_window_whose_parameters_change_keeps_its_promise() {
    compare::<FixedWindow>(Conditions::Changing, 200);
}

#[test]
fn a_fixed_window_whose_clock_steps_keeps_its_promise() {
    compare::<FixedWindow>(Conditions::Stepping, 200);
}

#[test]
fn a_token_bucket_keeps_its_promise() {
    compare::<TokenBucket>(Conditions::Steady, 200);
}

#[test]
fn a_token_bucket_whose_parameters_change_keeps_its_promise() {
    compare::<TokenBucket>(Conditions::Changing, 200);
}

#[test]
fn a_token_bucket_whose_clock_steps_keeps_its_promise() {
    compare::<TokenBucket>(Conditions::Stepping, 200);
}

#[test]
fn a_token_bucket_in_debt_keeps_its_promise() {
    compare_in_debt::<TokenBucket>(Conditions::Stepping, 200);
}

#[test]
fn a_sliding_window_keeps_its_promise() {
    compare::<SlidingWindow>(Conditions::Steady, 200);
}

#[test]
fn a_sliding_window_whose_parameters_change_keeps_its_promise() {
    compare::<SlidingWindow>(Conditions::Changing, 200);
}

#[test]
fn a_sliding_window_whose_clock_steps_keeps_its_promise() {
    compare::<SlidingWindow>(Conditions::Stepping, 200);
}

#[test]
fn a_leaky_bucket_keeps_its_promise() {
    compare::<LeakyBucket>(Conditions::Steady, 200);
}

#[test]
fn a_leaky_bucket_whose_parameters_change_keeps_its_promise() {
    compare::<LeakyBucket>(Conditions::Changing, 200);
}

#[test]
fn a_leaky_bucket_whose_clock_steps_keeps_its_promise() {
    compare::<LeakyBucket>(Conditions::Stepping, 200);
}
