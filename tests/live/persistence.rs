//! What was admitted stays admitted over a restart, and the files need no module.

use redis::Connection;

use crate::support::{HOUR, Options, Server, ask, decide, digest, send, wait_until};

/// Limiters of each kind and form: untouched, used, exhausted.
fn fill(redis: &mut Connection) {
    for key in 0..20 {
        ask::<redis::Value>(redis, &format!("RL.DEBIT d{key} 10 1/d {key}"));
        ask::<redis::Value>(redis, &format!("RL.REFUND d{key} 1"));
        for taken in 0..key {
            decide(redis, &format!("RL.FIXED f{key} 10 36500d"));
            decide(redis, &format!("RL.SLIDING s{key} 10 36500d"));
            decide(redis, &format!("RL.TOKENBUCKET b{key} 10 1/d"));
            decide(redis, &format!("RL.SLIDINGLOG log{key} 10 36500d"));
            decide(redis, &format!("RL.LEAKY l{key} 10 1/d"));
            decide(redis, &format!("RL.TOKENBUCKET w{key} 9007199254740991 1/d {}", 1 + taken * 1_000_000_000_000_i64));
        }
    }
}

fn assert_exhausted_stays_exhausted(redis: &mut Connection) {
    for key in 10..20 {
        assert_eq!(decide(redis, &format!("RL.FIXED f{key} 10 36500d"))[0], 0);
        assert_eq!(decide(redis, &format!("RL.SLIDING s{key} 10 36500d"))[0], 0);
        assert_eq!(decide(redis, &format!("RL.TOKENBUCKET b{key} 10 1/d"))[0], 0);
        assert_eq!(decide(redis, &format!("RL.SLIDINGLOG log{key} 10 36500d"))[0], 0);
        assert_eq!(decide(redis, &format!("RL.LEAKY l{key} 10 1/d"))[0], 0);
    }
}

/// The server, killed, must come back with the same data, and so must one without the module from the same files.
fn assert_survives(mut server: Server, end: impl Fn(&mut Server)) {
    let mut redis = server.connect();
    let before = digest(&mut redis);
    end(&mut server);

    server.start_again(|options| options.module(None));
    assert_eq!(digest(&mut server.connect()), before, "without the module");
    end(&mut server);

    server.start_again(|options| options.module(Some(crate::support::module("redis_rl"))));
    let mut redis = server.connect();
    assert_eq!(digest(&mut redis), before, "with the module");
    assert_exhausted_stays_exhausted(&mut redis);
    assert_eq!(digest(&mut redis), before, "denied calls changed nothing");
}

#[test]
fn a_snapshot() {
    let server = Server::new();
    let mut redis = server.connect();
    fill(&mut redis);
    ask::<()>(&mut redis, "SAVE");
    assert_survives(server, Server::kill);
}

fn append_only(preamble: &str) -> Server {
    let server = Options::new()
        .set("appendonly", "yes")
        .set("appendfsync", "always")
        .set("aof-use-rdb-preamble", preamble)
        .start();
    fill(&mut server.connect());
    server
}

#[test]
fn an_append_only_file_and_kill_9() {
    assert_survives(append_only("yes"), Server::kill);
}

#[test]
fn an_append_only_file_and_an_orderly_end() {
    assert_survives(append_only("no"), Server::shut_down);
}

#[test]
fn a_rewritten_append_only_file() {
    for preamble in ["yes", "no"] {
        let server = append_only(preamble);
        let mut redis = server.connect();
        ask::<()>(&mut redis, "BGREWRITEAOF");
        let is_done = |redis: &mut Connection| {
            let field = |redis: &mut Connection, name| crate::support::info(redis, "persistence", name);
            field(redis, "aof_rewrite_in_progress").as_deref() == Some("0")
                && field(redis, "aof_rewrite_scheduled").as_deref() == Some("0")
        };
        wait_until("the file is rewritten", || is_done(&mut redis));
        fill(&mut redis);
        assert_survives(server, Server::kill);
    }
}

/// All that can be asked about the keys without taking anything, by both versions of the protocol.
fn told(server: &Server) -> Vec<redis::Value> {
    let mut keys: Vec<String> = ask(&mut server.connect(), "KEYS *");
    keys.sort();
    let looks = ["GET", "PEXPIRETIME", "RL.PEEK", "RL.INSPECT"];
    let lines = keys.iter().flat_map(|key| looks.map(|look| format!("{look} {key}"))).collect::<Vec<_>>();
    let by = |protocol| {
        let mut redis = server.connect_by(protocol);
        lines.iter().map(|line| send(&mut redis, line).unwrap()).collect::<Vec<redis::Value>>()
    };
    [by(2), by(3)].concat()
}

#[test]
fn every_reply_after_a_restart_is_what_it_was_before() {
    for (name, value) in [("appendonly", "yes"), ("save", "3600 1")] {
        let mut server = Options::new().set(name, value).with_clock().start();
        fill(&mut server.connect());
        server.clock().advance(HOUR);
        let before = told(&server);
        server.shut_down();
        server.start_again(|options| options);
        assert!(before.len() > 500 && told(&server) == before, "{name} {value}");
    }
}
