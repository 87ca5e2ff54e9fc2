//! A cluster: clients that know nothing of the module find the right node.

use redis::Value;
use redis::cluster::ClusterClient;

use crate::support::{Cluster, ask, decide, error, error_of_words, send, skip, wait_until};

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
        return skip("moves of slots as a whole came with Valkey 9");
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

/// The server refuses blocks and scripts that ask for keys of several slots, as it does with any commands, and nothing is taken.
#[test]
fn keys_of_two_slots_in_a_transaction_or_a_script_are_refused_by_the_server() {
    let cluster = Cluster::of(1);
    let mut redis = cluster.connections().remove(0);
    ask::<()>(&mut redis, "MULTI");
    ask::<()>(&mut redis, "RL.FIXED one 5 36500d");
    ask::<()>(&mut redis, "RL.FIXED two 5 36500d");
    assert!(error(&mut redis, "EXEC").starts_with("CROSSSLOT "));
    let both = b"redis.call('RL.FIXED', KEYS[1], 5, '36500d') return redis.call('RL.FIXED', KEYS[2], 5, '36500d')";
    let declared = error_of_words(&mut redis, &[b"EVAL", both, b"2", b"one", b"two"]);
    assert!(declared.starts_with("CROSSSLOT "), "{declared}");
    assert_eq!(ask::<i64>(&mut redis, "DBSIZE"), 0, "nothing was taken");

    // With one tag they share a slot, and are decided together.
    ask::<()>(&mut redis, "MULTI");
    ask::<()>(&mut redis, "RL.FIXED {user}:second 5 36500d");
    ask::<()>(&mut redis, "RL.FIXED {user}:day 9 36500d");
    let both: Vec<Vec<i64>> = ask(&mut redis, "EXEC");
    assert_eq!((&both[0][..3], &both[1][..3]), (&[1, 5, 4][..], &[1, 9, 8][..]));
}
