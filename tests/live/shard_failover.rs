//! A primary of a cluster that is killed: its shard fails over, the others never notice.

use std::time::{Duration, Instant};

use crate::fleet::{CALLERS, Caller, Fleet, Way, assert_no_failures, connect_to};
use crate::support::{Cluster, ask};

const SHARDS: usize = 3;
/// Limiters of each shard.
const LIMITERS: usize = 30;

/// Limiters of each shard, one shard after the other.
fn fleet(cluster: &mut Cluster) -> Fleet {
    let mut redis = cluster.node(0).connect();
    let mut keys = [const { vec![] }; SHARDS];
    for number in 0.. {
        let key = format!("key:{number}");
        let slot: usize = ask(&mut redis, &format!("CLUSTER KEYSLOT {key}"));
        let shard = (0..SHARDS).find(|shard| slot < (shard + 1) * 16_384 / SHARDS).unwrap();
        if keys[shard].len() < LIMITERS {
            keys[shard].push(key);
        }
        if keys.iter().all(|keys| keys.len() == LIMITERS) {
            break;
        }
    }
    Fleet::of(keys.into_iter().flatten())
}

#[test]
fn a_primary_that_is_killed_under_load_is_followed_by_its_replica_and_the_other_shards_never_notice() {
    let mut cluster = Cluster::with_replicas_after(SHARDS, Duration::from_secs(2));
    let fleet = fleet(&mut cluster);
    let ports: Vec<u16> = (0..2 * SHARDS).map(|index| cluster.node(index).port()).collect();
    let limiters = |shard| shard * LIMITERS..(shard + 1) * LIMITERS;
    let caller = |index: usize| {
        let shard = index % SHARDS;
        let (primary, replica) = (ports[shard], ports[SHARDS + shard]);
        Caller {
            connect: Box::new(move || connect_to(primary).or_else(|_| connect_to(replica))),
            limiters: limiters(shard),
            ways: &[Way::Plain],
            noise: &[],
        }
    };
    let mut first = cluster.node(0).connect();
    let callers = (0..CALLERS.next_multiple_of(SHARDS)).map(caller).collect();
    let (reports, (kept, meanwhile)) = fleet.run(callers, || {
        let kept = fleet.kept_by_replicas(&mut first, 2_000);
        cluster.node(0).kill();
        let (began, killed) = (Instant::now(), fleet.answers());
        cluster.wait_for_failover_of(0);
        let meanwhile = fleet.answers() - killed;
        println!("the replica took over after {:?}", began.elapsed());
        fleet.wait_for_answers(2_000);
        (kept, meanwhile)
    });
    println!("{meanwhile} calls of the other shards were answered while one failed over");
    assert!(meanwhile > 0, "the other shards went on meanwhile");
    let of_others = reports.iter().enumerate().filter(|(index, _)| index % SHARDS != 0);
    assert_no_failures(of_others.map(|(_, report)| report));
    for (index, report) in reports.iter().enumerate().filter(|(index, _)| index % SHARDS == 0) {
        assert!(!report.failures.is_empty(), "caller {index} has lost its server");
    }

    let mut promoted = connect_to(ports[SHARDS]).unwrap();
    let forgotten = fleet.forgotten(&mut promoted, limiters(0), &kept);
    println!(
        "A primary of three killed: {} units were granted again, of {} that may not have been replicated",
        forgotten.units, forgotten.most
    );
    for (shard, &port) in ports.iter().enumerate().take(SHARDS).skip(1) {
        fleet.assert_limits_are_had_exactly(&mut connect_to(port).unwrap(), limiters(shard));
    }
}
