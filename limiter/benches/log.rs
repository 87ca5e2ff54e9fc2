//! What a sliding window log costs by its length. A decision is made on bytes that have been read; a call in a server is one of each: read
//! what is stored, decide, change it in place.
//!
//! `cargo bench -p rl-limiter --bench log`

#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rl_limiter::layout::Stored;
use rl_limiter::{Cost, Limit, Micros, Plan, SlidingLog, Window, sliding_log};

/// A Monday at noon in 2026, UTC.
const NOON: u64 = 1_796_040_000_000_000;
const HOUR: u64 = 3_600_000_000;
const MOST: u32 = 1_000_000;

fn micros(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn read(bytes: &[u8]) -> Option<sliding_log::State<'_>> {
    match Stored::read(bytes) {
        Ok(Stored::SlidingLog(log)) => Some(log),
        _ => None,
    }
}

fn take(bytes: &mut Vec<u8>, limiter: SlidingLog, now: u64) {
    let plan = limiter.decide(read(bytes), micros(now), Cost::ONE, MOST).unwrap().next.unwrap();
    if plan.fits() {
        plan.carry_out(bytes);
    } else {
        *bytes = plan.make(bytes);
    }
}

fn logs(criterion: &mut Criterion) {
    for entries in [10, 1_000, 100_000] {
        let log = |limit| SlidingLog::new(Limit::new(limit).unwrap(), Window::from_micros(HOUR).unwrap());
        let (free, full) = (log(2 * entries), log(entries));
        // They leave the window as quickly as others come.
        let step = HOUR / entries;
        let mut bytes = Vec::new();
        (0..entries).for_each(|entry| take(&mut bytes, free, NOON + entry * step));
        let end = NOON + entries * step;
        let mut group = criterion.benchmark_group(format!("log of {entries} entries"));
        let state = read(&bytes);
        // Denied until the oldest entry leaves, or until half of them have.
        let rows = [("allowed", free, 1), ("denied", full, 1), ("denied by half", full, entries / 2)];
        for (row, limiter, cost) in rows {
            let (now, cost) = (micros(end - 1), Cost::new(cost).unwrap());
            assert_eq!(limiter.decide(state, now, cost, MOST).unwrap().decision.allowed, row == "allowed");
            group.bench_function(row, |bencher| {
                bencher.iter(|| limiter.decide(black_box(state), black_box(now), black_box(cost), MOST).map(drop));
            });
        }
        group.bench_function("read", |bencher| bencher.iter(|| read(black_box(&bytes)).is_some()));
        let mut now = end;
        let mut bytes = bytes.clone();
        group.bench_function("a whole call", |bencher| {
            bencher.iter(|| {
                now += step;
                take(&mut bytes, free, now);
            });
        });
        group.finish();
    }
}

criterion_group!(benches, logs);
criterion_main!(benches);
