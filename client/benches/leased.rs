//! How many requests one core decides from a lease: `cargo bench -p redis-rl-client`.
//!
//! Needs `redis-server`. What is measured is printed, not judged.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[allow(dead_code, unused_imports, reason = "shared with the tests of the module, which need other parts")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use redis_rl_client::{Limiter, Policy, Rate, Source};
use tokio::runtime::Runtime;

use support::Server;

/// So much that it is never used up.
const PER_SECOND: u64 = 1_000_000_000;

fn decisions(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let server = Server::new();
    let policy = Policy::token_bucket("hot", PER_SECOND, Rate::per_second(PER_SECOND)).unwrap().leased().unwrap();
    let limiter = Limiter::builder(format!("redis://127.0.0.1:{}", server.port())).deadline(Duration::from_secs(1));
    let limiter = limiter.connect_lazy().unwrap();
    let mut group = criterion.benchmark_group("one core");
    group.throughput(Throughput::Elements(1));
    let check = async || black_box(limiter.check(&policy, "all").await);
    runtime.block_on(async { while check().await.source != Source::Lease {} });
    let mut elsewhere = 0_u64;
    group.bench_function("a decision from a lease", |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let began = Instant::now();
                for _ in 0..times {
                    elsewhere += u64::from(check().await.source != Source::Lease);
                }
                began.elapsed()
            })
        });
    });
    eprintln!("{elsewhere} of these were not from the lease");
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
