//! Limiters under the commands that work on any string.

use redis::Value;

use crate::support::{Options, Server, ask, decide, info, send_words, skip, version};

#[test]
fn a_limiter_is_copied_renamed_dumped_and_restored() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 10 1/h 4");
    let told = decide(&mut redis, "RL.PEEK k");
    let left: i64 = ask(&mut redis, "PTTL k");

    ask::<()>(&mut redis, "COPY k copy");
    ask::<()>(&mut redis, "RENAME k renamed");
    let dump: Vec<u8> = ask(&mut redis, "DUMP renamed");
    let restored: Vec<&[u8]> = vec![b"RESTORE", b"restored", b"0", &dump];
    send_words::<()>(&mut redis, &restored).unwrap();

    for key in ["copy", "renamed", "restored"] {
        assert_eq!(decide(&mut redis, &format!("RL.PEEK {key}")), told);
        assert_eq!(decide(&mut redis, &format!("RL.TOKENBUCKET {key} 10 1/h 7"))[0], 0);
        assert_eq!(decide(&mut redis, &format!("RL.TOKENBUCKET {key} 10 1/h 6"))[2], 0);
    }
    assert!(left > 0 && ask::<i64>(&mut redis, "PTTL copy") >= left);
    assert!(ask::<i64>(&mut redis, "PTTL restored") > 0, "restored without an expiry, it got one when it was used");
    assert_eq!(ask::<String>(&mut redis, "TYPE copy"), "string");
}

#[test]
fn deleting_resets() {
    let server = Server::new();
    let mut redis = server.connect();
    for delete in ["DEL k", "UNLINK k", "PEXPIREAT k 1", "FLUSHALL", "FLUSHALL ASYNC"] {
        decide(&mut redis, "RL.FIXED k 5 36500d 5");
        ask::<()>(&mut redis, delete);
        assert_eq!(decide(&mut redis, "RL.FIXED k 5 36500d 5")[0], 1, "after {delete}");
        ask::<()>(&mut redis, "DEL k");
    }
}

#[test]
fn a_denied_call_breaks_no_watch_and_an_admitted_one_does() {
    let server = Server::new();
    let (mut watcher, mut other) = (server.connect(), server.connect());
    decide(&mut other, "RL.FIXED k 2 36500d");
    for (line, breaks) in [("RL.FIXED k 1 36500d", false), ("RL.PEEK k", false), ("RL.FIXED k 2 36500d", true)] {
        ask::<()>(&mut watcher, "WATCH k");
        ask::<Value>(&mut other, line);
        ask::<()>(&mut watcher, "MULTI");
        ask::<()>(&mut watcher, "PING");
        let executed: Option<Vec<String>> = ask(&mut watcher, "EXEC");
        assert_eq!(executed.is_none(), breaks, "{line}");
    }
}

#[test]
fn a_string_however_it_is_encoded_is_a_limiter() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 5 1h 2");
    let state: Vec<u8> = ask(&mut redis, "GET k");
    send_words::<()>(&mut redis, &[b"SET", b"planted", &state]).unwrap();
    assert_eq!(decide(&mut redis, "RL.PEEK planted"), decide(&mut redis, "RL.PEEK k"));
    assert_eq!(decide(&mut redis, "RL.FIXED planted 5 1h 3")[..3], [1, 5, 0]);
    assert_eq!(ask::<String>(&mut redis, "OBJECT ENCODING planted"), "raw");
}

#[test]
fn a_small_state_stays_small() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 100 100/60");
    decide(&mut redis, "RL.FIXED f 100 60");
    assert_eq!(ask::<i64>(&mut redis, "STRLEN k"), 44);
    assert_eq!(ask::<i64>(&mut redis, "STRLEN f"), 36);
}

#[test]
fn peek_does_not_count_as_use() {
    let server = Options::new().set("maxmemory-policy", "allkeys-lfu").start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 5 36500d");
    let before: i64 = ask(&mut redis, "OBJECT FREQ k");
    for _ in 0..1_000 {
        decide(&mut redis, "RL.PEEK k");
    }
    assert!(ask::<i64>(&mut redis, "OBJECT FREQ k") <= before);
}

#[test]
fn peek_counts_neither_as_a_hit_nor_as_a_miss() {
    let server = Options::new().set("notify-keyspace-events", "Em").start();
    let mut redis = server.connect();
    if version(&mut redis) < (7, 2) {
        return skip("before 7.2 reads are counted whatever a module says");
    }
    decide(&mut redis, "RL.FIXED k 9 36500d");
    let mut listener = server.connect();
    let mut events = listener.as_pubsub();
    events.subscribe("__keyevent@0__:keymiss").unwrap();
    ask::<()>(&mut redis, "CONFIG RESETSTAT");
    decide(&mut redis, "RL.PEEK k");
    ask::<()>(&mut redis, "RL.PEEK missing");
    for field in ["keyspace_hits", "keyspace_misses"] {
        assert_eq!(info(&mut redis, "stats", field).as_deref(), Some("0"), "{field}");
    }
    ask::<()>(&mut redis, "GET other");
    assert_eq!(events.get_message().unwrap().get_payload::<String>().unwrap(), "other");
}

#[test]
fn a_state_that_changes_form_takes_no_more_memory_than_one_made_so() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 10 1/d");
    for key in ["k", "f"] {
        decide(&mut redis, &format!("RL.TOKENBUCKET {key} 9007199254740991 1/d"));
    }
    let usage = |redis: &mut redis::Connection, key| ask::<i64>(redis, &format!("MEMORY USAGE {key}"));
    assert_eq!(usage(&mut redis, "k"), usage(&mut redis, "f"));
}
