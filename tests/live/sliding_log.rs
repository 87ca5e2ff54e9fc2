//! The sliding window log: a limiter that is not a few numbers.

use redis::{Connection, Value};

use crate::support::{
    NOON, Options, Server, ask, decide, digest, error, info, offset, replica_of, send, send_words, wait_for_replicas,
};

/// A fact that `RL.INSPECT` tells.
fn fact(redis: &mut Connection, key: &str, wanted: &str) -> i64 {
    let told: Vec<Value> = ask(redis, &format!("RL.INSPECT {key}"));
    let name = format!("{wanted:?}");
    let at = told.iter().position(|field| format!("{field:?}").contains(&name)).unwrap();
    match told[at + 1] {
        Value::Int(number) => number,
        ref other => panic!("{wanted} is {other:?}"),
    }
}

#[test]
fn an_entry_counts_for_one_window() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 10 1m 6"), [1, 10, 4, 0, 60_000]);
    server.clock().advance(20_000_000);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 10 1m 3"), [1, 10, 1, 0, 60_000]);
    server.clock().advance(20_000_000);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 10 1m 11")[3], -1);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 10 1m 0")[..3], [1, 10, 1]);
    assert_eq!(decide(&mut redis, "RL.PEEK k")[..3], [1, 10, 1]);
    server.clock().advance(21_000_000);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 10 1m 5")[..3], [1, 10, 2]);
    assert!(error(&mut redis, "RL.SLIDING k 10 1m").contains("holds a sliding window log limiter"));
    server.clock().advance(61_000_000);
    assert_eq!(ask::<Value>(&mut redis, "RL.PEEK k"), Value::Nil);
    assert_eq!(decide(&mut redis, "RL.SLIDING k 10 1m")[0], 1, "an unused log is as good as none");
}

#[test]
fn a_refund_with_an_age_takes_the_newest_that_old_and_without_one_the_oldest() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for _ in 0..3 {
        decide(&mut redis, "RL.SLIDINGLOG k 10 1m 2");
        server.clock().advance(10_000_000);
    }
    assert_eq!(decide(&mut redis, "RL.REFUND k 1 AGE 15")[2], 5);
    assert_eq!(decide(&mut redis, "RL.REFUND k 5 AGE 25")[2], 7, "of the first only");
    assert_eq!(decide(&mut redis, "RL.REFUND k 1")[2], 8);
    let reset = decide(&mut redis, "RL.PEEK k")[4];
    assert!((49_990..=50_000).contains(&reset), "{reset}: what is left was taken last");
    assert_eq!(decide(&mut redis, "RL.REFUND k 9"), [1, 10, 10, 0, 0]);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0);
}

#[test]
fn inspect_tells_the_newest_entries() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let mut expected = Vec::new();
    for call in 1..=120 {
        decide(&mut redis, &format!("RL.SLIDINGLOG k 10000 1h {call}"));
        expected.insert(0, call);
        server.clock().advance(1_000_000);
    }
    let told: Vec<Value> = ask(&mut redis, "RL.INSPECT k");
    let rows: Vec<(i64, i64)> = redis::from_redis_value(told[13].clone()).unwrap();
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), expected[..100]);
    assert!(rows.iter().map(|row| row.0).is_sorted_by(|newer, older| newer - older == 1_000));
    assert_eq!(fact(&mut redis, "k", "entries"), 120);
}

#[test]
fn an_entry_takes_at_most_ten_bytes_and_a_call_sends_few() {
    let primary = Server::new();
    let mut redis = primary.connect();
    let replica = replica_of(&primary, Options::new().module(None));
    ask::<()>(&mut redis, "CONFIG SET repl-ping-replica-period 3600");
    for calls in [1_100, 8_900] {
        for cost in 0..calls {
            assert_eq!(decide(&mut redis, &format!("RL.SLIDINGLOG k 9007199254740991 1h {}", 1 + cost % 1_000))[0], 1);
        }
        let entries = fact(&mut redis, "k", "entries");
        let bytes: i64 = ask(&mut redis, "MEMORY USAGE k");
        assert!(entries > calls / 2 && bytes <= 10 * entries, "{bytes} bytes for {entries} entries");
    }
    wait_for_replicas(&mut redis, 1);
    let before = offset(&mut redis);
    for _ in 0..1_000 {
        decide(&mut redis, "RL.SLIDINGLOG k 9007199254740991 1h");
    }
    wait_for_replicas(&mut redis, 1);
    let sent = (offset(&mut redis) - before) / 1_000;
    assert!(sent < 300, "{sent} bytes a call");

    // Refunds that leave holes, windows that drop, all by ranges.
    for line in [
        "RL.REFUND k 100000 AGE 10ms",
        "RL.REFUND k 7",
        "RL.SLIDINGLOG k 9007199254740991 100ms",
        "RL.REFUND k 3 AGE 0",
    ] {
        decide(&mut redis, line);
        wait_for_replicas(&mut redis, 1);
        assert_eq!(digest(&mut replica.connect()), digest(&mut redis), "{line}");
    }
    let expiry: i64 = ask(&mut redis, "PEXPIRETIME k");
    assert_eq!(ask::<i64>(&mut replica.connect(), "PEXPIRETIME k"), expiry);
    assert!(expiry > 0);
}

#[test]
fn a_denied_call_and_a_look_write_nothing() {
    let primary = Server::new();
    let mut redis = primary.connect();
    for _ in 0..200 {
        decide(&mut redis, "RL.SLIDINGLOG k 200 36500d");
    }
    let replica = replica_of(&primary, Options::new().module(None));
    wait_for_replicas(&mut redis, 1);
    ask::<()>(&mut redis, "CONFIG SET repl-ping-replica-period 3600");
    let before = (offset(&mut redis), digest(&mut redis));
    for _ in 0..250 {
        assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 200 36500d")[0], 0);
        assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 200 36500d 0")[0], 0);
        assert_eq!(decide(&mut redis, "RL.SLIDINGLOG new 0 1m")[0], 0);
        ask::<Value>(&mut redis, "RL.PEEK k");
        ask::<Value>(&mut redis, "RL.INSPECT k");
        ask::<Value>(&mut redis, "RL.REFUND k 0");
        ask::<Value>(&mut redis, "RL.REFUND k 1 AGE 36500d");
    }
    assert_eq!((offset(&mut redis), digest(&mut redis)), before);
    drop(replica);
}

#[test]
fn a_full_log_is_an_error_that_names_the_setting() {
    let server = Server::new();
    let mut redis = server.connect();
    let told: Vec<String> = ask(&mut redis, "CONFIG GET rl.max-log-entries");
    assert_eq!(told, ["rl.max-log-entries", "100000"]);
    ask::<()>(&mut redis, "CONFIG SET rl.max-log-entries 10");
    for _ in 0..10 {
        decide(&mut redis, "RL.SLIDINGLOG k 100 36500d");
    }
    let before = digest(&mut redis);
    assert_eq!(error(&mut redis, "RL.SLIDINGLOG k 100 36500d"), "ERR the log is full: rl.max-log-entries is 10");
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 10 36500d")[0], 0, "denied anyway");
    assert_eq!(digest(&mut redis), before);
    for wrong in ["0", "-1", "10000001", "many"] {
        assert!(send::<()>(&mut redis, &format!("CONFIG SET rl.max-log-entries {wrong}")).is_err(), "{wrong}");
    }
    ask::<()>(&mut redis, "CONFIG SET rl.max-log-entries 11");
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 100 36500d")[..3], [1, 100, 89]);
}

#[test]
fn when_memory_is_full_a_log_goes_on_until_it_must_grow() {
    let server = Options::new().set("maxmemory-policy", "noeviction").start();
    let mut redis = server.connect();
    for _ in 0..600 {
        decide(&mut redis, "RL.SLIDINGLOG k 9007199254740991 36500d");
    }
    for key in 0..1_000 {
        send_words::<()>(&mut redis, &[b"SET", format!("data:{key}").as_bytes(), &[b'x'; 1_000]]).unwrap();
    }
    let used: u64 = info(&mut redis, "memory", "used_memory").unwrap().parse().unwrap();
    ask::<()>(&mut redis, &format!("CONFIG SET maxmemory {}", used - 100_000));
    let refused = (0..2_000).find_map(|_| send::<Value>(&mut redis, "RL.SLIDINGLOG k 9007199254740991 36500d").err());
    assert!(refused.unwrap().to_string().contains("OOM"));
    let before = digest(&mut redis);
    assert!(error(&mut redis, "RL.SLIDINGLOG k 9007199254740991 36500d").starts_with("OOM"));
    assert_eq!(digest(&mut redis), before);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 9007199254740991 1ms")[0], 1, "what shrinks needs no memory");
}

#[test]
fn planted_bytes_are_refused_or_answered_and_the_server_lives() {
    let server = Server::new();
    let mut redis = server.connect();
    for _ in 0..300 {
        decide(&mut redis, "RL.SLIDINGLOG k 1000 36500d");
    }
    let state: Vec<u8> = ask(&mut redis, "GET k");
    for at in 0..state.len() {
        let mut lie = state.clone();
        lie[at] ^= 0xFF;
        send_words::<()>(&mut redis, &[b"SET", b"lie", &lie]).unwrap();
        for line in ["RL.PEEK lie", "RL.SLIDINGLOG lie 1000 1h", "RL.REFUND lie 5 AGE 1ms", "RL.INSPECT lie"] {
            let answer = send::<Value>(&mut redis, line);
            assert!(answer.is_ok() || answer.unwrap_err().to_string().contains("WRONGTYPE"), "byte {at}: {line}");
        }
    }
    assert_eq!(decide(&mut redis, "RL.PEEK k")[0], 1);
}

#[test]
fn a_full_log_too_is_brought_to_now_when_the_clock_went_back() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for (at, cost) in [(0, 1), (1_000, 1), (9_000_000, 5)] {
        server.clock().set(NOON + at);
        decide(&mut redis, &format!("RL.SLIDINGLOG k 10 10s {cost}"));
    }
    ask::<()>(&mut redis, "CONFIG SET rl.max-log-entries 2");
    server.clock().set(NOON + 5_000);
    assert!(error(&mut redis, "RL.SLIDINGLOG k 10 10s").starts_with("ERR the log is full"));
    assert_eq!(fact(&mut redis, "k", "last_ms"), (NOON + 5_000) / 1_000);
    assert_eq!(fact(&mut redis, "k", "used"), 7);
}
