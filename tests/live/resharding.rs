//! Slots that move to another primary under load: nothing is forgotten, nothing is counted twice.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use redis::cluster::ClusterClient;
use redis::{Connection, Value};

use crate::fleet::{Fleet, assert_no_failures};
use crate::image::Image;
use crate::support::{Cluster, ask, info, offset, send, wait_until};

/// The first primary of three has the slots from 0 on; tools move the first of them first.
const PRIMARIES: usize = 3;

/// Limiters under `tags` names in each of the slots up to `slots` for which one is found, and as many in others.
fn fleet_in_the_first(slots: usize, tags: usize, redis: &mut Connection) -> Fleet {
    let names: Vec<String> = (0..2 * tags * 16_384 / slots).map(|number| format!("tag{number}")).collect();
    let mut pipe = redis::pipe();
    names.iter().for_each(|name| {
        pipe.cmd("CLUSTER").arg("KEYSLOT").arg(name);
    });
    let found: Vec<usize> = pipe.query(redis).unwrap();
    let moving = names.iter().zip(&found).filter(|&(_, &slot)| slot < slots).map(|(name, _)| name);
    let staying = names.iter().zip(&found).filter(|&(_, &slot)| slot >= slots).map(|(name, _)| name);
    let chosen: Vec<_> = moving.take(tags).zip(staying.take(tags)).collect();
    assert_eq!(chosen.len(), tags, "names of slots below {slots}");
    // Each slot has limiters of every kind.
    Fleet::of((0..15).flat_map(|index| {
        let keys =
            chosen.iter().flat_map(move |(moving, staying)| [moving, staying].map(|tag| format!("{{{tag}}}:{index}")));
        keys.collect::<Vec<_>>()
    }))
}

fn id(redis: &mut Connection) -> String {
    ask(redis, "CLUSTER MYID")
}

/// Runs a tool that comes with Redis. The error is what it said.
fn redis_cli(arguments: &[&str]) -> Result<(), String> {
    let done = Command::new("redis-cli").arg("--cluster").args(arguments).output().expect("redis-cli");
    let told = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    if done.status.success() && !told.contains("[ERR]") { Ok(()) } else { Err(told.into_owned()) }
}

/// As an operator does: the tool moves slot by slot, `MIGRATE` carries the keys.
fn reshard(cluster: &mut Cluster, from: usize, to: usize, slots: usize) {
    let address = format!("127.0.0.1:{}", cluster.node(from).port());
    let [mut source, mut target] = [from, to].map(|index| cluster.node(index).connect());
    let [source_id, target_id] = [&mut source, &mut target].map(id);
    loop {
        let left = slots_below(slots, &mut source);
        if left == 0 {
            return;
        }
        // Not before all nodes have heard of the last move, and of no other.
        wait_until("the nodes agree, and no slot is open", || is_settled(&address, &mut target));
        let (ends, count) = (["--cluster-from", &source_id, "--cluster-to", &target_id], left.to_string());
        let done =
            redis_cli(&[&["reshard", &address], &ends[..], &["--cluster-slots", &count, "--cluster-yes"]].concat());
        if let Err(told) = done {
            // Valkey gives up on a step that a replica does not confirm within two seconds.
            assert!(told.contains("NOREPLICAS"), "{told}");
        }
    }
}

/// Whether all nodes agree, and no slot is half moved any more. What only a replica of the target holds open, the tool sees and can't
/// close.
fn is_settled(address: &str, target: &mut Connection) -> bool {
    let Err(told) = redis_cli(&["fix", address]) else { return true };
    if let Some((_, rest)) = told.split_once("can't fix this slot yet").and(told.split_once("Fixing open slot ")) {
        let slot = rest.split(|letter: char| !letter.is_ascii_digit()).next().expect("a number");
        // Without its replica the target refuses this too.
        let _ = send::<()>(target, &format!("CLUSTER SETSLOT {slot} STABLE"));
    }
    false
}

/// How many of the first slots a node has.
fn slots_below(end: usize, redis: &mut Connection) -> usize {
    let nodes: String = ask(redis, "CLUSTER NODES");
    let own = nodes.lines().find(|line| line.contains("myself")).expect("the node itself");
    let ranges = own.split(' ').skip(8).filter(|range| !range.starts_with('['));
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let [first, last] = [first, last].map(|slot| slot.parse::<usize>().unwrap());
        (last + 1).min(end).saturating_sub(first)
    };
    ranges.map(count).sum()
}

/// As Valkey 9 does: the slots go over as a whole, by a stream of their own.
fn migrate_atomically(cluster: &mut Cluster, from: usize, to: usize, slots: usize) {
    let target = id(&mut cluster.node(to).connect());
    let mut source = cluster.node(from).connect();
    ask::<()>(&mut source, &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 {} NODE {target}", slots - 1));
    wait_until("the slots have moved", || {
        let jobs: Vec<BTreeMap<String, Value>> = ask(&mut source, "CLUSTER GETSLOTMIGRATIONS");
        let state: String = redis::from_redis_value(jobs[0]["state"].clone()).unwrap();
        assert!(!["failed", "cancelled"].contains(&state.as_str()), "{jobs:?}");
        state == "success"
    });
}

fn knows_atomic_migration(redis: &mut Connection) -> bool {
    ask::<Vec<Value>>(redis, "COMMAND INFO cluster|migrateslots") != [Value::Nil]
}

/// The values of all keys in the first slots and when they expire, at the node that has them.
fn dumps(cluster: &mut Cluster, at: usize, fleet: &Fleet, slots: usize) -> BTreeMap<String, (Vec<u8>, i64)> {
    let mut redis = cluster.node(at).connect();
    let is_moving = |redis: &mut Connection, key: &str| ask::<usize>(redis, &format!("CLUSTER KEYSLOT {key}")) < slots;
    let keys: Vec<_> = fleet.keys().filter(|key| is_moving(&mut redis, key)).map(str::to_owned).collect();
    let mut dumped =
        |key: &str| (ask(&mut redis, &format!("DUMP {key}")), ask(&mut redis, &format!("PEXPIRETIME {key}")));
    keys.into_iter().map(|key| (key.clone(), dumped(&key))).collect()
}

fn assert_nothing_is_forgotten_or_counted_twice(
    slots: usize,
    tags: usize,
    rounds: usize,
    move_slots: impl Fn(&mut Cluster, usize, usize, usize),
) {
    let mut cluster = Cluster::with_replicas_after(PRIMARIES, Duration::from_secs(30));
    let fleet = fleet_in_the_first(slots, tags, &mut cluster.node(0).connect());
    let client = ClusterClient::new(cluster.addresses()).unwrap();
    fleet.begin(&mut client.get_connection().unwrap());
    let (reports, ()) = fleet.run(fleet.callers(|| client.get_connection()), || {
        fleet.wait_for_answers(1_000);
        for round in 0..rounds {
            move_slots(&mut cluster, round % PRIMARIES, (round + 1) % PRIMARIES, slots);
            fleet.wait_for_answers(500);
        }
    });
    assert_no_failures(&reports);
    let (asked, moved) = (cluster.errors("ASK"), cluster.errors("MOVED"));
    println!("{slots} slots with {} keys moved {rounds} times: ASK {asked}, MOVED {moved}", 15 * tags);
    assert!(moved > 0, "the load has met the move");
    let holds = |cluster: &mut Cluster, at| {
        let counts = (0..slots).map(|slot| format!("CLUSTER COUNTKEYSINSLOT {slot}"));
        let mut redis = cluster.node(at).connect();
        counts.map(|line| ask::<usize>(&mut redis, &line)).sum::<usize>()
    };
    let (source, target) = ((rounds - 1) % PRIMARIES, rounds % PRIMARIES);
    assert_eq!((holds(&mut cluster, source), holds(&mut cluster, target)), (0, 15 * tags), "keys in these slots");

    let mut redis = client.get_connection().unwrap();
    fleet.assert_exact(&mut redis);
    let before = dumps(&mut cluster, target, &fleet, slots);
    assert_eq!(before.len(), 15 * tags);
    move_slots(&mut cluster, target, source, slots);
    for (key, (value, expiry)) in dumps(&mut cluster, source, &fleet, slots) {
        assert!(value == before[&key].0, "the value of {key}, which moved");
        // `MIGRATE` carries the time to live.
        let later = expiry - before[&key].1;
        assert!((0..600_000).contains(&later), "{key}, which moved, expires {later} ms later");
    }
    fleet.assert_exact(&mut redis);
    fleet.assert_limits_are_had_exactly(&mut redis, fleet.all());
    for primary in 0..PRIMARIES {
        let mut replica = cluster.node(PRIMARIES + primary).connect();
        let mut primary = cluster.node(primary).connect();
        wait_until("the replica has what was written", || offset(&mut replica) == offset(&mut primary));
        ask::<()>(&mut replica, "READONLY");
        Image::of(&mut primary).assert_equals(&Image::of(&mut replica), "a replica");
        assert_eq!(info(&mut replica, "replication", "role").unwrap(), "slave", "nobody failed over");
    }
}

#[test]
fn a_reshard_under_load() {
    assert_nothing_is_forgotten_or_counted_twice(100, 14, 1, reshard);
}

#[test]
fn an_atomic_migration_of_slots_under_load() {
    let server = crate::support::Server::new();
    if knows_atomic_migration(&mut server.connect()) {
        assert_nothing_is_forgotten_or_counted_twice(100, 14, 1, migrate_atomically);
    } else {
        crate::support::skip("moves of slots as a whole came with Valkey 9");
    }
}

#[test]
#[ignore = "moves a thousand slots with thousands of keys around the cluster, for a minute"]
fn slots_that_go_round_the_cluster_under_load() {
    assert_nothing_is_forgotten_or_counted_twice(1_000, 150, 3, reshard);
    let server = crate::support::Server::new();
    if knows_atomic_migration(&mut server.connect()) {
        assert_nothing_is_forgotten_or_counted_twice(1_000, 150, 3, migrate_atomically);
    }
}
