//! A new version of the module on all servers, replicas first, while callers go on.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use redis::{Connection, ErrorKind, RedisResult};

use crate::fleet::{Fleet, connect_to};
use crate::support::{Options, Server, ask, info, module, replica_of, wait_until};

/// A connection to the one of two servers that is the primary.
fn connect_to_primary_of(ports: [u16; 2]) -> RedisResult<Connection> {
    for port in ports {
        let Ok(mut redis) = connect_to(port) else { continue };
        let told: RedisResult<String> = redis::cmd("INFO").arg("replication").query(&mut redis);
        if told.is_ok_and(|told| told.contains("role:master")) {
            return Ok(redis);
        }
    }
    Err((ErrorKind::Io, "nobody is the primary").into())
}

/// Starts a server that is a replica again, with another file.
fn restart_with(replica: &mut Server, module: &Path, primary: u16) {
    let settings = |options: Options| options.module(Some(module.to_owned()));
    replica.shut_down();
    replica.change(|options| settings(options).set("replicaof", &format!("127.0.0.1 {primary}")));
    replica.revive();
    let mut redis = replica.connect();
    wait_until("the replica is linked", || info(&mut redis, "replication", "master_link_status") == Some("up".into()));
}

/// Rolls a primary and its replica to this file: the replica is started again, takes over by `FAILOVER`, and the other one is started
/// again as its replica.
pub fn roll_replicas_first(next: &Path) {
    let options = || Options::new().set("repl-diskless-sync-delay", "0");
    let mut first = options().start();
    let mut second = replica_of(&first, options());
    let ports = [first.port(), second.port()];
    let fleet = Fleet::of((0..60).map(|index| format!("key:{index}")));
    let (reports, pause) = fleet.run(fleet.callers(move || connect_to_primary_of(ports)), || {
        fleet.wait_for_answers(500);
        restart_with(&mut second, next, ports[0]);
        fleet.wait_for_answers(500);
        let mut operator = first.connect();
        let began = Instant::now();
        wait_until("the replica takes over", || {
            // Refused while the replica is not yet counted as online.
            redis::cmd("FAILOVER").query::<()>(&mut operator).is_ok() || first.role().as_deref() == Some("slave")
        });
        wait_until("the roles have changed", || {
            [&first, &second].map(|server| server.role().unwrap_or_default()) == ["slave", "master"]
        });
        let pause = began.elapsed();
        fleet.wait_for_answers(500);
        restart_with(&mut first, next, ports[1]);
        fleet.wait_for_answers(500);
        pause
    });
    report(&reports.iter().flat_map(|report| report.failures.iter().map(String::as_str)).collect::<Vec<_>>(), pause);
    let mut redis = second.connect();
    fleet.assert_exact(&mut redis);
    fleet.assert_limits_are_had_exactly(&mut redis, fleet.all());
    for server in [&first, &second] {
        let modules: String = ask(&mut server.connect(), "INFO modules");
        assert_eq!(modules.matches("module:name=rl,").count(), 1, "{modules}");
    }
}

/// No call was lost: each was answered, or refused by a server that said so.
fn report(failures: &[&str], pause: Duration) {
    for failure in failures {
        let refused = ["ReadOnly", "UNBLOCKED"].iter().any(|code| failure.contains(code));
        assert!(refused || failure.contains("nobody is the primary"), "{failure}");
    }
    println!("{} calls were refused while the roles changed, which took {} ms", failures.len(), pause.as_millis());
}

#[test]
fn replicas_first_with_a_failover_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let next = folder.path().join("libredis_rl-next.so");
    fs::copy(module("redis_rl"), &next).unwrap();
    roll_replicas_first(&next);
}
