//! A server whose memory is full.

use redis::{Connection, Value};

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

#[test]
fn a_policy_that_evicts_is_left_to_make_room() {
    let server = filled("allkeys-random");
    let mut redis = server.connect();
    fill_up(&mut redis);
    for key in 0..100 {
        assert_eq!(decide(&mut redis, &format!("RL.FIXED new:{key} 100 36500d"))[0], 1);
    }
    assert_ne!(info(&mut redis, "stats", "evicted_keys").unwrap(), "0");
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

#[test]
fn calls_leave_no_memory_behind() {
    let server = Server::new();
    let mut redis = server.connect();
    let lines = [
        "RL.FIXED f 9007199254740991 36500d",
        "RL.FIXED f 0 36500d",
        "RL.FIXED f 1 x",
        "RL.TOKENBUCKET f 1 1",
        "RL.PEEK f",
        "RL.PEEK missing",
    ];
    let calls = |redis: &mut redis::Connection, rounds: usize| {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for line in lines {
            let mut words = line.split(' ');
            pipe.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>()).ignore();
        }
        for _ in 0..rounds {
            let _ = pipe.query::<Value>(redis);
        }
        info(redis, "memory", "used_memory").unwrap().parse::<usize>().unwrap()
    };
    let before = calls(&mut redis, 200);
    let after = calls(&mut redis, 3_000);
    assert!(after < before + 100_000, "{before} bytes grew to {after}");
}
