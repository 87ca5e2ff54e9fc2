//! Replicas that come under load, and replicas of those.

use std::ops::Range;

use redis::Connection;

use super::load::{Form, Keys, Scene, rounds};
use super::{alone, is_quiet, wait_for_quiet};
use crate::image::Image;
use crate::support::{Options, Server, ask, info, offset, send, wait_until};

/// The backlog is given up a second after the last replica has gone, and nothing but the load moves the offset.
fn short_of_memory(options: Options) -> Options {
    options.set("repl-backlog-ttl", "1").set("repl-ping-replica-period", "3600").set("repl-backlog-size", "32mb")
}

/// A replica, and one of its own, which need no module.
struct Chain {
    upper: Server,
    lower: Server,
}

impl Chain {
    fn new() -> Self {
        let [upper, lower] = [(); 2].map(|()| short_of_memory(alone()).module(None).start());
        // Not the lower one: Valkey may end a replica while its own replica syncs in that way (valkey-io/valkey#2983).
        own_channel(&mut upper.connect(), true);
        for server in [&upper, &lower] {
            ask::<()>(&mut server.connect(), "CONFIG SET repl-diskless-sync-delay 0");
        }
        ask::<()>(&mut lower.connect(), &format!("REPLICAOF 127.0.0.1 {}", upper.port()));
        Self { upper, lower }
    }

    fn follow(&self, primary: &Server) {
        ask::<()>(&mut self.upper.connect(), &format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    }

    fn leave(&self) {
        ask::<()>(&mut self.upper.connect(), "REPLICAOF NO ONE");
    }

    /// Waits until both have all, while nothing is written, and compares them.
    fn assert_equal(&self, scene: &mut Scene<'_>) {
        wait_for_link(&mut self.upper.connect());
        wait_for_link(&mut self.lower.connect());
        let image = scene.pause();
        let at = offset(&mut scene.redis);
        let theirs = [&self.upper, &self.lower].map(|server| {
            let mut redis = server.connect();
            wait_until("the replica has what was written", || offset(&mut redis) == at);
            Image::of(&mut redis)
        });
        scene.unpause();
        for (theirs, who) in theirs.iter().zip(["the replica", "its replica"]) {
            image.assert_equals(theirs, who);
        }
    }
}

fn wait_for_link(redis: &mut Connection) {
    wait_until("the link is up", || info(redis, "replication", "master_link_status").as_deref() == Some("up"));
}

/// The snapshot over a connection of its own, where the server knows that.
fn own_channel(redis: &mut Connection, is_on: bool) {
    let value = if is_on { "yes" } else { "no" };
    for setting in ["repl-rdb-channel", "dual-channel-replication-enabled"] {
        let _ = send::<()>(redis, &format!("CONFIG SET {setting} {value}"));
    }
}

/// By disk, and over sockets, at once, and after a second in which others could come; the latter by both connections that servers know.
const WAYS: [(&str, &str, bool); 5] =
    [("no", "0", false), ("yes", "0", true), ("yes", "1", false), ("yes", "0", false), ("yes", "1", true)];

fn replicas_come_and_go(times: Range<u32>) {
    let chain = Chain::new();
    rounds(times, Keys::All, short_of_memory, |scene, time| {
        let (diskless, delay, own) = WAYS[time as usize % WAYS.len()];
        ask::<()>(&mut scene.redis, &format!("CONFIG SET repl-diskless-sync {diskless}"));
        ask::<()>(&mut scene.redis, &format!("CONFIG SET repl-diskless-sync-delay {delay}"));
        own_channel(&mut scene.redis, own);
        // A change of the configuration is heard of, so it takes another look.
        scene.wait_for_quiet();
        // Every other time the replica must wait until another child is gone.
        if scene.random.percent(50) {
            ask::<String>(&mut scene.redis, "BGSAVE");
            if scene.random.percent(50) {
                scene.wait_for_quiet();
            }
        }
        chain.follow(scene.server);
        scene.wait_for_answers(50);
        chain.assert_equal(scene);
        scene.wait_for_answers(50);
        chain.assert_equal(scene);
        chain.leave();
    });
}

/// A replica that is away while the backlog is given up must begin anew: it asks for where it was.
fn replicas_are_cut_off(times: Range<u32>) {
    let chain = Chain::new();
    rounds(times, Keys::All, short_of_memory, |scene, _| {
        ask::<()>(&mut scene.redis, "CONFIG SET repl-diskless-sync-delay 0");
        scene.wait_for_quiet();
        let synced = |redis: &mut Connection| {
            ["sync_full", "sync_partial_ok", "sync_partial_err"]
                .map(|field| info(redis, "stats", field).unwrap().parse::<u64>().unwrap())
        };
        chain.follow(scene.server);
        wait_for_link(&mut chain.upper.connect());
        scene.wait_for_answers(50);

        // A short cut: it is resumed where it broke.
        let before = synced(&mut scene.redis);
        ask::<()>(&mut scene.redis, "CLIENT KILL TYPE replica");
        wait_until("the link is resumed", || synced(&mut scene.redis)[1] > before[1]);
        assert_eq!(synced(&mut scene.redis)[0], before[0], "a full sync");
        chain.assert_equal(scene);

        // A long one: the replica stands still until effects are held back.
        chain.upper.stop();
        ask::<()>(&mut scene.redis, "CLIENT KILL TYPE replica");
        scene.wait_for_quiet();
        scene.wait_for_answers(50);
        let before = synced(&mut scene.redis);
        chain.upper.cont();
        wait_until("a full sync", || synced(&mut scene.redis)[0] > before[0]);
        assert!(synced(&mut scene.redis)[2] > before[2], "it did not ask for where it was");
        chain.assert_equal(scene);
        chain.leave();
    });
}

/// The primary becomes its replica's replica while effects are held back, and asks for where it was itself.
fn roles_are_exchanged(times: Range<u32>) {
    for _ in times {
        let [mut one, mut other] = [(); 2].map(|()| short_of_memory(alone()).start());
        for server in [&one, &other] {
            ask::<()>(&mut server.connect(), "CONFIG SET repl-diskless-sync-delay 0");
        }
        for time in 0..3 {
            let (mut primary, mut replica) = (one.connect(), other.connect());
            ask::<()>(&mut replica, &format!("REPLICAOF 127.0.0.1 {}", one.port()));
            wait_for_link(&mut replica);
            for call in 0..20 {
                ask::<redis::Value>(&mut primary, &format!("RL.FIXED k:{call} 1000 36500d {}", 1 + time));
            }
            ask::<()>(&mut replica, "REPLICAOF NO ONE");
            for redis in [&mut primary, &mut replica] {
                wait_for_quiet(redis);
            }
            // Each goes its own way, and neither tells.
            for call in 0..20 {
                ask::<redis::Value>(&mut primary, &format!("RL.FIXED k:{call} 1000 36500d 10"));
                ask::<redis::Value>(&mut replica, &format!("RL.FIXED k:{call} 1000 36500d 20"));
            }
            assert!(is_quiet(&mut primary) && is_quiet(&mut replica));
            ask::<()>(&mut primary, &format!("REPLICAOF 127.0.0.1 {}", other.port()));
            wait_for_link(&mut primary);
            ask::<redis::Value>(&mut replica, "RL.FIXED k:0 1000 36500d 3");
            crate::support::wait_for_replicas(&mut replica, 1);
            Image::of(&mut replica).assert_equals(&Image::of(&mut primary), "the former primary");
            ask::<()>(&mut primary, "REPLICAOF NO ONE");
            std::mem::swap(&mut one, &mut other);
        }
    }
}

#[test]
fn a_replica_that_comes_under_load_lacks_nothing() {
    Form::Short.run(replicas_come_and_go);
}

#[test]
fn a_replica_that_was_cut_off_lacks_nothing() {
    Form::Short.run(replicas_are_cut_off);
}

#[test]
fn a_primary_that_becomes_a_replica_lacks_nothing() {
    Form::Short.run(roles_are_exchanged);
}

#[test]
#[ignore = "long: a hundred rounds"]
fn a_hundred_times_a_replica_that_comes_under_load_lacks_nothing() {
    Form::Long.run(replicas_come_and_go);
}

#[test]
#[ignore = "long: a hundred rounds"]
fn a_hundred_times_a_replica_that_was_cut_off_lacks_nothing() {
    Form::Long.run(replicas_are_cut_off);
}
