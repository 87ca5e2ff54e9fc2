//! A cluster: clients that know nothing of the module find the right node.

use redis::Value;
use redis::cluster::ClusterClient;

use crate::support::{Cluster, ask, decide, send, wait_until};

#[test]
fn a_client_routes_by_the_first_argument() {
    let cluster = Cluster::of(3);
    let mut redis = ClusterClient::new(cluster.addresses()).unwrap().get_connection().unwrap();
    for key in 0..300 {
        for (taken, remaining) in [(1, 1), (2, 0)] {
            let reply: Vec<i64> =
                redis::cmd("RL.FIXED").arg(format!("key:{key}")).arg(2).arg("36500d").query(&mut redis).unwrap();
            assert_eq!(reply[..3], [1, 2, remaining], "call {taken} for key:{key}");
        }
        let peeked: Vec<i64> = redis::cmd("RL.PEEK").arg(format!("key:{key}")).query(&mut redis).unwrap();
        assert_eq!(peeked[0], 0);
    }
    assert_eq!(cluster.redirections(), 0, "calls that went to a wrong node");
    let sizes: Vec<i64> = cluster.connections().iter_mut().map(|redis| ask(redis, "DBSIZE")).collect();
    assert_eq!(sizes.iter().sum::<i64>(), 300);
    assert!(sizes.iter().all(|&size| size > 50), "{sizes:?}");
}

#[test]
fn slots_with_limiters_move_to_another_node() {
    let cluster = Cluster::of(2);
    let [mut from, mut to] = <[_; 2]>::try_from(cluster.connections()).ok().unwrap();
    if ask::<Vec<Value>>(&mut from, "COMMAND INFO cluster|migrateslots") == [Value::Nil] {
        return; // Before Valkey 9.
    }
    let (key, slot) = ("bar", 5_061); // In the first node's half.
    decide(&mut from, &format!("RL.FIXED {key} 9 36500d 4"));
    let node: String = ask(&mut to, "CLUSTER MYID");
    ask::<()>(&mut from, &format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {node}"));
    wait_until("the slot has moved", || {
        send::<Vec<i64>>(&mut to, &format!("RL.FIXED {key} 9 36500d 0")).is_ok_and(|reply| reply[2] == 5)
    });
    assert_eq!(decide(&mut to, &format!("RL.FIXED {key} 9 36500d"))[..3], [1, 9, 4]);
}
