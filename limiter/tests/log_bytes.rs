//! Logs as bytes: what servers have stored stays readable, so these never change; another layout is another version.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hex;

use hex::{bytes_of, hex};
use rl_limiter::layout::{Stored, Unreadable};
use rl_limiter::sliding_log::State;
use rl_limiter::{Age, Cost, Limit, Micros, Plan, SlidingLog, Window};

const SMALL: &str = include_str!("layout/small_log.hex");
const RING: &str = include_str!("layout/wrapped_ring.hex");

const START: u64 = 1_796_040_000_123_456;

/// Where the head has its numbers of slots, of the first block and of blocks.
const SLOTS: usize = 20;
const FIRST: usize = 53;
const BLOCKS: usize = 57;

fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn log(limit: u64, window: u64) -> SlidingLog {
    SlidingLog::new(Limit::new(limit).unwrap(), Window::from_micros(window).unwrap())
}

fn read(bytes: &[u8]) -> State<'_> {
    match Stored::read(bytes) {
        Ok(Stored::SlidingLog(log)) => log,
        _ => panic!("no log: {}", hex(bytes)),
    }
}

fn take(bytes: &mut Vec<u8>, log: SlidingLog, now: u64, units: u64) {
    let state = (!bytes.is_empty()).then(|| read(bytes));
    let plan = log.decide(state, Micros::new(now).unwrap(), cost(units), 100_000).unwrap().next.unwrap();
    if plan.fits() {
        plan.carry_out(bytes);
    } else {
        *bytes = plan.make(bytes);
    }
}

/// Three entries and a hole.
fn small_log() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, units) in [(0, 1), (5, 2), (2_000_000, 300), (9_000_000, 4)] {
        take(&mut bytes, log(1_000, 60_000_000), START + at, units);
    }
    let age = Age::from_micros(3_000_000);
    let plan = read(&bytes).refund(Micros::new(START + 9_000_000).unwrap(), cost(300), age).unwrap();
    plan.carry_out(&mut bytes);
    bytes
}

/// A ring of several blocks that goes on at the start of its slots, with a block of wide entries.
fn wrapped_ring() -> Vec<u8> {
    let mut bytes = Vec::new();
    let limiter = log((1 << 53) - 1, 200_000_000);
    for call in 0..530 {
        let units = if (400..410).contains(&call) { 1 << 48 } else { 1 + call % 5 };
        take(&mut bytes, limiter, START + call * 1_000_003, units);
    }
    bytes
}

#[test]
fn version_1_of_a_log_is_these_bytes() {
    for (name, made, expected) in [("small_log", small_log(), SMALL), ("wrapped_ring", wrapped_ring(), RING)] {
        assert!(hex(&made) == expected, "{name} is now\n{}", hex(&made));
    }
}

#[test]
fn these_bytes_hold_what_was_taken() {
    let bytes = bytes_of(SMALL);
    let entries: Vec<_> = read(&bytes).newest_entries().map(|(at, units)| (at.get() - START, units)).collect();
    assert_eq!(entries, [(9_000_000, 4), (5, 2), (0, 1)]);

    let bytes = bytes_of(RING);
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert!(number(FIRST) + number(BLOCKS) > number(SLOTS), "the ring is not wrapped");
    let entries: Vec<_> = read(&bytes).newest_entries().collect();
    assert_eq!(entries.len(), 200);
    for (call, (at, units)) in (0..530).rev().zip(entries) {
        let expected = if (400..410).contains(&call) { 1 << 48 } else { 1 + call % 5 };
        assert_eq!((at.get(), units), (START + call * 1_000_003, expected));
    }
}

/// Fields of a head outside their range, or that don't fit the others, one at a time, at the first value that is so.
#[test]
fn implausible_heads_are_no_log() {
    let bytes = bytes_of(RING);
    let number = |at: usize, length: usize| {
        let field = bytes[at..at + length].iter().rev();
        field.fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let (slots, total, next) = (number(SLOTS, 4), number(33, 8), number(49, 4));
    let fields: [(usize, usize, u64); 17] = [
        (4, 8, 0),
        (4, 8, 1 << 53),
        (12, 8, 999),
        (SLOTS, 4, slots + 1),
        (24, 1, 60),
        (25, 8, 1 << 62),
        (33, 8, 0),
        (33, 8, 1 << 53),
        (41, 8, 0),
        (41, 8, total + 1),
        (49, 4, next + 61 * slots),
        (49, 4, next - 300),
        (FIRST, 4, slots),
        (BLOCKS, 4, 0),
        (BLOCKS, 4, slots + 1),
        (61, 1, 61),
        (61, 1, 255),
    ];
    assert!(matches!(Stored::read(&bytes), Ok(Stored::SlidingLog(_))));
    for (at, length, value) in fields {
        let mut other = bytes.clone();
        other[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        assert!(matches!(Stored::read(&other), Err(Unreadable::NoLimiter)), "{value} at {at}");
    }
}

/// Whatever else a newer version has changed.
#[test]
fn a_log_of_a_newer_version_says_so() {
    for hex in [SMALL, RING] {
        let mut bytes = bytes_of(hex);
        for version in 2..=u8::MAX {
            bytes[2] = version;
            assert!(matches!(Stored::read(&bytes), Err(Unreadable::Newer)), "version {version}");
            bytes[4..].reverse();
            assert!(matches!(Stored::read(&bytes), Err(Unreadable::Newer)), "version {version}, reversed");
        }
    }
}
