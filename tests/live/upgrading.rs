//! A new version of the module on all servers, replicas first, while callers go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redis::{Connection, ErrorKind, RedisResult, Value};
use tempfile::TempDir;

use crate::fleet::{Fleet, Report, connect_to};
use crate::support::{Cluster, Options, Server, ask, info, module, replica_of, wait_until};

fn fleet() -> Fleet {
    Fleet::of((0..60).map(|index| format!("key:{index}")))
}

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
fn restart_with(replica: &mut Server, module: &Path, change: impl FnOnce(Options) -> Options) {
    replica.shut_down();
    replica.change(|options| change(options).module(Some(module.to_owned())));
    replica.revive();
    let mut redis = replica.connect();
    wait_until("the replica is linked", || info(&mut redis, "replication", "master_link_status") == Some("up".into()));
}

fn replica_of_port(primary: u16) -> impl FnOnce(Options) -> Options {
    move |options| options.set("replicaof", &format!("127.0.0.1 {primary}"))
}

/// Waits until the two have changed their roles.
fn wait_for_change(mut roles: impl FnMut() -> [Option<String>; 2]) {
    wait_until("the roles have changed", || roles().map(Option::unwrap_or_default) == ["slave", "master"]);
}

/// Rolls a primary and its replica to this file: the replica is started again, takes over by `FAILOVER`, and the other one is started
/// again as its replica.
pub fn roll_replicas_first(next: &Path) {
    let options = || Options::new().set("repl-diskless-sync-delay", "0");
    let mut first = options().start();
    let mut second = replica_of(&first, options());
    let ports = [first.port(), second.port()];
    let fleet = fleet();
    let (reports, pause) = fleet.run(fleet.callers(move || connect_to_primary_of(ports)), || {
        fleet.wait_for_answers(500);
        restart_with(&mut second, next, replica_of_port(ports[0]));
        fleet.wait_for_answers(500);
        let mut operator = first.connect();
        let began = Instant::now();
        wait_until("the replica takes over", || {
            // Refused while the replica is not yet counted as online.
            redis::cmd("FAILOVER").query::<()>(&mut operator).is_ok() || first.role().as_deref() == Some("slave")
        });
        wait_for_change(|| [&first, &second].map(Server::role));
        let pause = began.elapsed();
        fleet.wait_for_answers(500);
        restart_with(&mut first, next, replica_of_port(ports[1]));
        fleet.wait_for_answers(500);
        pause
    });
    report(&reports, pause);
    let mut redis = second.connect();
    fleet.assert_exact(&mut redis);
    fleet.assert_limits_are_had_exactly(&mut redis, fleet.all());
    for server in [&first, &second] {
        assert_loaded(server, next);
    }
}

fn assert_loaded(server: &Server, module: &Path) {
    let modules = format!("{:?}", ask::<Value>(&mut server.connect(), "MODULE LIST"));
    assert!(modules.contains(module.to_str().unwrap()), "{modules}");
}

/// No call was lost: each was answered, or refused by a server that said so.
fn report(reports: &[Report], pause: Duration) {
    let failures: Vec<_> = reports.iter().flat_map(|report| &report.failures).collect();
    for failure in &failures {
        let refused = ["ReadOnly", "Moved"].iter().any(|code| failure.contains(code));
        assert!(refused || failure.contains("nobody is the primary"), "{failure}");
    }
    println!("{} calls were refused while the roles changed, which took {} ms", failures.len(), pause.as_millis());
}

/// Another file that is the same module.
fn next(folder: &TempDir) -> PathBuf {
    let next = folder.path().join("libredis_rl-next.so");
    fs::copy(module("redis_rl"), &next).unwrap();
    next
}

#[test]
fn replicas_first_with_a_failover_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    roll_replicas_first(&next(&folder));
}

/// A vote may be sent by a link that leads nowhere any more until the node that was started again has answered by a new one; then the
/// failover gives up after five seconds.
fn wait_for_a_sign_of_the_other(redis: &mut Connection) {
    let mut last_sign = || {
        let told: String = ask(redis, "CLUSTER NODES");
        let other = told.lines().find(|line| !line.contains("myself")).unwrap();
        other.split(' ').nth(5).unwrap().parse::<u64>().unwrap()
    };
    let before = last_sign();
    wait_until("the nodes hear of each other", || last_sign() > before);
}

#[test]
fn replicas_first_in_a_cluster_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let next = next(&folder);
    let mut cluster = Cluster::with_replicas_after(1, Duration::from_secs(5));
    let ports = [0, 1].map(|index| cluster.node(index).port());
    let fleet = fleet();
    let (reports, pause) = fleet.run(fleet.callers(move || connect_to_primary_of(ports)), || {
        fleet.wait_for_answers(500);
        restart_with(cluster.node(1), &next, |options| options);
        wait_for_a_sign_of_the_other(&mut cluster.node(0).connect());
        fleet.wait_for_answers(500);
        let began = Instant::now();
        ask::<()>(&mut cluster.node(1).connect(), "CLUSTER FAILOVER");
        wait_for_change(|| [0, 1].map(|index| cluster.node(index).role()));
        let pause = began.elapsed();
        fleet.wait_for_answers(500);
        restart_with(cluster.node(0), &next, |options| options);
        fleet.wait_for_answers(500);
        pause
    });
    report(&reports, pause);
    let mut redis = cluster.node(1).connect();
    fleet.assert_exact(&mut redis);
    fleet.assert_limits_are_had_exactly(&mut redis, fleet.all());
    for index in [0, 1] {
        assert_loaded(cluster.node(index), &next);
    }
}
