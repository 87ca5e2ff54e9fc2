//! What replicas, files, watchers and counters are told.

use std::fs;

use redis::Connection;

use super::call;
use crate::support::{
    Options, Server, ask, decide, digest, error, info, offset, replica_of, send_words, wait_for_replicas,
};

const BOTH: &str = "{u}:a FIXED 3 36500d 1 {u}:b TOKENBUCKET 9 1/d 2 {u}:c SLIDINGLOG 9 36500d 1";

/// The names of the commands in the append-only file, but for the choice of a database, which servers put here or
/// there.
fn commands_in_file(server: &Server) -> Vec<String> {
    let folder = fs::read_dir(server.folder().join("appendonlydir")).unwrap();
    let file = folder.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with(".incr.aof"));
    let bytes = fs::read(file.unwrap()).unwrap();
    let mut rest = bytes.as_slice();
    let mut line = || {
        let end = rest.iter().position(|&byte| byte == b'\r')?;
        let number: usize = std::str::from_utf8(&rest[1..end]).unwrap().parse().unwrap();
        let is_text = rest[0] == b'$';
        rest = &rest[end + 2..];
        let text = if is_text { rest[..number].to_vec() } else { Vec::new() };
        if is_text {
            rest = &rest[number + 2..];
        }
        Some((number, text))
    };
    let mut names = Vec::new();
    while let Some((words, _)) = line() {
        let words: Vec<_> = (0..words).map(|_| String::from_utf8_lossy(&line().unwrap().1).to_uppercase()).collect();
        names.push(words[0].clone());
    }
    names.retain(|name| name != "SELECT");
    names
}

#[test]
fn one_call_is_one_unit_for_replicas_and_the_file() {
    let server = Options::new().set("appendonly", "yes").set("appendfsync", "always").start();
    let mut redis = server.connect();
    assert!(call(&mut redis, BOTH).allowed);
    assert_eq!(commands_in_file(&server), ["MULTI", "SET", "SET", "SET", "EXEC"]);
    assert!(call(&mut redis, BOTH).allowed);
    let names = commands_in_file(&server);
    assert_eq!((names[5].as_str(), names.last().unwrap().as_str()), ("MULTI", "EXEC"), "{names:?}");
    assert_eq!(names.iter().filter(|name| *name == "MULTI").count(), 2, "{names:?}");
    let before = names.len();
    assert!(call(&mut redis, BOTH).allowed);
    assert!(!call(&mut redis, BOTH).allowed);
    assert!(!call(&mut redis, BOTH).allowed);
    let names = commands_in_file(&server);
    assert_eq!(
        names[before..].iter().filter(|name| *name == "MULTI").count(),
        1,
        "a denied call leaves no trace: {names:?}"
    );
}

#[test]
fn replicas_and_files_hold_equal_bytes() {
    let mut server = Options::new().set("appendonly", "yes").set("appendfsync", "always").start();
    let mut redis = server.connect();
    let replica = replica_of(&server, Options::new().module(None));
    for round in 0..200 {
        let key = round % 7;
        let words = format!(
            "a{key} FIXED 20 36500d 1 b{key} SLIDING 20 36500d 2 c{key} SLIDINGLOG 50 36500d 1 \
             d{key} TOKENBUCKET 9007199254740991 1/d {round} e{key} LEAKY 30 1/d 1 f{} TOKENBUCKET 300 1/h 3",
            (key + round) % 5
        );
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        call(&mut redis, &words);
    }
    wait_for_replicas(&mut redis, 1);
    let expected = digest(&mut redis);
    assert_eq!(digest(&mut replica.connect()), expected);
    server.kill();
    server.start_again(|options| options.module(None));
    assert_eq!(digest(&mut server.connect()), expected);
}

#[test]
fn a_denied_call_replicates_nothing_and_breaks_no_watch() {
    let primary = Server::new();
    let mut redis = primary.connect();
    let replica = replica_of(&primary, Options::new().module(None));
    decide(&mut redis, "RL.FIXED full 1 36500d");
    decide(&mut redis, "RL.FIXED half 2 36500d");
    wait_for_replicas(&mut redis, 1);
    ask::<()>(&mut redis, "CONFIG SET repl-ping-replica-period 3600");
    let before = (offset(&mut redis), digest(&mut redis));

    let mut watcher = primary.connect();
    ask::<()>(&mut watcher, "WATCH half full new");
    for _ in 0..50 {
        let told = call(&mut redis, "half FIXED 2 36500d 1 new TOKENBUCKET 5 1 1 full FIXED 1 36500d 1");
        assert_eq!((told.allowed, told.index), (false, 2));
        assert!(call(&mut redis, "half FIXED 2 36500d 0 new TOKENBUCKET 5 1 0").allowed, "a look");
    }
    assert_eq!((offset(&mut redis), digest(&mut redis)), before);
    ask::<()>(&mut watcher, "MULTI");
    ask::<()>(&mut watcher, "PING");
    assert_eq!(ask::<Option<Vec<String>>>(&mut watcher, "EXEC"), Some(vec!["PONG".to_owned()]));

    // One that takes does break it.
    ask::<()>(&mut watcher, "WATCH half");
    assert!(call(&mut redis, "other FIXED 2 36500d 1 half FIXED 2 36500d 1").allowed);
    ask::<()>(&mut watcher, "MULTI");
    ask::<()>(&mut watcher, "PING");
    assert_eq!(ask::<Option<Vec<String>>>(&mut watcher, "EXEC"), None);
    drop(replica);
}

#[test]
fn one_time_and_one_unit_within_a_transaction_and_a_script() {
    let server = Options::new().set("appendonly", "yes").set("appendfsync", "always").start();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "MULTI");
    ask::<()>(&mut redis, &format!("RL.MULTI {BOTH}"));
    ask::<()>(&mut redis, "RL.FIXED {u}:d 5 36500d");
    let replies: Vec<Vec<i64>> = ask(&mut redis, "EXEC");
    assert_eq!((replies[0].len(), replies[1].len()), (17, 5));
    let script = b"return redis.call('RL.MULTI', KEYS[1], 'FIXED', 3, '36500d', 1, KEYS[2], 'FIXED', 3, '36500d', 1)";
    let told: Vec<i64> = send_words(&mut redis, &[b"EVAL", script, b"2", b"x", b"y"]).unwrap();
    assert_eq!(told[..2], [1, 0]);
    let names = commands_in_file(&server);
    assert_eq!(names.iter().filter(|name| *name == "MULTI").count(), 2, "{names:?}");
}

#[test]
fn replies_are_the_same_in_both_protocols() {
    let server = Options::new().with_clock().start();
    let replies = [2, 3].map(|protocol| {
        let mut redis = server.connect_by(protocol);
        ask::<()>(&mut redis, "FLUSHALL");
        [(); 4].map(|()| ask::<redis::Value>(&mut redis, &format!("RL.MULTI {BOTH}")))
    });
    assert_eq!(replies[0], replies[1]);
}

fn counted(redis: &mut Connection, field: &str) -> i64 {
    info(redis, "rl", &format!("rl_{field}")).and_then(|number| number.parse().ok()).unwrap()
}

#[test]
fn each_limit_is_counted_once_and_only_those_that_deny_as_denied() {
    let server = Server::new();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "CONFIG SET rl.top-keys 10");
    for _ in 0..5 {
        call(&mut redis, "{u}:b TOKENBUCKET 9 1/d 1 {u}:look SLIDING 9 36500d 0 {u}:a FIXED 3 36500d 1");
    }
    let fields = ["allowed", "denied", "fixed_window_allowed", "fixed_window_denied", "token_bucket_allowed"];
    assert_eq!(fields.map(|field| counted(&mut redis, field)), [6, 2, 3, 2, 3]);
    assert_eq!(["token_bucket_denied", "sliding_window_allowed"].map(|field| counted(&mut redis, field)), [0, 0]);
    let denied: Vec<redis::Value> = ask(&mut redis, "RL.TOP");
    assert!(
        format!("{denied:?}").contains(&format!("{:?}", redis::Value::BulkString(b"{u}:a".to_vec()))),
        "{denied:?}"
    );
    assert!(
        !format!("{denied:?}").contains(&format!("{:?}", redis::Value::BulkString(b"{u}:b".to_vec()))),
        "{denied:?}"
    );
}

#[test]
fn where_memory_is_full_nothing_is_taken_if_one_limit_needs_some() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED a 9 36500d");
    decide(&mut redis, "RL.TOKENBUCKET b 9 1/d");
    decide(&mut redis, "RL.FIXED full 1 36500d");
    for key in 0..1_000 {
        send_words::<()>(&mut redis, &[b"SET", format!("data:{key}").as_bytes(), &[b'x'; 1_000]]).unwrap();
    }
    let used: u64 = info(&mut redis, "memory", "used_memory").unwrap().parse().unwrap();
    ask::<()>(&mut redis, &format!("CONFIG SET maxmemory {}", used - 100_000));
    let before = digest(&mut redis);
    let old = "a FIXED 9 36500d 1 b TOKENBUCKET 9 1/d 1";
    for new in ["new FIXED 9 36500d 1", "new SLIDINGLOG 9 36500d 1"] {
        for words in [format!("{old} {new}"), format!("{new} {old}")] {
            assert_eq!(
                error(&mut redis, &format!("RL.MULTI {words}")),
                "OOM command not allowed when used memory > 'maxmemory'."
            );
        }
    }
    assert_eq!(error(&mut redis, "RL.MULTI a FIXED 9 36500d 1 b TOKENBUCKET 9007199254740991 1/d 1")[..3], *"OOM");
    assert_eq!(digest(&mut redis), before);
    assert!(
        !call(&mut redis, &format!("{old} new FIXED 9 1m 1 full FIXED 1 36500d 1")).allowed,
        "denied needs no memory"
    );
    assert_eq!(digest(&mut redis), before);
    assert!(call(&mut redis, &format!("{old} new FIXED 9 1m 0")).allowed);
}
