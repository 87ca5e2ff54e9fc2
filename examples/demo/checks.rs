//! What must be true of the answers of a run. Each check adds a sentence for what is not.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::fleet::SERVERS;
use crate::limiters::WINDOW;
use crate::traffic::{Outcome, Reply, Traffic};

/// What is not as it should be, each thing once, with how often it was seen.
#[derive(Default)]
pub struct Faults(BTreeMap<String, usize>);

impl Faults {
    pub fn add(&mut self, fault: String) {
        *self.0.entry(fault).or_default() += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(fault, times)| match times {
            1 => fault.clone(),
            _ => format!("{fault} ({times} times)"),
        })
    }
}

/// The answers of a run in numbers, by server.
#[derive(Default)]
pub struct Tally {
    pub sent: [u64; SERVERS.len()],
    pub admitted: [u64; SERVERS.len()],
}

impl Tally {
    pub fn of(traffic: &Traffic) -> Self {
        let mut tally = Tally::default();
        for reply in &traffic.replies {
            // An answer from nowhere is not counted, so that `dealt_out` finds one missing.
            if let Some(server) = SERVERS.iter().position(|name| *name == reply.server) {
                tally.sent[server] += 1;
                tally.admitted[server] += u64::from(reply.is_admitted());
            }
        }
        tally
    }

    pub fn total_sent(&self) -> u64 {
        self.sent.iter().sum()
    }

    pub fn total_admitted(&self) -> u64 {
        self.admitted.iter().sum()
    }
}

/// How many of `requests` each server gets when they are dealt out in turn.
pub fn shares(requests: u64) -> [u64; SERVERS.len()] {
    let mut shares = [0; SERVERS.len()];
    for (share, turn) in shares.iter_mut().zip(0..) {
        *share = requests.saturating_sub(turn).div_ceil(SERVERS.len() as u64);
    }
    shares
}

pub fn dealt_out(requests: u64, tally: &Tally, faults: &mut Faults) {
    let (sent, shares) = (tally.sent, shares(requests));
    if sent != shares {
        faults.add(format!("the balancer dealt out {sent:?}, not {shares:?}"));
    }
}

/// What an answer says must agree, whichever limiter decided, as long as one did.
pub fn headers(limit: u64, traffic: &Traffic, faults: &mut Faults) {
    for reply in &traffic.replies {
        let Some(budget) = &reply.budget else {
            faults.add("an answer does not say what is left: it was decided without Redis".to_owned());
            continue;
        };
        if budget.limit != limit {
            faults.add(format!("X-RateLimit-Limit is {}, not {limit}", budget.limit));
        }
        // A sliding window counts what it took for one window more.
        if budget.reset > 2 * WINDOW.as_secs() {
            faults.add(format!("X-RateLimit-Reset is {}, more than two hours", budget.reset));
        }
        match reply.outcome {
            Outcome::Admitted => {}
            Outcome::TooMany { retry_after } => {
                if !(1..=budget.reset).contains(&retry_after) {
                    faults.add(format!("Retry-After is {retry_after}, X-RateLimit-Reset {}", budget.reset));
                }
                if budget.remaining != 0 {
                    faults.add(format!("refused with X-RateLimit-Remaining: {}", budget.remaining));
                }
            }
            Outcome::Unavailable { .. } => faults.add("refused by 503 by a limiter that knows what is left".to_owned()),
        }
    }
}

/// Without Redis a server does not know what is left. Those that it refuses must be told a wait, and by the right status.
pub fn told_without_redis(right: impl Fn(&Outcome) -> bool, traffic: &Traffic, faults: &mut Faults) {
    for reply in &traffic.replies {
        if reply.budget.is_some() {
            faults.add("an answer says what is left while nobody can know".to_owned());
        }
        match reply.outcome {
            Outcome::Admitted => {}
            ref outcome if right(outcome) => {}
            Outcome::TooMany { .. } => faults.add("refused by 429 while Redis was away".to_owned()),
            Outcome::Unavailable { .. } => faults.add("refused by 503 while Redis was away".to_owned()),
        }
        if reply.retry_after().is_some_and(|wait| !(1..=WINDOW.as_secs()).contains(&wait)) {
            faults.add(format!("Retry-After is {:?} while Redis was away", reply.retry_after()));
        }
    }
}

pub fn admitted_by_each(expected: [u64; SERVERS.len()], tally: &Tally, faults: &mut Faults) {
    if tally.admitted != expected {
        faults.add(format!("the servers admitted {:?}, not {expected:?}", tally.admitted));
    }
}

pub fn answered_within(longest: Duration, traffic: &Traffic, faults: &mut Faults) {
    let slowest = traffic.slowest();
    if slowest > longest {
        faults.add(format!("an answer took {} ms, more than {} ms", slowest.as_millis(), longest.as_millis()));
    }
}

pub fn admitted(expected: RangeInclusive<u64>, tally: &Tally, faults: &mut Faults) {
    let admitted = tally.total_admitted();
    if !expected.contains(&admitted) {
        faults.add(format!("{admitted} requests were admitted, not {}", span(&expected)));
    }
}

/// A limiter that counts right tells each admitted request another remainder, from `limit - 1` down to 0.
pub fn each_remainder_once(limit: u64, traffic: &Traffic, faults: &mut Faults) {
    let admitted = traffic.replies.iter().filter(|reply| reply.is_admitted());
    let mut remainders: Vec<u64> = admitted.filter_map(|reply| Some(reply.budget.as_ref()?.remaining)).collect();
    remainders.sort_unstable();
    if !remainders.iter().copied().eq(0..limit) {
        faults.add(format!("the admitted requests were told these remainders: {remainders:?}"));
    }
}

/// The shortest and the longest wait that refused requests were told; none if none was refused.
pub fn waits_told(traffic: &Traffic) -> Option<RangeInclusive<u64>> {
    let waits = || traffic.replies.iter().filter_map(Reply::retry_after);
    Some(waits().min()?..=waits().max()?)
}

/// `right` is what [`Algorithm::waits`](crate::limiters::algorithm::Algorithm::waits) says.
pub fn waits(right: Option<RangeInclusive<u64>>, traffic: &Traffic, faults: &mut Faults) {
    let Some(right) = right else {
        faults.add("the run took so long that nothing is exact: send fewer requests".to_owned());
        return;
    };
    let Some(told) = waits_told(traffic) else {
        faults.add("no request was refused".to_owned());
        return;
    };
    if !(right.contains(told.start()) && right.contains(told.end())) {
        let (right, told) = (span(&right), span(&told));
        faults.add(format!("Retry-After is {told}, but {right} would be right"));
    }
}

/// The turns of those admitted.
fn turns_of(traffic: &Traffic) -> Vec<u64> {
    traffic.replies.iter().filter(|reply| reply.is_admitted()).map(|reply| reply.turn).collect()
}

/// The first and the last turn that admitted requests were told; none if all were at once.
pub fn turns_told(traffic: &Traffic) -> Option<RangeInclusive<u64>> {
    let turns = turns_of(traffic);
    let (first, last) = (turns.iter().min()?, turns.iter().max()?);
    (*last > 0).then_some(*first..=*last)
}

/// A queue that drains evenly over the hour gives each admitted request a turn of its own, the last one all but an hour
/// away; `took` seconds of it may have drained during the run.
pub fn turns(limit: u64, took: u64, traffic: &Traffic, faults: &mut Faults) {
    let mut turns = turns_of(traffic);
    turns.sort_unstable();
    let last = (WINDOW.as_secs() * (limit - 1)).div_ceil(limit);
    let ends =
        turns.first() == Some(&0) && turns.last().is_some_and(|turn| (last - took.min(last)..=last).contains(turn));
    turns.dedup();
    if !ends || turns.len() as u64 != limit {
        faults.add(format!("the admitted requests were told these turns: {turns:?}"));
    }
}

/// `36`, or `35 to 36`.
pub fn span(range: &RangeInclusive<u64>) -> String {
    let (least, most) = (range.start(), range.end());
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}
