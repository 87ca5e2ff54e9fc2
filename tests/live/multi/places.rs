//! Where its keys are: for clients, access rules and clusters.

use redis::cluster::ClusterClient;

use super::call;
use crate::support::{Cluster, Server, ask, decide, error, send};

#[test]
fn every_key_is_seen_by_clients_and_access_rules() {
    let server = Server::new();
    let mut redis = server.connect();
    let keys: Vec<String> = ask(&mut redis, "COMMAND GETKEYS RL.MULTI a FIXED 1 1 1 b LEAKY 1 1 1 c FIXED 1 1 1");
    assert_eq!(keys, ["a", "b", "c"]);
    let info: Vec<Vec<redis::Value>> = ask(&mut redis, "COMMAND INFO RL.MULTI");
    assert_eq!(info[0][3..6], [redis::Value::Int(1), redis::Value::Int(-1), redis::Value::Int(5)]);

    ask::<()>(&mut redis, "ACL SETUSER api on nopass ~limit:* %R~read:* -@all +rl.multi");
    let mut api = server.connect();
    ask::<()>(&mut api, "AUTH api any");
    assert!(call(&mut api, "limit:1 FIXED 9 1m 1 limit:2 FIXED 9 1m 1").allowed);
    for other in ["other", "read:1"] {
        for words in
            [format!("limit:1 FIXED 9 1m 1 {other} FIXED 9 1m 1"), format!("{other} FIXED 9 1m 0 limit:1 FIXED 9 1m 1")]
        {
            assert!(error(&mut api, &format!("RL.MULTI {words}")).starts_with("NOPERM"), "{words}");
        }
    }
    assert_eq!(decide(&mut redis, "RL.PEEK limit:1")[2], 8);
}

#[test]
fn in_a_cluster_all_keys_share_a_slot() {
    let cluster = Cluster::of(2);
    let mut redis = ClusterClient::new(cluster.addresses()).unwrap().get_connection().unwrap();
    for user in 0..40 {
        let (second, day) = (format!("{{u{user}}}:second"), format!("{{u{user}}}:day"));
        let mut words = redis::cmd("RL.MULTI");
        words.arg(second).arg("FIXED").arg(5).arg("36500d").arg(1).arg(day).arg("TOKENBUCKET").arg(9).arg("1/d").arg(2);
        let told: Vec<i64> = words.query(&mut redis).unwrap();
        assert_eq!((told[..5].to_vec(), &told[7..10]), (vec![1, 1, 1, 5, 4], &[1, 9, 7][..]));
    }
    assert_eq!(cluster.redirections(), 0);
    let mut node = cluster.connections().remove(0);
    assert!(error(&mut node, "RL.MULTI one FIXED 5 1m 1 two FIXED 5 1m 1").starts_with("CROSSSLOT "));
}

#[test]
fn while_a_slot_moves_keys_on_both_sides_are_to_be_tried_again() {
    let cluster = Cluster::of(2);
    let [mut from, mut to] = <[_; 2]>::try_from(cluster.connections()).ok().unwrap();
    let slot = 5_061; // Of `bar`, in the first node's half.
    let words = "{bar}:a FIXED 9 36500d 1 {bar}:b FIXED 9 36500d 1";
    assert!(call(&mut from, words).allowed);
    let [old, new]: [String; 2] = [&mut from, &mut to].map(|node| ask(node, "CLUSTER MYID"));
    ask::<()>(&mut to, &format!("CLUSTER SETSLOT {slot} IMPORTING {old}"));
    ask::<()>(&mut from, &format!("CLUSTER SETSLOT {slot} MIGRATING {new}"));
    assert!(call(&mut from, words).allowed, "both are still there");
    let port = cluster.addresses()[1].rsplit(':').next().unwrap().to_owned();
    ask::<()>(&mut from, &format!("MIGRATE 127.0.0.1 {port} {{bar}}:a 0 5000"));
    assert!(error(&mut from, &format!("RL.MULTI {words}")).starts_with("TRYAGAIN "));
    ask::<()>(&mut to, "ASKING");
    assert!(error(&mut to, &format!("RL.MULTI {words}")).starts_with("TRYAGAIN "));
    ask::<()>(&mut from, &format!("MIGRATE 127.0.0.1 {port} {{bar}}:b 0 5000"));
    assert!(send::<Vec<i64>>(&mut from, &format!("RL.MULTI {words}")).is_err_and(|error| error.code() == Some("ASK")));
    for node in [&mut to, &mut from] {
        ask::<()>(node, &format!("CLUSTER SETSLOT {slot} NODE {new}"));
    }
    let told = call(&mut to, words);
    assert_eq!((told.limits[0][2], told.limits[1][2]), (6, 6), "nothing was taken where it was to be tried again");
}
