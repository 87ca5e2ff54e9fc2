//! What calls cost that look at many rows: leases of a bucket, and holders of places. A call in a server is one of each: read what is
//! stored, decide, change it in place, and see when it will be unused.
//!
//! `cargo bench -p rl-limiter --bench rows`

#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rl_limiter::concurrency::{self, MOST_HOLDERS, Request};
use rl_limiter::layout::Stored;
use rl_limiter::lease::{self, Ask, Seq, Ttl};
use rl_limiter::{Capacity, Concurrency, Cost, Limit, Micros, Name, Plan, Rate, TokenBucket, Window};

/// A Monday at noon in 2026, UTC.
const NOON: u64 = 1_796_040_000_000_000;
const HOUR: u64 = 3_600_000_000;
const ROWS: [u64; 4] = [1, 10, 100, 1_000];

fn micros(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn apply(bytes: &mut Vec<u8>, plan: &impl Plan) {
    if !plan.fits() {
        *bytes = plan.make(bytes);
        return;
    }
    plan.carry_out(bytes);
    if black_box(plan.unused_within()).is_none() {
        black_box(plan.unused_at(bytes));
    }
}

fn leases(bytes: &[u8]) -> Option<lease::State<'_>> {
    match Stored::read(bytes) {
        Ok(Stored::Leases(state)) => Some(state),
        _ => None,
    }
}

/// A node that holds a token says so, and wants one.
fn renew(bytes: &mut Vec<u8>, bucket: TokenBucket, now: u64, node: &str, seq: u64) {
    let ask = Ask {
        node: Name::new(node.as_bytes()).unwrap(),
        seq: Seq::new(seq).unwrap(),
        have: Cost::ONE,
        want: Cost::ONE,
        ttl: Ttl::from_micros(HOUR).unwrap(),
        min: Cost::ZERO,
    };
    let plan = bucket.lease(leases(bytes), micros(now), &ask).next.unwrap();
    apply(bytes, &plan);
}

fn of_leases(criterion: &mut Criterion) {
    let bucket = TokenBucket::new(Capacity::new(1_000_000).unwrap(), Rate::new(1, HOUR).unwrap());
    let mut group = criterion.benchmark_group("lease");
    for nodes in ROWS.map(|rows| if rows == 1_000 { 1_024 } else { rows }) {
        let mut full = Vec::new();
        (0..nodes).for_each(|node| renew(&mut full, bucket, NOON + node, &format!("node-{node:08}"), 1));
        let (mut bytes, mut calls) = (full.clone(), 1);
        group.bench_function(format!("renewal, {nodes} rows"), |bencher| {
            bencher.iter(|| {
                calls += 1;
                renew(&mut bytes, bucket, NOON + HOUR / 2 + calls, "node-00000000", calls);
            });
        });
        for (what, units) in [("allowed", 1), ("denied", 1_000_000)] {
            let (mut bytes, mut now) = (full.clone(), NOON + HOUR / 2);
            group.bench_function(format!("token bucket {what}, {nodes} rows"), |bencher| {
                bencher.iter(|| {
                    now += 1;
                    let outcome = leases(&bytes).unwrap().decide(bucket, micros(now), cost(units));
                    if let Some(plan) = outcome.next {
                        apply(&mut bytes, &plan);
                    }
                    // So much is taken that the bucket would be empty at some time.
                    if now % 100_000 == 0 {
                        bytes.clone_from(&full);
                    }
                    outcome.decision
                });
            });
        }
    }
    group.finish();
}

fn holders(bytes: &[u8]) -> Option<concurrency::State<'_>> {
    match Stored::read(bytes) {
        Ok(Stored::Concurrency(state)) => Some(state),
        _ => None,
    }
}

fn request(holder: &str, units: u64) -> Request<'_> {
    Request { cost: cost(units), ..Request::of(Name::new(holder.as_bytes()).unwrap()) }
}

fn of_holders(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("concurrency");
    for count in ROWS {
        let limiter = Concurrency::new(Limit::new(7 * count).unwrap(), Window::from_micros(HOUR).unwrap());
        let hold = |bytes: &mut Vec<u8>, now: u64, holder: &str| {
            let outcome = limiter.decide(holders(bytes), micros(now), request(holder, 7), MOST_HOLDERS).unwrap();
            apply(bytes, &outcome.next.unwrap());
        };
        let mut full = Vec::new();
        (0..count).for_each(|holder| hold(&mut full, NOON + holder, &format!("holder-{holder}")));
        let (mut bytes, mut now) = (full.clone(), NOON + 1_000_000);
        group.bench_function(format!("renewal, {count} holders"), |bencher| {
            bencher.iter(|| {
                now += 1;
                hold(&mut bytes, now, "holder-0");
            });
        });
        for (what, units) in [("denied", 1), ("denied, waits for many", 5 * count)] {
            group.bench_function(format!("{what}, {count} holders"), |bencher| {
                let asked = request("another", units);
                bencher.iter(|| limiter.decide(holders(&full), micros(NOON + 1_000_000), asked, MOST_HOLDERS));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, of_leases, of_holders);
criterion_main!(benches);
