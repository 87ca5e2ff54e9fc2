//! Whether a server answers before what it answered is in the append-only file, tried with nothing of ours: plain `INCR`
//! by connections that have a key each. What it does with plain counters it does with limiters.

use std::thread;
use std::time::Duration;

use redis::Connection;

use crate::support::{Options, ask, send};
use crate::traffic::kill;

const COUNTERS: usize = 16;
const KILLS: usize = 20;

/// How many counters are behind what was answered, after so many times `kill -9` under load.
fn counters_behind(io_threads: &str) -> usize {
    let options = Options::new().module(None).set("appendonly", "yes").set("appendfsync", "always");
    let mut server = options.set("io-threads", io_threads).start();
    let mut behind = 0;
    for _ in 0..KILLS {
        let answered: Vec<i64> = thread::scope(|scope| {
            let callers = (0..COUNTERS).map(|counter| (counter, server.connect()));
            let count = |counter, mut redis: Connection| {
                let increment = || send::<i64>(&mut redis, &format!("INCR {counter}")).ok();
                std::iter::from_fn(increment).last().unwrap_or(0)
            };
            let callers: Vec<_> = callers.map(|(counter, redis)| scope.spawn(move || count(counter, redis))).collect();
            thread::sleep(Duration::from_millis(300));
            kill(&server);
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        server.kill();
        server.start_again(|options| options);
        let mut redis = server.connect();
        let found = (0..COUNTERS).map(|counter| ask::<Option<i64>>(&mut redis, &format!("GET {counter}")).unwrap_or(0));
        behind += found.zip(answered).filter(|(found, answered)| found < answered).count();
    }
    behind
}

#[test]
#[ignore = "long: forty crashes; it prints what docs/persistence.md tells"]
fn what_plain_counters_lose_with_io_threads() {
    for io_threads in ["1", "4"] {
        let behind = counters_behind(io_threads);
        println!(
            "plain INCR, appendfsync always, io-threads {io_threads}: {behind} of {} counters behind what was answered",
            COUNTERS * KILLS
        );
        assert!(io_threads != "1" || behind == 0);
    }
}
