//! What `rdb_changes_since_last_save` tells although effects are held back, and what save points get to count.

use redis::Connection;

use super::{alone, counted, is_quiet, quiet, wait_for_quiet};
use crate::support::{ask, decide, info, send_words, wait_until};

/// Sends lines in one go, so that no housekeeping comes in between. Each word of a line is in single quotes, or without.
fn at_once(redis: &mut Connection, lines: &[&str]) {
    let mut pipe = redis::pipe();
    for line in lines {
        let mut words = line.split(' ');
        pipe.cmd(words.next().unwrap()).arg(words.map(|word| word.replace('_', " ")).collect::<Vec<_>>());
    }
    pipe.query::<Vec<redis::Value>>(redis).unwrap();
}

const CALL: &str = "RL.TOKENBUCKET k 1000000 1/d";

#[test]
fn what_was_held_back_counts_at_least_once() {
    let (_server, mut redis) = quiet();
    let before = counted(&mut redis);
    let mut calls = 0;
    while counted(&mut redis) == before {
        decide(&mut redis, CALL);
        calls += 1;
    }
    assert_eq!(calls, 1, "the first is handed over");
    for _ in 0..2_000 {
        decide(&mut redis, CALL);
    }
    let counts = counted(&mut redis) - before;
    assert!((1..1_000).contains(&counts), "{counts} of 2001 changes were counted");
}

/// A save that comes while effects are held back sets the count back; what comes right behind it is not in it, and must count.
#[test]
fn what_comes_behind_a_save_counts() {
    let (_server, mut redis) = quiet();
    // So that there is an append-only file to load.
    ask::<()>(&mut redis, "CONFIG SET appendonly yes");
    wait_until("it is written", || info(&mut redis, "persistence", "aof_rewrite_in_progress").as_deref() == Some("0"));
    ask::<()>(&mut redis, "CONFIG SET appendonly no");
    for reset in ["SAVE", "DEBUG RELOAD", "DEBUG LOADAOF"] {
        // Both that the next effect is to be counted and that it has been: whatever the state, it is left.
        for calls in [0, 2] {
            wait_for_quiet(&mut redis);
            let lines = [vec![CALL; calls], vec![reset], vec![CALL; 3]].concat();
            at_once(&mut redis, &lines);
            assert_eq!(counted(&mut redis), 3, "{lines:?}");
        }
    }
    // A child sets it back later, by what was counted when it began.
    wait_for_quiet(&mut redis);
    at_once(&mut redis, &["SAVE", "BGSAVE", CALL, CALL]);
    wait_until("the child is gone", || {
        info(&mut redis, "persistence", "rdb_bgsave_in_progress").as_deref() == Some("0")
    });
    assert_eq!(counted(&mut redis), 2);
}

#[test]
fn whatever_comes_behind_a_new_save_point_counts() {
    let (_server, mut redis) = quiet();
    at_once(&mut redis, &[CALL, CALL]);
    let before = counted(&mut redis);
    let lines = [vec!["CONFIG SET save 36000_1000"], vec![CALL; 20]].concat();
    at_once(&mut redis, &lines);
    assert_eq!(counted(&mut redis) - before, 20);
}

#[test]
fn where_there_are_save_points_every_change_counts() {
    let server = alone().set("save", "36000 1000000").start();
    let mut redis = server.connect();
    for _ in 0..50 {
        decide(&mut redis, CALL);
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(!is_quiet(&mut redis));
    }
    assert_eq!(counted(&mut redis), 50);
    send_words::<()>(&mut redis, &[b"CONFIG", b"SET", b"save", b""]).unwrap();
    wait_for_quiet(&mut redis);
    ask::<()>(&mut redis, "FLUSHALL");
}
