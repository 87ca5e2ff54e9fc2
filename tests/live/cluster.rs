//! A cluster: clients that know nothing of the module find the right node.

use redis::cluster::ClusterClient;

use crate::support::{Cluster, ask};

#[test]
fn a_client_routes_by_the_first_argument() {
    let cluster = Cluster::of(3);
    let mut redis = ClusterClient::new(cluster.addresses())
        .unwrap()
        .get_connection()
        .unwrap();
    for key in 0..300 {
        for (taken, remaining) in [(1, 1), (2, 0)] {
            let reply: Vec<i64> = redis::cmd("RL.FIXED")
                .arg(format!("key:{key}"))
                .arg(2)
                .arg("36500d")
                .query(&mut redis)
                .unwrap();
            assert_eq!(reply[..3], [1, 2, remaining], "call {taken} for key:{key}");
        }
        let peeked: Vec<i64> = redis::cmd("RL.PEEK")
            .arg(format!("key:{key}"))
            .query(&mut redis)
            .unwrap();
        assert_eq!(peeked[0], 0);
    }
    assert_eq!(cluster.redirections(), 0, "calls that went to a wrong node");
    let sizes: Vec<i64> = cluster
        .connections()
        .iter_mut()
        .map(|redis| ask(redis, "DBSIZE"))
        .collect();
    assert_eq!(sizes.iter().sum::<i64>(), 300);
    assert!(sizes.iter().all(|&size| size > 50), "{sizes:?}");
}
