//! Primaries and replicas.

use std::thread;
use std::time::{Duration, Instant};

use redis::Connection;

use super::server::{Options, Server};
use super::{ask, info};

/// Starts a replica of `primary` and waits until it is online.
pub fn replica_of(primary: &Server, options: Options) -> Server {
    replica_by(primary, primary.port(), options)
}

/// The same for a replica that reaches its primary by another port.
pub fn replica_by(primary: &Server, port: u16, options: Options) -> Server {
    let mut connection = primary.connect();
    ask::<()>(&mut connection, "CONFIG SET repl-diskless-sync-delay 0");
    let replica = options.set("replicaof", &format!("127.0.0.1 {port}")).start();
    // The primary may call a replica online that has not loaded what it was sent (Valkey 9.1), and the replica may call the
    // link up before the primary counts it for WAIT.
    let mut at_replica = replica.connect();
    wait_until("the replica is online", || {
        let slave = info(&mut connection, "replication", "slave0").unwrap_or_default();
        let link = info(&mut at_replica, "replication", "master_link_status").unwrap_or_default();
        slave.contains("state=online") && link == "up"
    });
    replica
}

/// Waits until all `count` replicas have what was written so far.
pub fn wait_for_replicas(primary: &mut Connection, count: usize) {
    let reached: usize = ask(primary, &format!("WAIT {count} 20000"));
    assert_eq!(reached, count, "replicas that have what was written");
}

/// How many bytes the server has replicated.
pub fn offset(connection: &mut Connection) -> u64 {
    info(connection, "replication", "master_repl_offset").and_then(|offset| offset.parse().ok()).expect("an offset")
}

/// Waits, but not for ever.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited 30 s, but not: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
