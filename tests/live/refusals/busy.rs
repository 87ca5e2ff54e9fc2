//! `BUSY`: a script runs for longer than it may.

use std::thread;

use redis::Connection;

use super::Witness;
use crate::support::{Options, Server, ask, decide, error, send, wait_until};

/// Runs a script that does not end by itself, and what is to be seen meanwhile; the script's error.
fn while_running(server: &Server, script: &str, meanwhile: impl FnOnce(&mut Connection)) -> String {
    thread::scope(|scope| {
        let mut runner = server.connect();
        let running = scope.spawn(move || {
            let script = format!("{script} while true do end");
            redis::cmd("EVAL").arg(script).arg(1).arg("run").query::<()>(&mut runner).unwrap_err().to_string()
        });
        let mut redis = server.connect();
        wait_until("the server is busy", || send::<()>(&mut redis, "GET x").is_err());
        meanwhile(&mut redis);
        running.join().unwrap()
    })
}

#[test]
fn a_script_that_does_not_end() {
    let server = Options::new().set("lua-time-limit", "20").start();
    let witness = Witness::of(&server);
    let ended = while_running(&server, "", |redis| {
        witness.assert_no_decisions(redis, "BUSY");
        witness.assert_no_looks(redis, "BUSY");
        ask::<()>(redis, "SCRIPT KILL");
    });
    assert!(ended.contains("killed"), "{ended}");
    witness.assert_goes_on(&mut server.connect());
}

/// A command that may write makes the server keep the script, whatever it answered: only its death ends that.
#[test]
fn a_script_that_has_asked_a_limiter_can_not_be_killed() {
    let mut server = Options::new().set("lua-time-limit", "20").set("appendonly", "yes").start();
    decide(&mut server.connect(), "RL.FIXED run 1 36500d");
    let port = server.port();
    let mut denied = server.connect();
    let running = thread::spawn(move || {
        let script = "redis.call('RL.FIXED', KEYS[1], '1', '36500d') while true do end";
        redis::cmd("EVAL").arg(script).arg(1).arg("run").query::<()>(&mut denied).unwrap_err();
    });
    let mut redis = server.connect();
    wait_until("the server is busy", || send::<()>(&mut redis, "GET x").is_err());
    assert!(error(&mut redis, "SCRIPT KILL").starts_with("UNKILLABLE "), "at port {port}");
    assert!(error(&mut redis, "RL.FIXED run 1 36500d").starts_with("BUSY "));
    server.kill();
    running.join().unwrap();
    server.revive();
    assert_eq!(decide(&mut server.connect(), "RL.FIXED run 1 36500d")[0], 0);
}
