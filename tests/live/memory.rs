//! A server whose memory is full.

mod every_kind;
mod eviction;
mod leaks;
mod log_growth;
mod sizing;
mod transactions;

use redis::Connection;

use crate::support::{Options, Server, ask, decide, error, info, send, send_words};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// A server with limiters, and a megabyte of other data in small keys.
fn filled(policy: &str) -> Server {
    let server = Options::new().set("maxmemory-policy", policy).start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED f 100 36500d");
    decide(&mut redis, "RL.TOKENBUCKET b 100 1/d");
    decide(&mut redis, "RL.TOKENBUCKET wide 9007199254740991 1/d 5");
    decide(&mut redis, "RL.TOKENBUCKET spent 10 1000 1");
    ask::<()>(&mut redis, "PERSIST spent");
    for key in 0..1_000 {
        send_words::<()>(&mut redis, &[b"SET", format!("data:{key}").as_bytes(), &[b'x'; 1_000]]).unwrap();
    }
    server
}

/// Lowers the limit below what is used.
fn fill_up(redis: &mut Connection) {
    let used: u64 = info(redis, "memory", "used_memory").unwrap().parse().unwrap();
    ask::<()>(redis, &format!("CONFIG SET maxmemory {}", used - 100_000));
}

#[test]
fn limiters_that_exist_go_on_and_new_ones_are_refused() {
    let server = filled("noeviction");
    let mut redis = server.connect();
    fill_up(&mut redis);
    assert!(send::<()>(&mut redis, "SET x y").is_err(), "the server refuses to grow");
    assert_eq!(decide(&mut redis, "RL.FIXED f 100 36500d")[..3], [1, 100, 98]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 100 1/d 98")[..3], [1, 100, 1]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 100 1/d 2")[0], 0);
    assert_eq!(decide(&mut redis, "RL.PEEK f")[2], 98);
    for line in ["RL.FIXED new 100 60", "RL.TOKENBUCKET new 100 60", "RL.TOKENBUCKET b 9007199254740991 1/d"] {
        assert_eq!(error(&mut redis, line), OOM, "{line}");
    }
    assert_eq!(decide(&mut redis, "RL.FIXED new 0 60")[0], 0, "what is denied needs no memory");
    assert_eq!(decide(&mut redis, "RL.PEEK b")[2], 1, "what was refused took nothing");

    // To become shorter is no growth: the wide form turns narrow, an unused bucket becomes a fixed window.
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET wide 10 1/d")[..3], [1, 10, 4]);
    assert_eq!(decide(&mut redis, "RL.FIXED spent 10 36500d")[..3], [1, 10, 9]);

    ask::<()>(&mut redis, "CONFIG SET maxmemory 0");
    assert_eq!(decide(&mut redis, "RL.FIXED new 100 60")[0], 1);
}

/// Keys that can be evicted are there under each of these: a call that needs memory is never refused.
#[test]
fn a_policy_that_evicts_is_left_to_make_room() {
    for policy in [
        "allkeys-random",
        "allkeys-lru",
        "allkeys-lfu",
        "volatile-random",
        "volatile-lru",
        "volatile-lfu",
        "volatile-ttl",
    ] {
        let server = filled(policy);
        let mut redis = server.connect();
        for key in 0..1_000 {
            ask::<()>(&mut redis, &format!("EXPIRE data:{key} 3600"));
        }
        fill_up(&mut redis);
        for call in 0..300 {
            assert_eq!(decide(&mut redis, &format!("RL.FIXED new:{call} 100 36500d"))[0], 1, "{policy}");
            assert_eq!(decide(&mut redis, "RL.SLIDINGLOG grows 1000 36500d")[0], 1, "{policy}");
        }
        assert_ne!(info(&mut redis, "stats", "evicted_keys").unwrap(), "0", "{policy}");
    }
}

/// Only keys that expire may go, which are the limiters: they must not be made anew, full, call after call.
#[test]
fn where_only_limiters_can_be_evicted_nobody_is_let_through() {
    let server = filled("volatile-ttl");
    let mut redis = server.connect();
    fill_up(&mut redis);
    assert!(send::<()>(&mut redis, "SET x y").is_err(), "the server can't make room");
    for _ in 0..10 {
        assert_eq!(error(&mut redis, "RL.FIXED new 1 36500d"), OOM);
    }
}
