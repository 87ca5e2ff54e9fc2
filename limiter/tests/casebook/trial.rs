//! A case, run on the crate alone.

use serde_json::{Value, json};

use super::case::{Call, Case, Kind, Request, Step};
use super::contract::judge;
use super::expectation::{ALLOWED, RETRY_AFTER, Reply};
use super::shelf::{BUILT, Shelf};

/// How a case is run.
#[derive(Clone, Copy)]
pub struct Trial {
    /// What stands for the casebook's meter.
    pub meter: Kind,
    /// Whether unused keys are dropped.
    pub collects: bool,
}

/// Whether a step can be run on the crate alone.
pub fn can(step: &Step) -> bool {
    match (&step.call, redis_words(step)) {
        (Some(call), _) => BUILT.contains(&call.request(Kind::TokenBucket).kind),
        (None, _) if step.asks_several() => true,
        (None, words) => matches!(words.as_slice(), ["PING"] | ["EXISTS" | "GET", _] | ["SET", _, _]),
    }
}

impl Trial {
    /// Runs those steps of a case that can run. Returns what deviates.
    pub fn run(self, case: &Case) -> Vec<String> {
        let mut shelf = Shelf::new(self.collects);
        let mut faults = Vec::new();
        let mut latest = i64::MIN;
        for (number, step) in (1..).zip(&case.steps).filter(|(_, step)| can(step)) {
            let mut replies = Vec::new();
            match &step.call {
                None if step.asks_several() => replies.push(shelf.call_several(case.moment(step))),
                None => replies.push(from_server(&mut shelf, step, case.moment(step))),
                Some(call) => {
                    let request = call.request(self.meter);
                    for now in case.moments(step) {
                        let before = (step.repeat == 1).then(|| shelf.clone());
                        let reply = shelf.call(&request, now);
                        if let Some(before) = before {
                            let fault = check_rules(&before, &shelf, &request, &reply, now, now < latest);
                            faults.extend(fault.err().map(|fault| format!("step {number}: {fault}")));
                        }
                        latest = now;
                        replies.push(reply);
                    }
                }
            }
            let fault = judge(case, number, self.meter, &step.expect, &replies);
            faults.extend(fault.err().map(|fault| format!("step {number}: {fault}")));
        }
        faults
    }
}

/// What a case asks a server besides calls. The key is always the one that a case means if it names none.
fn from_server(shelf: &mut Shelf, step: &Step, now: i64) -> Reply {
    let key = Call::KEY.as_bytes();
    Reply::Plain(match redis_words(step).as_slice() {
        ["EXISTS", _] => json!(i64::from(shelf.exists(key, now))),
        ["GET", _] => json!(shelf.bytes(key).map(String::from_utf8_lossy)),
        ["SET", _, text] => {
            shelf.plant(key, text.as_bytes());
            json!("OK")
        }
        _ => json!("PONG"),
    })
}

/// The words of the command that a step sends to a server; none if it sends none.
fn redis_words(step: &Step) -> Vec<&str> {
    let words = step.env.get("redis").and_then(Value::as_array);
    words.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What holds for every single call: one that fails, is denied or only looks writes nothing, a look is told the same as
/// a call of cost 0, and a sleep of exactly the wait that was announced is enough, one of a millisecond less is not.
fn check_rules(
    before: &Shelf,
    after: &Shelf,
    request: &Request,
    reply: &Reply,
    now: i64,
    clock_went_back: bool,
) -> Result<(), String> {
    let takes = request.cost != "0";
    let may_write = match reply {
        Reply::Decision(fields) => takes && (fields[ALLOWED] == 1 || clock_went_back),
        Reply::Plain(units) => *units != 0,
        Reply::Error(_) => false,
    };
    if !may_write && before.bytes(&request.key) != after.bytes(&request.key) {
        return Err(format!("{reply:?} wrote"));
    }
    let &Reply::Decision(fields) = reply else {
        return Ok(());
    };
    if let Some(told) = before.peek(&request.key, now).filter(|told| !takes && told != reply) {
        return Err(format!("{fields:?} at cost 0, but a look is told {told:?}"));
    }
    let wait = fields[RETRY_AFTER];
    if fields[ALLOWED] == 1 || wait < 1 || clock_went_back && !takes {
        return Ok(());
    }
    let allowed_after = |millis: i64| match after.clone().call(request, now + millis * 1_000) {
        Reply::Decision(fields) => fields[ALLOWED] == 1,
        _ => false,
    };
    match (allowed_after(wait - 1), allowed_after(wait)) {
        (false, true) => Ok(()),
        (early, due) => Err(format!("{fields:?}: allowed after the wait: {due}, a millisecond earlier: {early}")),
    }
}
