//! A case, played on real servers.

use redis::Connection;
use serde_json::{Map, Value, json};

use super::book::case::{Call, Case, Kind, Step, Words};
use super::book::contract::judge;
use super::book::expectation::Reply;
use super::{surroundings, wire};
use crate::support::{Cluster, Options, Server, ask, wait_for_replicas};

/// Whether a step can be played.
pub fn can(step: &Step) -> bool {
    match &step.call {
        Some(call) => wire::command(call.request(Kind::TokenBucket).kind).is_some(),
        None => step.asks_several() || surroundings::can(&step.env),
    }
}

/// A case, and the servers that it is played on.
pub struct Play<'a> {
    pub case: &'a Case,
    pub meter: Kind,
    pub server: &'a mut Server,
    pub replica: Option<Server>,
    /// How much later than the server the replica lives, in µs.
    pub lag: i64,
    /// Whether the replica has become the server that decides.
    pub is_promoted: bool,
    pub cluster: Option<Cluster>,
    /// To the server that decides.
    pub redis: Connection,
    /// What steps saved for later ones to compare with.
    pub saved: Words,
    /// µs since the Unix epoch.
    pub now: i64,
}

impl<'a> Play<'a> {
    /// Plays those steps of a case that can be played, on a server that lives by a clock. Returns what deviates.
    pub fn of(case: &'a Case, meter: Kind, server: &mut Server) -> Vec<String> {
        let changes_it_for_good = |step: &Step| ["restart", "replica"].iter().any(|word| step.env.contains_key(*word));
        if case.steps.iter().any(changes_it_for_good) {
            let mut of_its_own = Options::new().with_clock().set("appendonly", "yes").start();
            return Play::on(case, meter, &mut of_its_own);
        }
        Play::on(case, meter, server)
    }

    fn on(case: &'a Case, meter: Kind, server: &'a mut Server) -> Vec<String> {
        let mut redis = server.connect();
        ask::<()>(&mut redis, "FLUSHALL");
        let (replica, cluster, saved) = (None, None, Map::new());
        let mut play = Self { case, meter, server, replica, lag: 0, is_promoted: false, cluster, redis, saved, now: 0 };
        let mut faults = Vec::new();
        for (number, step) in (1..).zip(&case.steps).filter(|(_, step)| can(step)) {
            play.set_clock(case.moment(step));
            let replies = match &step.call {
                Some(call) => play.call(step, call),
                None if step.asks_several() => vec![wire::send_several(&mut play.redis)],
                None => surroundings::change(&mut play, &step.env),
            };
            let fault = judge(case, number, meter, &play.resolved(&step.expect), &replies)
                .and_then(|()| step.call.as_ref().map_or(Ok(()), |call| play.look(call, &replies)));
            faults.extend(fault.err().map(|fault| format!("step {number}: {fault}")));
        }
        faults
    }

    /// Sets the clocks. What was written until then reaches a replica at the time of its writing, or its lag later.
    pub fn set_clock(&mut self, now: i64) {
        if now == self.now {
            return;
        }
        if let Some(replica) = &mut self.replica {
            if !self.is_promoted {
                wait_for_replicas(&mut self.redis, 1);
            }
            replica.clock().set(now + self.lag);
        }
        self.server.clock().set(now);
        self.now = now;
    }

    fn call(&mut self, step: &Step, call: &Call) -> Vec<Reply> {
        let request = call.request(self.meter);
        if let Some(connections) = step.connections() {
            return wire::send_at_once(self.server, connections, &request, step.repeat / connections);
        }
        if step.is_instant() {
            return wire::send(&mut self.redis, &request, step.repeat);
        }
        let mut replies = Vec::new();
        for moment in self.case.moments(step) {
            self.set_clock(moment);
            replies.extend(wire::send(&mut self.redis, &request, 1));
        }
        replies
    }

    /// Where a call takes nothing, a look with the remembered parameters must be told the same.
    fn look(&mut self, call: &Call, replies: &[Reply]) -> Result<(), String> {
        let request = call.request(self.meter);
        if request.cost != "0" {
            return Ok(());
        }
        let told = wire::reply(redis::cmd("RL.PEEK").arg(&request.key).query(&mut self.redis));
        if replies == [told.clone()] { Ok(()) } else { Err(format!("cost 0 is told {replies:?}, but a look {told:?}")) }
    }

    /// What is expected, with numbers in place of what was saved: `o + 1000` is a number once `o` was saved.
    fn resolved(&self, expected: &Words) -> Words {
        let mut resolved = expected.clone();
        for word in ["equals", "at_least", "at_most"] {
            if let Some(Value::String(formula)) = expected.get(word) {
                resolved[word] = self.value(formula);
            }
        }
        resolved
    }

    fn value(&self, formula: &str) -> Value {
        let number = |formula: &str| self.value(formula).as_i64().expect("a number");
        if let Some((left, right)) = formula.split_once(" + ") {
            return json!(number(left) + number(right));
        }
        if let Some((left, right)) = formula.split_once(" * ") {
            return json!(number(left) * number(right));
        }
        match formula {
            "now" => json!(self.now / 1_000),
            _ => formula.parse::<i64>().map_or_else(|_| self.saved[formula].clone(), Value::from),
        }
    }
}
