//! What a decision costs, and what the way to it costs: arguments from text, states from bytes and back.
//!
//! `cargo bench -p rl-limiter`. A call in a server is one of each: parse, then `stored`.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rl_limiter::layout::State;
use rl_limiter::{
    Age, Capacity, Cost, FixedWindow, LeakyBucket, Limit, Limiter, Micros, Rate, SlidingWindow, TokenBucket, Window,
};

/// A Monday at noon in 2026, UTC.
const NOON: u64 = 1_796_040_000_000_000;

fn window(limit: u64, window: &str) -> FixedWindow {
    FixedWindow::new(Limit::new(limit).unwrap(), Window::parse("window", window.as_bytes()).unwrap())
}

fn bucket(capacity: u64, rate: &str) -> TokenBucket {
    TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::parse("rate", rate.as_bytes()).unwrap())
}

/// A limiter that is in use, other parameters for the same key, and what the row is called. A bucket is wide if what it
/// may have spent takes more than 64 bits.
fn windows() -> [(&'static str, FixedWindow, FixedWindow); 1] {
    [("fixed window", window(1_000, "60"), window(500, "1h"))]
}

fn sliding_windows() -> [(&'static str, SlidingWindow, SlidingWindow); 1] {
    let sliding = |like: FixedWindow| SlidingWindow::new(like.limit(), like.window());
    [("sliding window", sliding(window(1_000, "60")), sliding(window(500, "1h")))]
}

fn leaky_buckets() -> [(&'static str, LeakyBucket, LeakyBucket); 1] {
    let leaky = |like: TokenBucket| LeakyBucket::new(like.capacity(), like.rate());
    [("leaky bucket", leaky(bucket(1_000, "100/60")), leaky(bucket(2_000, "7/3")))]
}

fn buckets() -> [(&'static str, TokenBucket, TokenBucket); 2] {
    [
        ("token bucket", bucket(1_000, "100/60"), bucket(2_000, "7/3")),
        ("wide token bucket", bucket(1 << 50, "123.456789012345"), bucket(1 << 51, "0.123456789012")),
    ]
}

fn decisions(criterion: &mut Criterion) {
    windows().into_iter().for_each(|(name, limiter, other)| decide(criterion, name, limiter, other));
    sliding_windows().into_iter().for_each(|(name, limiter, other)| decide(criterion, name, limiter, other));
    buckets().into_iter().for_each(|(name, limiter, other)| decide(criterion, name, limiter, other));
    leaky_buckets().into_iter().for_each(|(name, limiter, other)| decide(criterion, name, limiter, other));
}

fn decide<L: Limiter>(criterion: &mut Criterion, name: &str, limiter: L, other: L) {
    let (used, exhausted, soon) = in_use(limiter);
    let most = Cost::new(used_up(limiter)).unwrap();
    let mut group = criterion.benchmark_group(name);
    let mut row = |row: &str, limiter: L, state: Option<L::State>, cost: Cost, allowed: bool| {
        assert_eq!(limiter.decide(state, soon, cost).decision.allowed, allowed, "{name}: {row}");
        group.bench_function(row, |bencher| {
            bencher.iter(|| black_box(limiter).decide(black_box(state), black_box(soon), black_box(cost)));
        });
    };
    row("new key", limiter, None, Cost::ONE, true);
    row("allowed", limiter, Some(used), Cost::ONE, true);
    row("denied", limiter, Some(exhausted), most, false);
    row("other parameters", other, Some(used), Cost::ONE, true);
    group.bench_function("stored", |bencher| {
        let stored = used.into().encode();
        bencher.iter(|| {
            let state = State::decode(black_box(&stored)).ok().and_then(|state| L::State::try_from(state).ok());
            let outcome = black_box(limiter).decide(state, black_box(soon), black_box(Cost::ONE));
            outcome.next.map(|next| next.into().encode())
        });
    });
    group.finish();
}

/// A state with little used, one with all used, and a moment soon after.
fn in_use<L: Limiter>(limiter: L) -> (L::State, L::State, Micros) {
    let [noon, soon] = [NOON, NOON + 7_891].map(|at| Micros::new(at).unwrap());
    let used = limiter.decide(None, noon, Cost::new(3).unwrap()).next.unwrap();
    let exhausted = limiter.decide(None, noon, Cost::new(used_up(limiter)).unwrap()).next.unwrap();
    (used, exhausted, soon)
}

/// All that can be had at once.
fn used_up<L: Limiter>(limiter: L) -> u64 {
    limiter.peek(None, Micros::new(NOON).unwrap(), Cost::ONE).limit
}

fn arguments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for text in ["1", "1000", "9007199254740991"] {
        group.bench_function(format!("limit {text}"), |bencher| {
            bencher.iter(|| Limit::parse("limit", black_box(text.as_bytes())));
        });
    }
    for text in ["1", "9007199254740991"] {
        group.bench_function(format!("cost {text}"), |bencher| {
            bencher.iter(|| Cost::parse("cost", black_box(text.as_bytes())));
        });
    }
    for text in ["60", "1500ms"] {
        group.bench_function(format!("age {text}"), |bencher| {
            bencher.iter(|| Age::parse("age", black_box(text.as_bytes())));
        });
    }
    for text in ["60", "250ms", "1h", "0.0001220703125w"] {
        group.bench_function(format!("window {text}"), |bencher| {
            bencher.iter(|| Window::parse("window", black_box(text.as_bytes())));
        });
    }
    for text in ["10", "100/60", "5/h", "1000000000/d", "123.456789012345"] {
        group.bench_function(format!("rate {text}"), |bencher| {
            bencher.iter(|| Rate::parse("rate", black_box(text.as_bytes())));
        });
    }
    group.finish();
}

fn layouts(criterion: &mut Criterion) {
    let fixed = windows().map(|(name, limiter, _)| (name, in_use(limiter).0.into()));
    let sliding = sliding_windows().map(|(name, limiter, _)| (name, in_use(limiter).0.into()));
    let buckets = buckets().map(|(name, limiter, _)| (name, in_use(limiter).0.into()));
    let leaky = leaky_buckets().map(|(name, limiter, _)| (name, in_use(limiter).0.into()));
    let mut group = criterion.benchmark_group("layout");
    for (name, state) in fixed.into_iter().chain(sliding).chain(buckets).chain(leaky) {
        let bytes: rl_limiter::layout::Encoded = State::encode(&state);
        group.bench_function(format!("decode {name}"), |bencher| bencher.iter(|| State::decode(black_box(&bytes))));
        group.bench_function(format!("encode {name}"), |bencher| bencher.iter(|| black_box(&state).encode()));
    }
    group.finish();
}

criterion_group!(benches, decisions, arguments, layouts);
criterion_main!(benches);
