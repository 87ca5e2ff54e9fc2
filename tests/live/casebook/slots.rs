//! What a case does to a cluster.

use redis::Connection;
use serde_json::Value;

use super::book::case::{Call, Words};
use super::book::expectation::Reply;
use super::play::Play;
use super::wire::send_words;
use crate::support::{Cluster, ask, send};

struct Node {
    redis: Connection,
    address: String,
}

/// Does what the step says: starts a cluster and goes to the node of the key, calls on the other nodes, or moves the
/// key's slot to one of them. The nodes live by the real clock, which no such case minds.
pub fn change(play: &mut Play<'_>, env: &Words) -> Vec<Reply> {
    if let Some(nodes) = env.get("cluster").and_then(Value::as_u64) {
        play.cluster = Some(Cluster::of(usize::try_from(nodes).expect("a few nodes")));
    }
    let cluster = play.cluster.as_ref().expect("a cluster");
    let all = cluster.connections().into_iter().zip(cluster.addresses());
    let mut wrong: Vec<Node> = all.map(|(redis, address)| Node { redis, address }).collect();
    let at = wrong.iter_mut().position(|node| send::<i64>(&mut node.redis, &format!("EXISTS {}", Call::KEY)).is_ok());
    let mut right = wrong.remove(at.expect("the node of the key"));

    if env.contains_key("do") {
        let call = ["RL.FIXED", Call::KEY, "1", "1m"];
        return wrong.iter_mut().map(|node| send_words(&mut node.redis, &call)).collect();
    }
    if env.contains_key("cluster_do") {
        let mut to = wrong.remove(0);
        move_slot(&mut right, &mut to);
        right = to;
    }
    play.redis = right.redis;
    Vec::new()
}

/// Moves the slot of the key, and the key, which is all that there is in it.
fn move_slot(from: &mut Node, to: &mut Node) {
    let slot: u16 = ask(&mut from.redis, &format!("CLUSTER KEYSLOT {}", Call::KEY));
    let [old, new]: [String; 2] = [&mut *from, to].map(|node| ask(&mut node.redis, "CLUSTER MYID"));
    let port = to.address.rsplit(':').next().expect("a port").to_owned();
    ask::<()>(&mut to.redis, &format!("CLUSTER SETSLOT {slot} IMPORTING {old}"));
    ask::<()>(&mut from.redis, &format!("CLUSTER SETSLOT {slot} MIGRATING {new}"));
    ask::<()>(&mut from.redis, &format!("MIGRATE 127.0.0.1 {port} {} 0 5000", Call::KEY));
    for node in [to, from] {
        ask::<()>(&mut node.redis, &format!("CLUSTER SETSLOT {slot} NODE {new}"));
    }
}
