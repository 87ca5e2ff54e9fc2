//! What a replica answers: looks by its own clock, and no decisions, not even those that take nothing.

use crate::known::Known;
use crate::support::{Options, Server, ask, decide, digest, error, info, replica_of, wait_for_replicas, wait_until};

#[test]
fn a_replica_looks_and_decides_nothing() {
    let primary = Server::new();
    let mut redis = primary.connect();
    decide(&mut redis, "RL.FIXED f 5 36500d 2");
    let mut replica = replica_of(&primary, Options::new());
    wait_for_replicas(&mut redis, 1);
    let mut reader = replica.connect();
    let before = digest(&mut reader);
    for command in Known::all(&mut reader).iter().filter(|command| command.has_key) {
        let call = command.call(&["key:1", "key:2"]).join(" ");
        if command.reads {
            ask::<redis::Value>(&mut reader, &call);
        } else {
            assert!(error(&mut reader, &call).starts_with("READONLY"), "{call}");
        }
    }
    assert!(error(&mut reader, "RL.FIXED f 5 36500d 0").starts_with("READONLY"), "cost 0 is no look");
    assert_eq!(decide(&mut reader, "RL.PEEK f")[..3], [1, 5, 3]);
    assert_eq!(digest(&mut reader), before);

    // Without its primary a replica goes on showing what it has, unless it was told not to. That it decides nothing stays the first
    // reason.
    drop(redis);
    drop(primary);
    wait_until("the link is down", || info(&mut reader, "replication", "master_link_status") == Some("down".into()));
    assert_eq!(decide(&mut reader, "RL.PEEK f")[..3], [1, 5, 3]);
    ask::<()>(&mut reader, "CONFIG SET replica-serve-stale-data no");
    for (line, code) in [
        ("RL.PEEK f", "MASTERDOWN"),
        ("RL.INSPECT f", "MASTERDOWN"),
        ("RL.FIXED f 5 36500d", "READONLY"),
        ("RL.FIXED f 5 36500d 0", "READONLY"),
    ] {
        let refused = error(&mut reader, line);
        assert!(refused.starts_with(code), "{line}: {refused}");
    }
    ask::<()>(&mut reader, "REPLICAOF NO ONE");
    assert_eq!(decide(&mut reader, "RL.FIXED f 5 36500d")[..3], [1, 5, 2], "promoted, it goes on where it was");
    replica.kill();
}

/// `replica-read-only no` makes a replica decide for itself, and what it grants its primary never hears of.
#[test]
fn a_replica_that_may_be_written_grants_what_its_primary_grants_too() {
    let primary = Server::new();
    let mut redis = primary.connect();
    let replica = replica_of(&primary, Options::new().set("replica-read-only", "no"));
    let mut writable = replica.connect();
    assert_eq!(decide(&mut writable, "RL.FIXED f 5 36500d 5")[0], 1);
    assert_eq!(decide(&mut redis, "RL.FIXED f 5 36500d 5")[0], 1);
    wait_for_replicas(&mut redis, 1);
    assert_eq!(decide(&mut writable, "RL.PEEK f")[2], 0);
}
