//! Nodes, a network that loses, delays, repeats and reorders, and a real server that is killed and comes back: together they never
//! admit more than `capacity + rate × time`.

use std::time::Duration;

use redis::Connection;
use rl_limiter::lease::Holding;
use rl_limiter::{Capacity, Rate, TokenBucket};

#[path = "../../../limiter/tests/lease/budget.rs"]
mod budget;
#[path = "../../../limiter/tests/sequence/mod.rs"]
mod sequence;

use budget::Budget;
use sequence::Random;

use super::lease;
use crate::support::{NOON, Options, decide};

const CAPACITY: u64 = 40;
const EVENTS: u64 = 4_000;

struct Node {
    name: String,
    holding: Holding,
}

/// A call or an answer that is under way.
enum Message {
    Call(String, u64, String),
    Answer(String, u64, u64, u64),
}

/// The monotonic clock of all nodes.
fn clock(now: u64) -> Duration {
    Duration::from_micros(now)
}

#[test]
fn over_sockets_and_restarts_nothing_is_admitted_beyond_the_bucket() {
    let options = Options::new().with_clock().set("appendonly", "yes").set("appendfsync", "always");
    let mut server = options.in_memory().start();
    let mut redis = server.connect();
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos().into();
    println!("seed {seed}");
    let mut random = Random(seed);
    let begin = NOON.unsigned_abs();
    let mut now = begin;
    // 50 a second.
    let bucket = TokenBucket::new(Capacity::new(CAPACITY).unwrap(), Rate::new(1, 20_000).unwrap());
    let mut budget = Budget::new(bucket, now);
    let mut born = 0;
    let mut node = move || {
        born += 1;
        Node { name: format!("node-{born}"), holding: Holding::new() }
    };
    let mut nodes: Vec<Node> = (0..4).map(|_| node()).collect();
    let mut wire: Vec<Message> = Vec::new();
    let (mut restarts, mut spent, mut direct) = (0, 0, 0);
    for event in 0..EVENTS {
        now = match random.below(12) {
            0 => now + random.below(400_000),
            1..=3 => now + random.below(20_000),
            // Just before some node has to stop, or just after its row has ended.
            4 => {
                let deadline = nodes[usize::try_from(random.below(4)).unwrap()].holding.deadline();
                let deadline = u64::try_from(deadline.as_micros()).unwrap();
                now.max(deadline.saturating_sub(1) + if random.one_in(2) { 5_000 } else { 0 })
            }
            _ => now,
        };
        server.clock().set(i64::try_from(now).unwrap());
        let index = usize::try_from(random.below(4)).unwrap();
        match random.below(20) {
            0..=5 => {
                let holding = &mut nodes[index].holding;
                let left = holding.left(clock(now));
                let tokens = if random.one_in(2) { left } else { random.below(left + 1) };
                assert!(holding.spend(clock(now), tokens));
                budget.admit(now, tokens);
                spent += tokens;
            }
            6..=11 => {
                let want = if random.one_in(4) { 0 } else { random.below(CAPACITY + 1) };
                let node = &mut nodes[index];
                let said = node.holding.ask(clock(now), want);
                let ttl = if random.one_in(2) { 10 } else { random.below(400) + 10 };
                let least = if random.one_in(3) { format!(" MIN {}", random.below(10)) } else { String::new() };
                let (name, seq, have, want) = (&node.name, said.seq, said.have, said.want);
                let line = format!("k {CAPACITY} 50 {name} {seq} {have} {want} {ttl}ms{least}");
                wire.push(Message::Call(name.clone(), seq, line));
            }
            12..=13 => {
                let cost = if random.one_in(2) { random.below(CAPACITY) + 1 } else { 1 };
                if decide(&mut redis, &format!("RL.TOKENBUCKET k {CAPACITY} 50 {cost}"))[0] == 1 {
                    budget.admit(now, cost);
                    direct += cost;
                }
            }
            14 if random.one_in(10) => nodes[index] = node(),
            15 if event % 16 == 0 => {
                // Every call that was answered is on the disk.
                server.kill();
                server.revive();
                redis = server.connect();
                restarts += 1;
            }
            _ => {}
        }
        for _ in 0..random.below(4) {
            deliver(&mut wire, &mut random, &mut redis, &mut nodes);
        }
        assert_eq!(budget.excess(), 0, "event {event}, seed {seed}");
    }
    println!("{spent} tokens spent by nodes, {direct} taken directly, {restarts} restarts");
    assert!(spent > 100 && direct > 100 && restarts > 3);
}

/// One thing that is under way arrives, or gets lost, or arrives and will do so again.
fn deliver(wire: &mut Vec<Message>, random: &mut Random, redis: &mut Connection, nodes: &mut [Node]) {
    if wire.is_empty() {
        return;
    }
    // Mostly the newest, so that some are far behind.
    let end = wire.len() as u64;
    let at = if random.one_in(3) { random.below(end) } else { end - 1 };
    let message = wire.remove(usize::try_from(at).unwrap());
    if random.one_in(10) {
        return;
    }
    match &message {
        Message::Call(name, seq, line) => {
            let [holding, .., ttl, _] = lease(redis, line).map(|number| u64::try_from(number).unwrap_or(0));
            wire.push(Message::Answer(name.clone(), *seq, holding, ttl));
        }
        Message::Answer(name, seq, holding, ttl) => {
            if let Some(node) = nodes.iter_mut().find(|node| node.name == *name) {
                node.holding.hear(*seq, *holding, *ttl);
            }
        }
    }
    if random.one_in(8) {
        wire.insert(0, message);
    }
}
