//! Leases and holders as bytes: what servers have stored stays readable, so these never change; another layout is another version.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hex;

use hex::{bytes_of, hex};
use rl_limiter::concurrency::{Place, Request};
use rl_limiter::layout::{Stored, Unreadable};
use rl_limiter::lease::{Ask, Lease, Row, Seq, Ttl};
use rl_limiter::{Capacity, Concurrency, Cost, Limit, LimiterState, Micros, Name, Plan, Rate, TokenBucket, Window};

const LEASES: &str = include_str!("layout/leases.hex");
const HOLDERS: &str = include_str!("layout/holders.hex");

const START: u64 = 1_796_040_000_123_456;

fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn micros(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn bucket() -> TokenBucket {
    TokenBucket::new(Capacity::new(100).unwrap(), Rate::new(7, 3_000_000).unwrap())
}

fn apply(bytes: &mut Vec<u8>, plan: &impl Plan) {
    if plan.fits() {
        plan.carry_out(bytes);
    } else {
        *bytes = plan.make(bytes);
    }
}

/// A node with tokens, one with a long name that was put off, and room for more.
fn leases() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, node, seq, want, ttl, min) in [
        (0, "a", 7, 40, 60_000_000, 40),
        (1, "gone", 1, 1, 10_000, 0),
        (5, "node-0002", (1 << 53) - 1, 60, 3_600_000_000, 60),
    ] {
        let ask = Ask {
            node: Name::new(node.as_bytes()).unwrap(),
            seq: Seq::new(seq).unwrap(),
            have: Cost::ZERO,
            want: cost(want),
            ttl: Ttl::from_micros(ttl).unwrap(),
            min: cost(min),
        };
        let state = match Stored::read(&bytes) {
            Ok(Stored::Leases(state)) => Some(state),
            _ => None,
        };
        let plan = bucket().lease(state, micros(START + at * 10_000), &ask).next.unwrap();
        apply(&mut bytes, &plan);
    }
    bytes
}

/// Two holders, and room for more.
fn holders() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, holder, units, ttl) in
        [(0, "a", 3, 60_000_000), (1, "gone", 1, 1_000), (9_000_000, "job-0002-of-3", 300, 36_500 * 86_400_000_000)]
    {
        let limiter = Concurrency::new(Limit::new(1_000).unwrap(), Window::from_micros(ttl).unwrap());
        let state = match Stored::read(&bytes) {
            Ok(Stored::Concurrency(state)) => Some(state),
            _ => None,
        };
        let request = Request { cost: cost(units), ..Request::of(Name::new(holder.as_bytes()).unwrap()) };
        let plan = limiter.decide(state, micros(START + at), request, 1_000).unwrap().next.unwrap();
        apply(&mut bytes, &plan);
    }
    bytes
}

#[test]
fn version_1_of_leases_is_these_bytes() {
    assert_eq!(hex(&leases()), LEASES);
    let bytes = bytes_of(LEASES);
    let Ok(Stored::Leases(state)) = Stored::read(&bytes) else { panic!("no leases") };
    let last = START + 50_000;
    assert_eq!((state.bucket().limiter(), state.bucket().last()), (bucket(), micros(last)));
    // 41 tokens, less what flowed back in the 30 ms since one of them was forfeited.
    assert_eq!(state.bucket().spent(), 41 * 3_000_000 - 30_000 * 7);
    let row = |held, ttl, seq, at, put_off| Row { held, ttl, expires: micros(at + ttl), seq, put_off };
    let rows: Vec<_> = state.leases(micros(last)).map(|Lease { node, row }| (node, row)).collect();
    let expected: [(&[u8], Row); 2] = [
        (b"a", row(40, 60_000_000, 7, START, false)),
        (b"node-0002", row(0, 3_600_000_000, (1 << 53) - 1, last, true)),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn version_1_of_holders_is_these_bytes() {
    assert_eq!(hex(&holders()), HOLDERS);
    let bytes = bytes_of(HOLDERS);
    let Ok(Stored::Concurrency(state)) = Stored::read(&bytes) else { panic!("no holders") };
    assert_eq!(state.limit().get(), 1_000);
    let last = START + 9_000_000;
    let place = |holder, units, ttl, at| Place { holder, units, ttl, expiry: micros(at + ttl) };
    let century = 36_500 * 86_400_000_000;
    let expected = [place(b"a", 3, 60_000_000, START), place(b"job-0002-of-3".as_slice(), 300, century, last)];
    assert_eq!(state.places(micros(last)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_cut_or_extended_state_and_another_head_are_no_limiter() {
    for good in [leases(), holders()] {
        let refused = |bytes: &[u8]| Stored::read(bytes).err();
        for length in 0..good.len() {
            assert_eq!(refused(&good[..length]), Some(Unreadable::NoLimiter), "cut to {length}");
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(refused(&longer), Some(Unreadable::NoLimiter));
        let mut newer = good.clone();
        newer[2] = u8::MAX;
        assert_eq!(refused(&newer), Some(Unreadable::Newer));
        // The rows' head: how many, words of a name, numbers of a row.
        let rows = if good[3] == leases()[3] { 52 } else { 12 };
        for (at, value) in [(rows, 0), (rows, 99), (rows + 1, 1), (rows + 2, 0), (rows + 2, 1), (rows + 3, 5)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(refused(&bad), Some(Unreadable::NoLimiter), "byte {at} is {value}");
        }
    }
    // A lease's head: capacity, both terms of the rate, the time, what is spent.
    for (at, value) in [(4, 0), (4, 1 << 53), (12, 0), (12, 1 << 63), (20, 0), (20, 1 << 63), (28, 1 << 62), (44, 1)] {
        let mut bad = leases();
        bad[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        assert_eq!(Stored::read(&bad).err(), Some(Unreadable::NoLimiter), "{value} at {at}");
    }
    for value in [0, 1 << 53] {
        let mut bad = holders();
        bad[4..12].copy_from_slice(&u64::to_le_bytes(value));
        assert_eq!(Stored::read(&bad).err(), Some(Unreadable::NoLimiter), "a limit of {value}");
    }
}
