//! `CLUSTERDOWN`, `MOVED`, `ASK` and `TRYAGAIN`: slots that nobody serves, that are elsewhere, or on their way.

use redis::{Connection, Value};

use crate::support::{Cluster, ask, decide, digest, error, error_of_words, info, send, send_words, wait_until};

/// A key that this primary serves.
fn key_of(cluster: &Cluster, primary: usize) -> String {
    (0..).map(|number| format!("key:{number}")).find(|key| cluster.primary_of(key) == primary).unwrap()
}

fn state(redis: &mut Connection, state: &str) -> bool {
    ask::<String>(redis, "CLUSTER INFO").contains(&format!("cluster_state:{state}"))
}

#[test]
fn a_cluster_that_has_lost_a_node() {
    let mut cluster = Cluster::of(3);
    for redis in &mut cluster.connections() {
        ask::<()>(redis, "CONFIG SET cluster-node-timeout 500");
    }
    let (ours, lost) = (key_of(&cluster, 0), key_of(&cluster, 2));
    let call = format!("RL.FIXED {ours} 9 36500d");
    let mut redis = cluster.node(0).connect();
    assert_eq!(decide(&mut redis, &call)[2], 8);
    let before = digest(&mut redis);
    cluster.node(2).kill();
    wait_until("the cluster is down", || state(&mut redis, "fail"));

    // By default no slot is served while one is not.
    assert_eq!(error(&mut redis, &call), "CLUSTERDOWN The cluster is down");
    assert_eq!(error(&mut redis, &format!("RL.PEEK {ours}")), "CLUSTERDOWN The cluster is down");
    ask::<()>(&mut redis, "CONFIG SET cluster-allow-reads-when-down yes");
    assert_eq!(decide(&mut redis, &format!("RL.PEEK {ours}"))[2], 8, "a look may be allowed");
    assert_eq!(error(&mut redis, &call), "CLUSTERDOWN The cluster is down and only accepts read commands");
    assert_eq!(digest(&mut redis), before, "nothing was decided");

    // Else the others go on, and name the one that is gone.
    ask::<()>(&mut redis, "CONFIG SET cluster-require-full-coverage no");
    wait_until("the others go on", || state(&mut redis, "ok"));
    assert_eq!(decide(&mut redis, &call)[2], 7);
    assert!(error(&mut redis, &format!("RL.FIXED {lost} 9 36500d")).starts_with("MOVED "));

    ask::<()>(&mut redis, "CONFIG SET cluster-require-full-coverage yes");
    cluster.node(2).revive();
    wait_until("the cluster is up", || send::<Vec<i64>>(&mut redis, &call).is_ok());
    assert_eq!(decide(&mut redis, &format!("RL.PEEK {ours}"))[2], 6);
}

#[test]
fn a_slot_that_nobody_has() {
    let cluster = Cluster::of(1);
    let mut redis = cluster.connections().remove(0);
    decide(&mut redis, "RL.FIXED witness 9 36500d 2");
    let slot = cluster.slot_of("witness");
    ask::<()>(&mut redis, "CONFIG SET cluster-require-full-coverage no");
    ask::<()>(&mut redis, &format!("CLUSTER DELSLOTS {slot}"));
    for line in ["RL.FIXED witness 9 36500d", "RL.PEEK witness"] {
        assert_eq!(error(&mut redis, line), "CLUSTERDOWN Hash slot not served", "{line}");
    }
    let elsewhere = (0..).map(|number| format!("key:{number}")).find(|key| cluster.slot_of(key) != slot).unwrap();
    assert_eq!(decide(&mut redis, &format!("RL.FIXED {elsewhere} 9 36500d"))[0], 1, "other slots are served");
}

#[test]
fn a_key_of_another_node() {
    let cluster = Cluster::of(2);
    let mut at = cluster.connections();
    let key = key_of(&cluster, 1);
    let before = at.iter_mut().map(digest).collect::<Vec<_>>();
    for line in [format!("RL.FIXED {key} 9 36500d"), format!("RL.PEEK {key}")] {
        let (slot, port) = (cluster.slot_of(&key), info(&mut at[1], "server", "tcp_port").unwrap());
        assert_eq!(error(&mut at[0], &line), format!("MOVED {slot} 127.0.0.1:{port}"));
    }
    assert_eq!(at.iter_mut().map(digest).collect::<Vec<_>>(), before, "nobody has decided");
    assert_eq!(decide(&mut at[1], &format!("RL.FIXED {key} 9 36500d"))[2], 8);
}

/// One key of the slot has gone ahead, another is still where it was, a third is nowhere.
#[test]
fn a_slot_on_its_way() {
    let mut cluster = Cluster::of(2);
    let tag = key_of(&cluster, 0);
    let slot = cluster.slot_of(&tag);
    let [gone, stays, new] = ["gone", "stays", "new"].map(|name| format!("{{{tag}}}:{name}"));
    let [mut from, mut to] = <[_; 2]>::try_from(cluster.connections()).ok().unwrap();
    for key in [&gone, &stays] {
        decide(&mut from, &format!("RL.FIXED {key} 9 36500d 2"));
    }
    let [from_id, to_id] = [&mut from, &mut to].map(|redis| ask::<String>(redis, "CLUSTER MYID"));
    ask::<()>(&mut to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
    ask::<()>(&mut from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
    let [from_port, port] = [0, 1].map(|index| cluster.node(index).port());
    ask::<()>(&mut from, &format!("MIGRATE 127.0.0.1 {port} {gone} 0 5000"));

    // What is still there is decided there; the rest is sent on, also a key that is nowhere yet.
    assert_eq!(decide(&mut from, &format!("RL.FIXED {stays} 9 36500d"))[2], 6);
    for key in [&gone, &new] {
        for line in [format!("RL.FIXED {key} 9 36500d"), format!("RL.PEEK {key}")] {
            assert_eq!(error(&mut from, &line), format!("ASK {slot} 127.0.0.1:{port}"), "{line}");
            assert_eq!(
                error(&mut to, &line),
                format!("MOVED {slot} 127.0.0.1:{from_port}"),
                "{line}: not without ASKING"
            );
        }
    }
    ask::<()>(&mut to, "ASKING");
    assert_eq!(decide(&mut to, &format!("RL.FIXED {gone} 9 36500d"))[2], 6, "it takes along what was taken");

    // Two keys of which one is there and one is not can't be decided together anywhere.
    let both = b"redis.call('RL.FIXED', KEYS[1], 9, '36500d') return redis.call('RL.FIXED', KEYS[2], 9, '36500d')";
    let call: [&[u8]; 5] = [b"EVAL", both, b"2", gone.as_bytes(), stays.as_bytes()];
    let before = [&mut from, &mut to].map(digest);
    ask::<()>(&mut to, "ASKING");
    assert!(error_of_words(&mut to, &call).starts_with("TRYAGAIN "));
    let refused = error_of_words(&mut from, &call);
    assert!(["ASK ", "TRYAGAIN "].iter().any(|code| refused.starts_with(code)), "{refused}");
    assert_eq!([&mut from, &mut to].map(digest), before, "nothing was decided");

    ask::<()>(&mut from, &format!("MIGRATE 127.0.0.1 {port} {stays} 0 5000"));
    for redis in [&mut to, &mut from] {
        ask::<()>(redis, &format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
    }
    send_words::<Value>(&mut to, &call).unwrap();
    assert_eq!([&gone, &stays].map(|key| decide(&mut to, &format!("RL.PEEK {key}"))[2]), [5, 5]);
}
