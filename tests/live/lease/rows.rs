//! Many rows: how many there may be, what is replicated of them, what they cost, and that they last.

use std::time::Instant;

use redis::{Connection, Value};

use super::lease;
use crate::support::{Options, SECOND, Server, ask, decide, digest, offset, replica_of, send, wait_for_replicas};

/// Gives so many nodes a token each, for a time.
fn fill(redis: &mut Connection, nodes: u64, ttl: &str) {
    for node in 0..nodes {
        assert_eq!(lease(redis, &format!("k 1000000 1/h node-{node:08} 1 0 1 {ttl}"))[0], 1);
    }
}

#[test]
fn row_1025_is_told_when_one_is_free() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    fill(&mut redis, 1, "1s");
    for node in 1..1_024 {
        lease(&mut redis, &format!("k 1000000 1/h node-{node:08} 1 0 1 2s"));
    }
    let before = digest(&mut redis);
    assert_eq!(lease(&mut redis, "k 1000000 1/h late 1 0 1 1s"), [0, 998_976, 1_024, 1_000, 0, 1_024]);
    assert_eq!(lease(&mut redis, "k 1000000 1/h late 2 0 0 1s"), [0, 998_976, 1_024, 0, 0, 1_024]);
    assert_eq!(lease(&mut redis, "k 0 1/h late 3 0 1 1s"), [0, 0, 1_024, -1, 0, 1_024]);
    assert_eq!(digest(&mut redis), before);
    assert_eq!(lease(&mut redis, "k 1000000 1/h node-00000005 2 1 3 2s")[0], 3, "who has a row goes on");
    server.clock().advance(SECOND - 1);
    assert_eq!(lease(&mut redis, "k 1000000 1/h late 4 0 1 1s")[3], 1);
    server.clock().advance(1);
    assert_eq!(lease(&mut redis, "k 1000000 1/h late 5 0 1 1s")[..2], [1, 998_973]);
    // Told as a whole where there are few, else 100.
    let told: Vec<Value> = ask(&mut redis, "RL.INSPECT k");
    let text = format!("{told:?}");
    assert_eq!(text.matches("node-").count(), 100);
    // All are gone: the next call that writes leaves a plain bucket.
    server.clock().advance(10 * SECOND);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 1000000 1/h")[0], 1);
    assert_eq!(ask::<i64>(&mut redis, "STRLEN k"), 44);
}

#[test]
fn replicas_are_told_one_row_and_the_head() {
    let primary = Options::new().set("repl-ping-replica-period", "3600").start();
    let mut redis = primary.connect();
    fill(&mut redis, 300, "1h");
    let with = replica_of(&primary, Options::new());
    let without = replica_of(&primary, Options::new().module(None));
    wait_for_replicas(&mut redis, 2);
    let begin = offset(&mut redis);
    for seq in 2..102 {
        let node = seq * 37 % 300;
        assert_eq!(lease(&mut redis, &format!("k 1000000 1/h node-{node:08} {seq} 1 2 1h"))[0], 2);
    }
    let bytes = (offset(&mut redis) - begin) / 100;
    println!("{bytes} bytes a call replicates, of a state of {}", ask::<i64>(&mut redis, "STRLEN k"));
    assert!(bytes < 400, "{bytes} bytes");
    // Gone, come, taken beside them, given back.
    for seq in 200..230 {
        lease(&mut redis, &format!("k 1000000 1/h node-{:08} {seq} 1 0 1h", seq % 300));
        lease(&mut redis, &format!("k 1000000 1/h {} 1 0 1 1h", "x".repeat(seq - 180)));
        decide(&mut redis, &format!("RL.TOKENBUCKET k 1000000 1/h {seq}"));
        decide(&mut redis, "RL.REFUND k 5");
        ask::<Vec<i64>>(&mut redis, "RL.DEBIT k 1000000 1/h 7");
    }
    wait_for_replicas(&mut redis, 2);
    let expected = digest(&mut redis);
    assert_eq!(digest(&mut with.connect()), expected);
    assert_eq!(digest(&mut without.connect()), expected);
    assert_eq!(decide(&mut with.connect(), "RL.PEEK k")[..3], decide(&mut redis, "RL.PEEK k")[..3]);
}

#[test]
fn rows_last_over_a_restart_and_a_move() {
    let mut server = Options::new().with_clock().set("appendonly", "yes").set("appendfsync", "always").start();
    let mut redis = server.connect();
    fill(&mut redis, 20, "1h");
    let before = digest(&mut redis);
    server.kill();
    server.start_again(|options| options);
    let mut redis = server.connect();
    assert_eq!(digest(&mut redis), before);
    assert_eq!(lease(&mut redis, "k 1000000 1/h node-00000003 1 0 9 1h")[..1], [1], "a repeated call is known");
    ask::<()>(&mut redis, "SAVE");
    ask::<()>(&mut redis, "DEBUG RELOAD");
    ask::<()>(&mut redis, "COPY k copy");
    assert_eq!(lease(&mut redis, "copy 1000000 1/h node-00000003 2 1 0 1h"), [0, 999_981, 19, 0, 0, 19]);
    let left: i64 = ask(&mut redis, "PTTL k");
    assert!((72_000_000..=90_000_000).contains(&left), "20 tokens at 1 an hour: {left}");
}

#[test]
fn planted_bytes_do_no_harm() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    fill(&mut redis, 5, "1h");
    let state: Vec<u8> = ask(&mut redis, "GET k");
    let mut seed = 7_u64;
    let mut taken_for_limiters = 0;
    for _ in 0..3_000 {
        let mut planted = state.clone();
        for _ in 0..=seed % 3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(seed >> 33).unwrap() % planted.len();
            planted[at] = seed.to_le_bytes()[2];
        }
        redis::cmd("SET").arg("k").arg(&planted).exec(&mut redis).unwrap();
        for line in [
            "RL.LEASE k 1000000 1/h node-00000003 9 1 50 1s MIN 9",
            "RL.LEASE k 1000 1/h new 9 1 50 1s",
            "RL.LEASE k 1000000 1/h node-00000002 9 1 0 1s",
            "RL.TOKENBUCKET k 1000000 1/h 5",
            "RL.DEBIT k 1000 1 5",
            "RL.REFUND k 5",
            "RL.PEEK k",
            "RL.INSPECT k",
        ] {
            match send::<Value>(&mut redis, line) {
                Ok(_) => taken_for_limiters += 1,
                Err(error) => assert_eq!(error.code(), Some("WRONGTYPE"), "{line}: {error}"),
            }
        }
    }
    assert!(taken_for_limiters > 3_000);
    for length in 0..state.len() {
        redis::cmd("SET").arg("k").arg(&state[..length]).exec(&mut redis).unwrap();
        let refused = send::<Value>(&mut redis, "RL.TOKENBUCKET k 1000000 1/h").is_err();
        assert!(refused || state[length..].iter().all(|&byte| byte == 0), "cut to {length}");
    }
    assert!(!server.log().contains("internal error"));
}

/// Makes the next call of a load.
type NextCall = Box<dyn FnMut() -> String>;

#[test]
fn a_call_looks_at_all_rows() {
    for nodes in [1, 100, 1_024] {
        let server = Server::new();
        let mut redis = server.connect();
        fill(&mut redis, nodes, "1h");
        let mut seq = 1;
        let mut lines: Vec<(&str, NextCall)> = vec![
            (
                "lease",
                Box::new(move || {
                    seq += 1;
                    format!("RL.LEASE k 1000000 1/h node-00000000 {seq} 1 1 1h")
                }),
            ),
            ("token bucket", Box::new(|| "RL.TOKENBUCKET k 1000000 1/h 1".to_owned())),
            ("denied", Box::new(|| "RL.TOKENBUCKET k 1000000 1/h 1000000".to_owned())),
        ];
        for (what, line) in &mut lines {
            let lines: Vec<String> = (0..2_000).map(|_| line()).collect();
            ask::<()>(&mut redis, "CONFIG RESETSTAT");
            let started = Instant::now();
            for chunk in lines.chunks(100) {
                let mut pipe = redis::pipe();
                for line in chunk {
                    let mut words = line.split(' ');
                    let command = pipe.cmd(words.next().unwrap());
                    words.for_each(|word| {
                        command.arg(word);
                    });
                }
                pipe.query::<Vec<Value>>(&mut redis).unwrap();
            }
            let each = started.elapsed() / 2_000;
            let info: String = ask(&mut redis, "INFO commandstats");
            let own = info.lines().find(|line| line.starts_with("cmdstat_rl.")).unwrap_or_default().to_owned();
            println!("{nodes} rows, {what}: {each:?} a call, {own}");
        }
    }
}
