//! Replicas of a primary under load, and replicas of those: equal at any moment, with and without the module.

use std::process::Command;

use redis::Connection;

use crate::fleet::{Caller, Fleet, LIBRARY, Way, assert_no_failures, connect_to};
use crate::image::{Image, assert_equal_under_load};
use crate::support::{Options, Server, ask, decide, info, replica_of, send_words, wait_until};

/// A primary, and two replicas with a replica each.
struct Chain {
    primary: Server,
    with: Server,
    below_with: Server,
    without: Server,
    below_without: Server,
}

fn options() -> Options {
    // Nothing but the load moves the offset, and the backlog holds all of it.
    Options::new().set("repl-ping-replica-period", "3600").set("repl-backlog-size", "32mb")
}

/// What the server has written outlives it, and no machine fails here.
fn appending() -> Options {
    options().set("appendonly", "yes").set("appendfsync", "no")
}

impl Chain {
    fn new() -> Self {
        let primary = options().start();
        send_words::<()>(&mut primary.connect(), &[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]).unwrap();
        let with = replica_of(&primary, options());
        let without = replica_of(&primary, appending().module(None));
        let below_with = replica_of(&with, options().module(None));
        let below_without = replica_of(&without, appending());
        Self { primary, with, below_with, without, below_without }
    }

    fn replicas(&self) -> [(&'static str, Connection); 4] {
        [
            ("the replica with the module", self.with.connect()),
            ("its replica without", self.below_with.connect()),
            ("the replica without the module", self.without.connect()),
            ("its replica with the module", self.below_without.connect()),
        ]
    }

    /// Callers who call in all ways.
    fn callers<'a>(&self, fleet: &Fleet, noise: &'a [String]) -> Vec<Caller<'a, Connection>> {
        let port = self.primary.port();
        let mut callers = fleet.callers(move || connect_to(port));
        for caller in &mut callers {
            caller.ways = &[Way::Plain, Way::Transaction, Way::Script, Way::Function];
            caller.noise = noise;
        }
        callers
    }
}

fn fleet() -> Fleet {
    Fleet::of((0..60).map(|index| format!("key:{index}")))
}

/// Of each kind of noise so many keys.
const NOISY: usize = 5;

/// What replicates something else than a few bytes of a state that stays: states that are soon unused, that become so by a refund, that
/// change their form; expiries that are lost, and set again by the next call.
fn noise(fleet: &Fleet) -> Vec<String> {
    let mut lines = vec![];
    for index in 0..NOISY {
        lines.extend([
            format!("RL.SLIDINGLOG short:{index} 40 1ms 3"),
            format!("RL.SLIDINGLOG moving:{index} 1000000 2s"),
            format!("RL.TOKENBUCKET moving-bucket:{index} 1000000 1000 700"),
            format!("RL.TOKENBUCKET gone:{index} 4 1/d"),
            format!("RL.REFUND gone:{index} 4"),
            format!("RL.TOKENBUCKET changing:{index} 100 1/d"),
            format!("RL.TOKENBUCKET changing:{index} 9007199254740991 1/36500d"),
        ]);
    }
    lines.extend(fleet.keys().map(|key| format!("PERSIST {key}")));
    lines
}

#[test]
fn replicas_and_theirs_are_equal_under_load_and_so_is_an_append_only_file_of_one() {
    let mut chain = Chain::new();
    let fleet = fleet();
    let noise = noise(&fleet);
    let mut primary = chain.primary.connect();
    let (reports, ()) = fleet.run(chain.callers(&fleet, &noise), || {
        for _ in 0..4 {
            fleet.wait_for_answers(500);
            assert_equal_under_load(&mut primary, &mut chain.replicas());
        }
    });
    assert_no_failures(&reports);
    // What expires meanwhile is not loaded.
    for index in 0..NOISY {
        ask::<()>(&mut primary, &format!("DEL short:{index} moving:{index} moving-bucket:{index}"));
    }
    let image = assert_equal_under_load(&mut primary, &mut chain.replicas());
    fleet.assert_exact(&mut primary);
    assert_eq!(info(&mut primary, "stats", "sync_full").unwrap(), "2", "nobody had to begin anew");

    for replica in [&mut chain.below_without, &mut chain.without] {
        replica.kill();
        replica.start_again(|options| options.set("replicaof", "no one"));
        image.assert_equals(&Image::of(&mut replica.connect()), "from its own file");
    }
    fleet.assert_limits_are_had_exactly(&mut chain.below_without.connect(), fleet.all());
}

#[test]
fn a_link_that_was_cut_is_resumed_where_it_broke() {
    const CUTS: u64 = 5;
    let chain = Chain::new();
    let fleet = fleet();
    let noise = noise(&fleet);
    let mut primary = chain.primary.connect();
    let number = |redis: &mut Connection, field| info(redis, "stats", field).unwrap().parse::<u64>().unwrap();
    let mut upper = [chain.primary.connect(), chain.with.connect(), chain.without.connect()];
    let full = upper.each_mut().map(|redis| number(redis, "sync_full"));
    let (reports, ()) = fleet.run(chain.callers(&fleet, &noise), || {
        for cut in 1..=CUTS {
            for redis in &mut upper {
                ask::<()>(redis, "CLIENT KILL TYPE replica");
            }
            fleet.wait_for_answers(100);
            for (redis, replicas) in upper.iter_mut().zip([2, 1, 1]) {
                wait_until("the link is resumed", || number(redis, "sync_partial_ok") >= cut * replicas);
            }
        }
        assert_equal_under_load(&mut primary, &mut chain.replicas());
    });
    assert_no_failures(&reports);
    assert_equal_under_load(&mut primary, &mut chain.replicas());
    fleet.assert_exact(&mut primary);
    assert_eq!(upper.each_mut().map(|redis| number(redis, "sync_full")), full, "nobody had to begin anew");
}

/// It would answer `LOADING` if the module did not say that it copes.
#[test]
fn a_replica_that_loads_a_new_data_set_beside_its_own_goes_on_answering_looks() {
    let primary = options().set("repl-backlog-size", "16384").start();
    let fleet = Fleet::of((0..1_000).map(|index| format!("key:{index}")));
    let slowly = options().set("key-load-delay", "500").set("loading-process-events-interval-bytes", "1024");
    let mut redis = primary.connect();
    decide(&mut redis, "RL.FIXED looked-at 9 36500d 2");
    let replica = replica_of(&primary, slowly.set("repl-diskless-load", "swapdb"));
    let mut reader = replica.connect();
    let (reports, looks) = fleet.run(fleet.callers(|| connect_to(primary.port())), || {
        fleet.wait_for_answers(3_000);
        // The link breaks, and more is written than can be resumed.
        replica.stop();
        ask::<()>(&mut redis, "CLIENT KILL TYPE replica");
        fleet.wait_for_answers(1_000);
        replica.cont();
        let mut looks = 0;
        wait_until("the replica has loaded the new data set", || {
            let is_loading = info(&mut reader, "persistence", "async_loading").as_deref() == Some("1");
            assert_eq!(decide(&mut reader, "RL.PEEK looked-at")[..3], [1, 9, 7]);
            looks += i32::from(is_loading);
            looks > 0 && !is_loading
        });
        looks
    });
    assert_no_failures(&reports);
    assert!(looks > 1, "{looks} looks while it loaded");
    wait_until("the link is up", || info(&mut reader, "replication", "master_link_status").unwrap() == "up");
    assert_equal_under_load(&mut redis, &mut [("the replica", replica.connect())]);
    fleet.assert_exact(&mut redis);
    let log = replica.log();
    assert!(log.contains("Loading DB in memory") && !log.contains("Skipping diskless-load"), "{log}");
}

/// Whoever runs `redis-check-aof` on the file of a replica without the module must not be told of commands that it does not know.
#[test]
fn a_replica_s_append_only_file_holds_plain_commands_only() {
    let primary = options().start();
    let replica = replica_of(&primary, appending().module(None));
    let mut redis = primary.connect();
    for index in 0..5 {
        decide(&mut redis, &format!("RL.SLIDINGLOG log:{index} 9 36500d"));
        decide(&mut redis, &format!("RL.FIXED f:{index} 9 36500d"));
    }
    assert_equal_under_load(&mut redis, &mut [("the replica", replica.connect())]);
    let found = Command::new("grep").args(["-raic", "rl\\."]).arg(replica.folder().join("appendonlydir")).output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert!(found.lines().all(|line| line.ends_with(":0")) && !found.is_empty(), "{found}");
}
