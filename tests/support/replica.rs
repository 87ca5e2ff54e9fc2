//! Primaries and replicas.

use std::thread;
use std::time::{Duration, Instant};

use redis::Connection;

use super::server::{Options, Server};
use super::{ask, info};

/// Starts a replica of `primary` and waits until it is online.
pub fn replica_of(primary: &Server, options: Options) -> Server {
    let mut connection = primary.connect();
    ask::<()>(&mut connection, "CONFIG SET repl-diskless-sync-delay 0");
    let replica = options
        .set("replicaof", &format!("127.0.0.1 {}", primary.port()))
        .start();
    // A link that the replica calls up may not be online at the primary yet, and only then counts for WAIT.
    let online = || {
        info(&mut connection, "replication", "slave0")
            .is_some_and(|line| line.contains("state=online"))
    };
    wait_until("the replica is online", online);
    replica
}

/// Waits until all `count` replicas have what was written so far.
pub fn wait_for_replicas(primary: &mut Connection, count: usize) {
    let reached: usize = ask(primary, &format!("WAIT {count} 20000"));
    assert_eq!(reached, count, "replicas that have what was written");
}

/// How many bytes the server has replicated.
pub fn offset(connection: &mut Connection) -> u64 {
    info(connection, "replication", "master_repl_offset")
        .and_then(|offset| offset.parse().ok())
        .expect("an offset")
}

/// Waits, but not for ever.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited 30 s, but not: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
