//! One of many callers.

use redis::Connection;

use super::call::{Call, Effect};
use super::ledger::Ledger;
use super::limiter::Limiter;
use super::random::Random;

/// How a caller sends its calls.
#[derive(Clone, Copy)]
pub enum Manner {
    /// One, then the next.
    OneByOne,
    /// Eight at a time, whose replies come together.
    Pipelined,
    /// Always the same two limiters, both in one transaction.
    InPairs,
}

/// What a caller may use.
pub struct Desk<'a> {
    pub limiters: &'a [Limiter],
    /// Those that it shares with all others.
    pub shared: std::ops::Range<usize>,
    /// One that nobody else uses, and what is used of it: it is brought back to unused again and again.
    pub own: usize,
    pub own_used: i64,
    /// Those that only the callers in pairs use.
    pub pair: [usize; 2],
}

/// Calls until the server is gone. Returns what is known then.
pub fn work(redis: &mut Connection, manner: Manner, desk: &Desk<'_>) -> Ledger {
    let mut worker = Worker { random: Random::new(), desk, given: vec![0; desk.limiters.len()] };
    worker.given[desk.own] = desk.own_used;
    let mut ledger = Ledger::new(desk.limiters.len());
    loop {
        let (calls, atomic) = match manner {
            Manner::OneByOne => (vec![worker.next()], false),
            Manner::Pipelined => ((0..8).map(|_| worker.next()).collect(), false),
            Manner::InPairs => (worker.pair(), true),
        };
        let mut pipeline = redis::pipe();
        for call in &calls {
            pipeline.add_command(call.command());
        }
        if atomic {
            pipeline.atomic();
        }
        match pipeline.query::<Vec<redis::Value>>(redis) {
            Ok(replies) => {
                assert_eq!(replies.len(), calls.len());
                for (call, reply) in calls.iter().zip(&replies) {
                    let change = call.done(reply);
                    ledger.answered(call, change);
                    // What is given back was taken off when it was sent.
                    worker.given[call.limiter] += change.max(0);
                }
            }
            Err(error) if error.is_io_error() => {
                calls.iter().for_each(|call| ledger.unanswered(call));
                return ledger;
            }
            Err(error) => panic!("{error}: {:?}", calls.iter().map(|call| &call.line).collect::<Vec<_>>()),
        }
    }
}

struct Worker<'a> {
    random: Random,
    desk: &'a Desk<'a>,
    /// What it was given of each limiter and has not given back. Others give back only what is theirs, so that it is
    /// there.
    given: Vec<i64>,
}

impl Worker<'_> {
    fn next(&mut self) -> Call {
        if self.random.percent(10) {
            let own = self.desk.own;
            return if self.given[own] > 0 { self.refund(own, self.given[own]) } else { self.take(own) };
        }
        let shared = &self.desk.shared;
        // A few are hot, a few cold: the first third takes most.
        let third = (shared.len() / 3) as u64;
        let (from, among) = self.random.pick(&[(0, third), (0, third), (0, third), (0, third), (third, 2 * third)]);
        let limiter = shared.start + (from + self.random.below(among)) as usize;
        let about = &self.desk.limiters[limiter];
        if about.refunds && self.given[limiter] > 0 && self.random.percent(25) {
            let amount = 1 + self.random.below(self.given[limiter].min(9) as u64) as i64;
            self.refund(limiter, amount)
        } else if about.debits && self.random.percent(15) {
            self.debit(limiter)
        } else {
            self.take(limiter)
        }
    }

    fn pair(&mut self) -> Vec<Call> {
        let cost = 1 + self.random.below(5) as i64;
        self.desk.pair.map(|limiter| self.taking(limiter, cost)).into()
    }

    fn take(&mut self, limiter: usize) -> Call {
        let cost = 1 + self.random.below(5) as i64;
        self.taking(limiter, cost)
    }

    fn taking(&mut self, limiter: usize, cost: i64) -> Call {
        let about = &self.desk.limiters[limiter];
        let policy = self.random.pick(&about.policies);
        let line = format!("{} {} {policy} {cost}", about.command, about.key);
        Call { limiter, line, effect: Effect::Take(cost) }
    }

    fn refund(&mut self, limiter: usize, amount: i64) -> Call {
        self.given[limiter] -= amount;
        let line = format!("RL.REFUND {} {amount}", self.desk.limiters[limiter].key);
        Call { limiter, line, effect: Effect::Refund(amount) }
    }

    fn debit(&mut self, limiter: usize) -> Call {
        let about = &self.desk.limiters[limiter];
        let amount = 1 + self.random.below(5) as i64;
        let policy = self.random.pick(&about.policies);
        let line = format!("RL.DEBIT {} {policy} {amount}", about.key);
        Call { limiter, line, effect: Effect::Debit(amount) }
    }
}
