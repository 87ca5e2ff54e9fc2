//! How far the sliding window counter is off: the same traffic through it and through the exact log.
//!
//! `cargo test -p rl-limiter --test approximation -- --nocapture` prints the table that `docs/commands.md` quotes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rl_limiter::layout::Stored;
use rl_limiter::{Cost, Limit, Limiter, Micros, Plan, SlidingLog, SlidingWindow, Window};

const LIMIT: u64 = 1_000;
const WINDOW: u64 = 60_000_000;
const WINDOWS: u64 = 40;
/// A multiple of the window.
const START: u64 = 1_796_040_000_000_000;

/// The times of calls, in microseconds since the start, in order.
type Traffic = Vec<u64>;

/// Half as many calls again as the limit allows, at even gaps.
fn even() -> Traffic {
    let gap = WINDOW * 2 / (3 * LIMIT);
    (0..WINDOWS * WINDOW / gap).map(|call| call * gap).collect()
}

/// The same number, at random times. The generator is SplitMix64, so that every run is the same.
fn random() -> Traffic {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let mut calls: Traffic = (0..WINDOWS * LIMIT * 3 / 2).map(|_| next() % (WINDOWS * WINDOW)).collect();
    calls.sort_unstable();
    calls
}

/// All of a window's calls within one second, at another place in each window.
fn bursts() -> Traffic {
    let burst = |window: u64| {
        let second = window * 37 % 60;
        (0..LIMIT * 3 / 2).map(move |call| window * WINDOW + second * 1_000_000 + call * 600)
    };
    (0..WINDOWS).flat_map(burst).collect()
}

/// The worst for the counter: in every other window a burst at its very end, and then a call each millisecond.
fn worst() -> Traffic {
    let pair = |pair: u64| {
        let start = pair * 3 * WINDOW;
        let burst = (0..LIMIT).map(move |call| start + WINDOW - 1 - (LIMIT - call));
        burst.chain((0..WINDOW / 1_000).map(move |call| start + WINDOW + call * 1_000))
    };
    (0..WINDOWS / 3).flat_map(pair).collect()
}

/// Which calls the counter admits.
fn by_counter(traffic: &[u64]) -> Vec<bool> {
    let limiter = SlidingWindow::new(Limit::new(LIMIT).unwrap(), Window::from_micros(WINDOW).unwrap());
    let mut state = None;
    let decide = |at: &u64| {
        let outcome = limiter.decide(state, Micros::new(START + at).unwrap(), Cost::ONE);
        state = outcome.next.or(state);
        outcome.decision.allowed
    };
    traffic.iter().map(decide).collect()
}

/// Which calls the log admits.
fn by_log(traffic: &[u64]) -> Vec<bool> {
    let limiter = SlidingLog::new(Limit::new(LIMIT).unwrap(), Window::from_micros(WINDOW).unwrap());
    let mut bytes = Vec::new();
    let mut decide = |at: &u64| {
        let log = match Stored::read(&bytes) {
            Ok(Stored::SlidingLog(log)) => Some(log),
            _ => None,
        };
        let outcome = limiter.decide(log, Micros::new(START + at).unwrap(), Cost::ONE, u32::MAX).expect("room");
        if let Some(plan) = outcome.next {
            if plan.fits() {
                plan.carry_out(&mut bytes);
            } else {
                bytes = plan.make(&bytes);
            }
        }
        outcome.decision.allowed
    };
    traffic.iter().map(&mut decide).collect()
}

/// The most that was admitted in any stretch as long as the window.
fn most_in_a_window(traffic: &[u64], admitted: &[bool]) -> u64 {
    let times: Vec<u64> = traffic.iter().zip(admitted).filter(|(_, admitted)| **admitted).map(|(at, _)| *at).collect();
    let in_stretch = |(index, first): (usize, &u64)| times[index..].partition_point(|at| at - first < WINDOW);
    times.iter().enumerate().map(in_stretch).max().unwrap_or(0).try_into().unwrap()
}

#[test]
fn the_counter_against_the_log() {
    println!("{:<8} {:>12} {:>12} {:>14} {:>14}", "traffic", "by counter", "by log", "most, counter", "most, log");
    for (name, traffic, at_most) in [
        // In percent of the limit, in any stretch as long as the window.
        ("even", even(), 101),
        ("random", random(), 108),
        ("bursts", bursts(), 160),
        ("worst", worst(), 200),
    ] {
        let (counter, log) = (by_counter(&traffic), by_log(&traffic));
        let admitted = |decisions: &[bool]| decisions.iter().filter(|admitted| **admitted).count();
        let most = [&counter, &log].map(|decisions| most_in_a_window(&traffic, decisions));
        println!("{name:<8} {:>12} {:>12} {:>14} {:>14}", admitted(&counter), admitted(&log), most[0], most[1]);
        assert_eq!(most[1], LIMIT, "{name}: the log is exact, and the traffic asks for more than the limit");
        assert!(most[0] <= LIMIT * at_most / 100, "{name}: {} in one window", most[0]);
    }
}
