//! What ends the time in which effects are held back, at once, and what keeps it from beginning.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use redis::Connection;

use super::{alone, is_quiet, quiet, wait_for_quiet};
use crate::support::{ask, decide, digest, info, replica_of, send_words, version, wait_for_replicas, wait_until};

/// Whether the server is quiet right behind a command, with no housekeeping in between.
fn is_quiet_behind(redis: &mut Connection, line: &str) -> bool {
    let mut words = line.split(' ');
    let mut pipe = redis::pipe();
    pipe.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>()).ignore().cmd("INFO").arg("rl");
    let (told,): (String,) = pipe.query(redis).unwrap();
    told.contains("rl_effects_propagated:0")
}

/// Looks at the server for longer than it takes to look whether anybody listens.
fn assert_never_quiet(redis: &mut Connection, why: &str) {
    for _ in 0..30 {
        assert!(!is_quiet(redis), "{why}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn whatever_can_come_before_a_reader_ends_it_at_once() {
    let (_server, mut redis) = quiet();
    for line in [
        "BGSAVE",
        "BGREWRITEAOF",
        "SAVE",
        "DEBUG RELOAD NOSAVE",
        "CONFIG SET maxmemory 0",
        "CONFIG SET appendonly yes",
        "CONFIG SET appendonly no",
        "REPLICAOF 127.0.0.1 1",
        "REPLICAOF NO ONE",
    ] {
        assert!(!is_quiet_behind(&mut redis, line), "{line}");
        // Only while somebody may listen it stays so.
        if !["CONFIG SET appendonly yes", "REPLICAOF 127.0.0.1 1"].contains(&line) {
            wait_for_quiet(&mut redis);
        }
    }
    assert!(is_quiet_behind(&mut redis, "RL.TOKENBUCKET k 100 1/d"));
}

#[test]
fn it_never_begins_while_somebody_listens_or_may() {
    let server = alone().set("appendonly", "yes").start();
    assert_never_quiet(&mut server.connect(), "an append-only file");

    let server = alone().set("replicaof", "127.0.0.1 1").start();
    let mut redis = server.connect();
    assert_never_quiet(&mut redis, "a replica whose primary is away");
    ask::<()>(&mut redis, "REPLICAOF NO ONE");
    wait_for_quiet(&mut redis);

    let server = alone().set("cluster-enabled", "yes").start();
    assert_never_quiet(&mut server.connect(), "a node of a cluster");
}

#[test]
fn it_does_not_begin_while_a_child_is_there() {
    let (_server, mut redis) = quiet();
    for key in 0..100 {
        decide(&mut redis, &format!("RL.TOKENBUCKET k{key} 100 1/d"));
    }
    ask::<()>(&mut redis, "CONFIG SET rdb-key-save-delay 100000");
    wait_for_quiet(&mut redis);
    ask::<()>(&mut redis, "BGSAVE");
    assert_never_quiet(&mut redis, "a child");
}

/// Who was a replica may come back and ask for what it missed, as long as there is a backlog.
#[test]
fn it_does_not_begin_while_there_is_a_backlog() {
    let server = alone().set("repl-backlog-ttl", "0").start();
    let mut redis = server.connect();
    let mut replica = replica_of(&server, alone().module(None));
    assert_never_quiet(&mut redis, "a replica");
    replica.kill();
    wait_until("the replica is gone", || info(&mut redis, "replication", "connected_slaves").as_deref() == Some("0"));
    assert_never_quiet(&mut redis, "a backlog for ever");
    ask::<()>(&mut redis, "CONFIG SET repl-backlog-ttl 1");
    wait_for_quiet(&mut redis);
}

/// A client that takes the replication ID from `INFO` instead of a snapshot, while a replica waits for its snapshot to begin.
#[test]
fn a_reader_without_a_snapshot_hears_all_from_when_it_comes() {
    let server = alone().set("hz", "10").set("repl-diskless-sync-delay", "3600").start();
    let mut redis = server.connect();
    wait_for_quiet(&mut redis);
    let connect = || TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let mut waiting = connect();
    waiting.write_all(b"REPLCONF capa eof capa psync2\r\n").unwrap();
    BufReader::new(&waiting).read_line(&mut String::new()).unwrap();
    waiting.write_all(b"PSYNC ? -1\r\n").unwrap();
    wait_until("a backlog", || info(&mut redis, "replication", "repl_backlog_active").as_deref() == Some("1"));

    let id = info(&mut redis, "replication", "master_replid").unwrap();
    let at = crate::support::offset(&mut redis) + 1;
    let mut reader = BufReader::new(connect());
    reader.get_mut().write_all(format!("PSYNC {id} {at}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("+CONTINUE"), "{line}");
    assert!(!is_quiet(&mut redis));
    decide(&mut redis, "RL.TOKENBUCKET k 100 1/d");
    let mut told = vec![];
    while !told.ends_with(b"PXAT\r\n") {
        assert!(reader.read_until(b'\n', &mut told).unwrap() > 0, "the stream has ended");
    }
}

#[test]
fn an_unloaded_module_is_told_nothing_and_a_new_one_begins_anew() {
    let (server, mut redis) = quiet();
    if version(&mut redis) != (7, 0) {
        return crate::support::skip("the module stays loaded on this server");
    }
    let path = crate::support::module("redis_rl");
    for _ in 0..3 {
        ask::<()>(&mut redis, "MODULE UNLOAD rl");
        ask::<()>(&mut redis, "BGSAVE");
        thread::sleep(Duration::from_millis(200));
        assert!(!is_quiet_behind(&mut redis, &format!("MODULE LOAD {}", path.display())));
        wait_for_quiet(&mut redis);
    }
    drop(server);
}

/// What the library knew when the module was unloaded is old when it is loaded again.
#[test]
fn a_replica_that_came_while_the_module_was_away_lacks_nothing() {
    let server = alone().keeping_the_module().start();
    let mut redis = server.connect();
    if version(&mut redis) != (7, 0) {
        return crate::support::skip("the module stays loaded on this server");
    }
    wait_for_quiet(&mut redis);
    // Once what is to be counted is.
    decide(&mut redis, "RL.TOKENBUCKET k 100 1/d");
    decide(&mut redis, "RL.TOKENBUCKET k 100 1/d");
    ask::<()>(&mut redis, "MODULE UNLOAD rl");
    let replica = replica_of(&server, alone().module(None));
    ask::<()>(&mut redis, &format!("MODULE LOAD {}", crate::support::module("redis_rl").display()));
    decide(&mut redis, "RL.TOKENBUCKET k 100 1/d");
    wait_for_replicas(&mut redis, 1);
    assert_eq!(digest(&mut replica.connect()), digest(&mut redis));
}

/// Those who watch or cache a key hear of its changes from the server, whoever is told of effects.
#[test]
fn those_who_watch_or_cache_a_key_still_hear_of_it() {
    let (server, mut redis) = quiet();
    let (mut watcher, mut listener, mut cacher) = (server.connect(), server.connect(), server.connect());
    let id: u64 = ask(&mut listener, "CLIENT ID");
    ask::<()>(&mut cacher, &format!("CLIENT TRACKING on REDIRECT {id}"));
    let mut events = listener.as_pubsub();
    events.subscribe("__redis__:invalidate").unwrap();
    for call in 0..20 {
        ask::<()>(&mut watcher, "WATCH k");
        ask::<Option<Vec<u8>>>(&mut cacher, "GET k");
        decide(&mut redis, "RL.TOKENBUCKET k 100 1/d");
        assert!(is_quiet(&mut redis));
        ask::<()>(&mut watcher, "MULTI");
        ask::<()>(&mut watcher, "PING");
        assert_eq!(ask::<Option<Vec<String>>>(&mut watcher, "EXEC"), None, "call {call} broke no WATCH");
        let told: Vec<String> = events.get_message().unwrap().get_payload().unwrap();
        assert_eq!(told, ["k"]);
    }
}

#[test]
fn a_script_can_bring_no_reader_in_its_middle() {
    let (_server, mut redis) = quiet();
    for line in ["return redis.call('CONFIG', 'SET', 'appendonly', 'yes')", "return redis.call('BGSAVE')"] {
        let words: [&[u8]; 3] = [b"EVAL", line.as_bytes(), b"0"];
        assert!(send_words::<redis::Value>(&mut redis, &words).is_err(), "{line}");
    }
}
