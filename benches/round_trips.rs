//! Calls over a socket to a real server, the module's beside Lua scripts for the same limits and beside INCR: one call a round trip, and
//! sixteen a pipeline. All calls are allowed and of one key each. Times hold the client and the network, too; what only the server spends
//! is told by `make bench`.
//!
//! `cargo bench --bench round_trips`. `RL_SERVER` chooses the server (a path; else `redis-server`).

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, unused_imports, reason = "shared with the tests, which need other parts")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::cell::Cell;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use redis::{Cmd, Connection, ConnectionLike, Pipeline, Value};
use support::Server;

/// Never reached.
const LIMIT: u64 = 1_000_000_000;
const SECOND: u64 = 1;
const MINUTE: u64 = 60;

const SCRIPTS: [&str; 4] = [
    include_str!("lua/token_bucket.lua"),
    include_str!("lua/gcra.lua"),
    include_str!("lua/sliding_window.lua"),
    include_str!("lua/sliding_log.lua"),
];

/// The words of a call; `{call}` is a number that no other call has.
struct Case {
    name: String,
    calls: Vec<String>,
}

fn cases(connection: &mut Connection) -> Vec<Case> {
    let [bucket, gcra, window, log] = SCRIPTS.map(|script| {
        let loaded: String = redis::cmd("SCRIPT").arg("LOAD").arg(script).query(connection).unwrap();
        format!("EVALSHA {loaded} 1")
    });
    let calls = [
        ("INCR", "INCR incr".to_owned()),
        ("INCR and EXPIRE NX", format!("INCR both|EXPIRE both {MINUTE} NX")),
        ("RL.FIXED", format!("RL.FIXED fixed {LIMIT} {MINUTE}")),
        ("RL.TOKENBUCKET", format!("RL.TOKENBUCKET bucket {LIMIT} 1000000")),
        ("Lua token bucket", format!("{bucket} lua-bucket {LIMIT} 1000000 1")),
        ("Lua GCRA", format!("{gcra} lua-gcra {LIMIT} 1000000 1")),
        ("RL.SLIDING", format!("RL.SLIDING window {LIMIT} {MINUTE}")),
        ("Lua sliding window", format!("{window} lua-window {LIMIT} {}000 1", MINUTE)),
        // A second, so that logs are as long as the server is quick.
        ("RL.SLIDINGLOG", format!("RL.SLIDINGLOG log {LIMIT} {SECOND}")),
        ("Lua sliding log", format!("{log} lua-log {LIMIT} {}000 {{call}}", SECOND)),
    ];
    let case = |(name, calls): (&str, String)| Case {
        name: name.to_owned(),
        calls: calls.split('|').map(str::to_owned).collect(),
    };
    calls.into_iter().map(case).collect()
}

/// So many calls of a case, as the server reads them, and how many replies there are.
fn packed(case: &Case, calls: usize, made: &Cell<u64>) -> (Vec<u8>, usize) {
    let mut pipeline = Pipeline::new();
    for _ in 0..calls {
        made.set(made.get() + 1);
        for call in &case.calls {
            let mut command = Cmd::new();
            for word in call.replace("{call}", &made.get().to_string()).split(' ') {
                command.arg(word);
            }
            pipeline.add_command(command);
        }
    }
    (pipeline.get_packed_pipeline(), calls * case.calls.len())
}

fn send(connection: &mut Connection, (bytes, replies): &(Vec<u8>, usize)) -> Vec<Value> {
    connection.req_packed_commands(bytes, 0, *replies).unwrap()
}

fn round_trips(criterion: &mut Criterion) {
    let server = Server::new();
    let mut connection = server.connect();
    let cases = cases(&mut connection);
    let made = Cell::new(0);
    for (name, calls) in [("one call", 1), ("16 a pipeline", 16)] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(calls as u64));
        for case in &cases {
            for reply in send(&mut connection, &packed(case, calls, &made)) {
                let is_allowed = match reply {
                    Value::Int(_) => true,
                    Value::Array(fields) => fields.first() == Some(&Value::Int(1)),
                    _ => false,
                };
                assert!(is_allowed, "{} is not allowed", case.name);
            }
            group.bench_function(&case.name, |bencher| {
                let make = || packed(case, calls, &made);
                bencher.iter_batched_ref(make, |call| send(&mut connection, call), BatchSize::SmallInput);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, round_trips);
criterion_main!(benches);
