//! Many rows: how many there may be, and times that are worked out from all of them, held against adding up from one expiry to the next.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod sequence;
#[path = "lease/subject.rs"]
#[allow(dead_code)]
mod subject;

use rl_limiter::lease::{Answer, Ask, Seq, Ttl};
use rl_limiter::{Age, Capacity, Cost, Micros, Name, Rate, RetryAfter, TokenBucket};
use sequence::Random;
use subject::Subject;

const NOON: u64 = 1_796_040_000_000_000;
const SECOND: u64 = 1_000_000;

fn micros(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn bucket(capacity: u64, units: u64, micros: u64) -> TokenBucket {
    TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::new(units, micros).unwrap())
}

/// A node asks for so many tokens, which it gets if they are free.
fn lease(subject: &mut Subject, limiter: TokenBucket, now: u64, node: u64, seq: u64, want: u64, ttl: u64) -> Answer {
    let name = format!("node-{node}");
    let ask = Ask {
        node: Name::new(name.as_bytes()).unwrap(),
        seq: Seq::new(seq).unwrap(),
        have: Cost::ZERO,
        want: cost(want),
        ttl: Ttl::from_micros(ttl).unwrap(),
        min: cost(want),
    };
    subject.lease(limiter, micros(now), &ask)
}

#[test]
fn row_1025_gets_nothing_until_a_row_and_a_token_are_free() {
    let limiter = bucket(5_000, 1, SECOND);
    let mut subject = Subject::default();
    for node in 0..1_024 {
        let told = lease(&mut subject, limiter, NOON, node, 1, 1, SECOND * if node == 7 { 3 } else { 9 });
        assert_eq!((told.holding, told.nodes), (1, node + 1));
    }
    let late = |subject: &mut Subject, limiter, now, want| {
        let told = lease(subject, limiter, now, 9_999, 1, want, SECOND);
        (told.holding, told.free, told.outstanding, told.retry_after, told.ttl, told.nodes)
    };
    let wait = RetryAfter::Millis;
    assert_eq!(late(&mut subject, limiter, NOON, 1), (0, 3_976, 1_024, wait(3_000), 0, 1_024));
    assert_eq!(late(&mut subject, limiter, NOON, 0), (0, 3_976, 1_024, wait(0), 0, 1_024));
    assert_eq!(late(&mut subject, bucket(0, 1, SECOND), NOON, 1), (0, 0, 1_024, RetryAfter::Never, 0, 1_024));
    // Who has a row goes on, and may leave.
    assert_eq!(lease(&mut subject, limiter, NOON, 5, 2, 2, SECOND).holding, 2);
    // Nothing is free: the first token after the row is the wait.
    assert!(subject.take(limiter, micros(NOON), cost(3_974)).allowed);
    assert_eq!(subject.debit(limiter, micros(NOON), cost(5)).1, 0);
    assert_eq!(late(&mut subject, limiter, NOON, 1).3, wait(6_000), "5 are owed");
    // Other parameters are remembered, by which all is unused before that.
    let slow = bucket(5_000, 1, 1_000 * SECOND);
    assert_eq!(late(&mut subject, slow, NOON, 1).3, wait(5_005_000), "no longer than until all is unused");
    let gone = lease(&mut subject, limiter, NOON, 6, 2, 0, SECOND);
    assert_eq!((gone.nodes, gone.ttl), (1_023, 0));
    assert_eq!(late(&mut subject, limiter, NOON, 1).5, 1_024, "a row is free");
}

#[test]
fn who_leaves_is_gone_and_so_are_the_expired() {
    let limiter = bucket(1_000, 1, SECOND);
    for leaving in 3..10 {
        let mut subject = Subject::default();
        for node in 0..10 {
            lease(&mut subject, limiter, NOON, node, 5, node + 1, if node < 3 { 10_000 } else { SECOND });
        }
        let later = NOON + 20_000;
        let told = lease(&mut subject, limiter, later, leaving, 6, 0, SECOND);
        assert_eq!((told.holding, told.nodes, told.outstanding), (0, 6, 49 - (leaving + 1)));
        let mut held: Vec<_> = subject.spent_and_rows().1.into_iter().map(|(_, held)| held).collect();
        held.sort_unstable();
        let expected: Vec<_> = (3..10).filter(|&node| node != leaving).map(|node| node + 1).collect();
        assert_eq!(held, expected);
        assert_eq!(lease(&mut subject, limiter, later, leaving, 1, 2, SECOND).holding, 2, "its row is a new one");
    }
}

type Call = fn(&mut Subject, TokenBucket, u64);

/// Whatever the answer, a call that is no mere look finds that the clock went back, and rows end by their ttl from there.
#[test]
fn a_call_that_changes_nothing_else_sets_back() {
    let limiter = bucket(10, 1, SECOND);
    let back = NOON - 100 * SECOND;
    let calls: [(&str, Call); 7] = [
        ("nothing", |_, _, _| ()),
        ("cost 0", |subject, limiter, now| {
            subject.take(limiter, micros(now), Cost::ZERO);
        }),
        ("denied", |subject, limiter, now| {
            subject.take(limiter, micros(now), Cost::ONE);
        }),
        ("repeated", |subject, limiter, now| {
            lease(subject, limiter, now, 1, 1, 5, 4 * SECOND);
        }),
        ("no row", |subject, limiter, now| {
            lease(subject, limiter, now, 2, 1, 0, 4 * SECOND);
        }),
        ("fits not", |subject, limiter, now| {
            subject.debit(limiter, micros(now), Cost::ONE);
        }),
        ("gives nothing", |subject, _, now| {
            subject.refund(micros(now), Cost::ONE, age(10 * SECOND));
        }),
    ];
    for (index, (what, call)) in calls.into_iter().enumerate() {
        let mut subject = Subject::default();
        lease(&mut subject, limiter, NOON, 1, 1, 5, 4 * SECOND);
        subject.debit(limiter, micros(NOON), cost(15));
        call(&mut subject, limiter, back);
        let end = if index < 2 { NOON } else { back } + 4 * SECOND;
        assert_eq!(subject.expiries(), [micros(end)], "{what}");
    }
}

#[test]
fn a_node_is_put_off_once_and_again_after_a_call_that_was_not() {
    let limiter = bucket(10, 1, SECOND);
    let mut subject = Subject::default();
    subject.take(limiter, micros(NOON), cost(8));
    let mut ask = |seq, want| {
        let told = lease(&mut subject, limiter, NOON, 1, seq, want, 9 * SECOND);
        (told.holding, told.retry_after)
    };
    let wait = RetryAfter::Millis;
    assert_eq!(ask(1, 5), (0, wait(3_000)));
    assert_eq!(ask(2, 5), (2, wait(0)), "what there is");
    assert_eq!(ask(3, 5), (0, wait(5_000)), "the 2 are spent");
    assert_eq!(ask(4, 5), (0, wait(1_000)), "until there is any");
    assert_eq!(ask(5, 5), (0, wait(5_000)));
}

/// What was taken so long ago has flowed back by itself.
#[test]
fn a_refund_heeds_its_age() {
    let limiter = bucket(10, 1, SECOND);
    for (seconds, remaining) in [(0, 3), (2, 1), (3, 0), (9, 0)] {
        let mut subject = Subject::default();
        lease(&mut subject, limiter, NOON, 1, 1, 4, 4 * SECOND);
        subject.take(limiter, micros(NOON), cost(6));
        let told = subject.refund(micros(NOON), cost(3), age(seconds * SECOND)).unwrap();
        assert_eq!(told.remaining, remaining, "{seconds} s ago");
    }
}

fn age(micros: u64) -> Age {
    Age::from_micros(micros).unwrap()
}

/// The parts that are spent at a time, by what was at another, rows being forfeited as they expire.
fn spent_at(limiter: TokenBucket, mut at: u64, mut spent: u128, rows: &[(u64, u64)], then: u64) -> u128 {
    let (units, parts) = (u128::from(limiter.rate().units()), u128::from(limiter.rate().micros()));
    let mut outstanding: u64 = rows.iter().map(|row| row.1).sum();
    let mut pass = |to: u64, outstanding: u64| {
        if outstanding <= limiter.capacity().get() {
            spent = spent.saturating_sub(units * u128::from(to - at)).max(u128::from(outstanding) * parts);
        }
        at = to;
        spent
    };
    for &(until, tokens) in rows.iter().take_while(|row| row.0 <= then) {
        pass(until, outstanding);
        outstanding -= tokens;
    }
    pass(then, outstanding)
}

fn first(holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, 1_u64 << 53);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[test]
fn times_heed_every_row() {
    let mut random = Random(5);
    for round in 0..60 {
        let limiter =
            bucket(random.pick(&[300, 5_000, 1_000_000]), random.pick(&[1, 7]), random.pick(&[1_000, 90_000]));
        let capacity = limiter.capacity().get();
        let (nodes, spread) = (random.pick(&[1, 5, 60, 300]), random.pick(&[1, 1_000, 2_000_000, 3_000_000_000]));
        let mut subject = Subject::default();
        for node in 0..nodes {
            let ttl = 10_000 + random.below(spread);
            lease(&mut subject, limiter, NOON, node, 1, random.below(2 * capacity / nodes + 1), ttl);
        }
        if random.one_in(2) {
            subject.debit(limiter, micros(NOON), cost(random.below(capacity)));
        }
        // Now and then the capacity is one that is exceeded.
        let limiter = if random.one_in(4) { bucket(capacity / 3, 3, 70_000) } else { limiter };
        subject.debit(limiter, micros(NOON), Cost::ONE);
        let (spent, mut rows) = subject.spent_and_rows();
        rows.sort_unstable();
        let parts = u128::from(limiter.rate().micros());
        let full = u128::from(limiter.capacity().get()) * parts;
        let spent_then = |then: u64| spent_at(limiter, NOON, spent, &rows, then);
        let last = rows.iter().map(|row| row.0).max().unwrap_or(NOON);
        let unused = first(|wait| spent_then(NOON + wait) == 0 && NOON + wait >= last);
        assert_eq!(subject.unused_at(), Some(micros(NOON + unused)), "round {round}");
        for asked in [1, limiter.capacity().get() / 2 + 1, limiter.capacity().get()] {
            let told = subject.peek(micros(NOON), cost(asked)).unwrap();
            let wait = first(|millis| spent_then(NOON + millis * 1_000) + u128::from(asked) * parts <= full);
            assert_eq!(told.retry_after, RetryAfter::Millis(wait), "round {round}: {asked} of {capacity}");
            assert_eq!(told.reset_after, unused.div_ceil(1_000));
        }
    }
}
