//! What eviction means for limits: a server that holds a cache and limiters and has too little memory for both.

use redis::Connection;

use crate::support::{Options, SECOND, ask, info, send};

/// Callers that call each second, and such as call once in fifty.
const HOT: usize = 50;
const COLD: usize = 500;
const ROUNDS: usize = 600;
const LIMIT: usize = 10;
/// Values that the cache takes in a second, and how many of those it has are read.
const WRITES: usize = 40;
const READS: usize = 80;

/// Units that were admitted beyond the limit, and calls that were answered OOM.
#[derive(Default)]
struct Beyond {
    hot: usize,
    cold: usize,
    refused: usize,
}

/// What is in the cache expires after an hour, if `expires`. The window is longer than what is left of the test.
fn press(policy: &str, expires: bool, window: &str) -> (Beyond, String) {
    let mut server = Options::new().set("maxmemory-policy", policy).with_clock().start();
    let mut redis = server.connect();
    let used: u64 = info(&mut redis, "memory", "used_memory").unwrap().parse().unwrap();
    ask::<()>(&mut redis, &format!("CONFIG SET maxmemory {}", used + 3_000_000));
    let mut admitted = vec![0; HOT + COLD];
    let mut beyond = Beyond::default();
    let mut written = 0;
    for round in 0..ROUNDS {
        server.clock().advance(SECOND);
        cache(&mut redis, expires, &mut written, round);
        let cold = (0..COLD).filter(|caller| caller % 50 == round % 50).map(|caller| HOT + caller);
        for caller in (0..HOT).chain(cold) {
            match send::<Vec<i64>>(&mut redis, &format!("RL.FIXED caller:{caller} {LIMIT} {window}")) {
                Ok(answer) => admitted[caller] += usize::try_from(answer[0]).unwrap(),
                Err(error) => {
                    assert_eq!(error.code(), Some("OOM"));
                    beyond.refused += 1;
                }
            }
        }
    }
    let more = |admitted: &[usize]| admitted.iter().map(|admitted| admitted.saturating_sub(LIMIT)).sum();
    (beyond.hot, beyond.cold) = (more(&admitted[..HOT]), more(&admitted[HOT..]));
    (beyond, info(&mut redis, "stats", "evicted_keys").unwrap())
}

/// A second of a cache: new values, and reads of some of the latest thousand.
fn cache(redis: &mut Connection, expires: bool, written: &mut usize, round: usize) {
    let value = "x".repeat(1_000);
    let mut pipe = redis::pipe();
    pipe.ignore_errors();
    for _ in 0..WRITES {
        *written += 1;
        let set = pipe.cmd("SET").arg(format!("cache:{written}")).arg(&value);
        if expires { set.arg("EX").arg(3_600) } else { set }.ignore();
    }
    for read in 0..READS {
        pipe.cmd("GET").arg(format!("cache:{}", written.saturating_sub(read * 7 + round % 7))).ignore();
    }
    let _ = pipe.query::<redis::Value>(redis);
}

/// A policy, and the window of the limits: the cache's hour lies between the two.
const CASES: [(&str, &str); 8] = [
    ("noeviction", "1d"),
    ("allkeys-lru", "1d"),
    ("allkeys-lfu", "1d"),
    ("allkeys-random", "1d"),
    ("volatile-lru", "1d"),
    ("volatile-lfu", "1d"),
    ("volatile-ttl", "1d"),
    ("volatile-ttl", "30m"),
];

#[test]
#[ignore = "measures: prints a table"]
fn what_eviction_grants_beyond_limits() {
    let (hot_calls, cold_calls) = (HOT * ROUNDS, COLD * ROUNDS / 50);
    println!(
        "{LIMIT} units a window for each of {HOT} callers who make {hot_calls} calls, and of {COLD} who make {cold_calls}."
    );
    println!(
        "Of those {} and {} must be denied; and a cache no longer fits. Admitted all the same:",
        hot_calls - HOT * LIMIT,
        cold_calls - COLD * LIMIT
    );
    println!("{:<44} {:>8} {:>8} {:>8} {:>8}", "policy, window, cache", "hot", "cold", "OOM", "evicted");
    for (policy, window) in CASES {
        for expires in [true, false] {
            let (Beyond { hot, cold, refused }, evicted) = press(policy, expires, window);
            let case = format!("{policy}, {window}, {}", if expires { "expires in 1h" } else { "does not expire" });
            println!("{case:<44} {hot:>8} {cold:>8} {refused:>8} {evicted:>8}");
            assert!(policy != "noeviction" || hot + cold == 0, "what is not evicted is not forgotten");
        }
    }
}
