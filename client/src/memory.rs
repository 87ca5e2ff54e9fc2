//! The same algorithms as in Redis, on states in this process.

use std::iter::zip;

use rl_limiter::Plan as _;
use rl_limiter::layout::{State, Stored};
use rl_limiter::sliding_log::{self, Plan};
use rl_limiter::{
    Age, Cost, Decision, FixedWindow, LeakyBucket, Limiter, Micros, SlidingLog, SlidingWindow, TokenBucket,
    TooManyEntries,
};

use crate::error::{Error, ErrorKind};
use crate::rule::Algorithm;
use crate::table::{Passing, Table};

/// As many entries as the module admits to a log by default.
const MOST_LOG_ENTRIES: u32 = 100_000;

/// States by key.
pub(crate) struct Memory(Table<Held>);

/// A state under a key.
enum Held {
    State(State),
    /// The bytes of a log.
    Log(Vec<u8>),
}

impl Passing for Held {
    fn over_at(&self) -> Micros {
        match self {
            Self::State(state) => state.unused_at(),
            Self::Log(bytes) => log(bytes).map_or(Micros::saturating(0), |log| log.unused_at()),
        }
    }
}

impl Memory {
    /// For about so many keys.
    pub fn new(most: usize) -> Self {
        Self(Table::new(most))
    }

    /// Decides a check, as the command of the algorithm does.
    pub fn decide(&self, algorithm: Algorithm, key: &str, cost: Cost, now: Micros) -> Result<Decision, Error> {
        self.0.with(key, now, |held| decide(held, algorithm, now, cost))
    }

    /// Decides several checks, of different keys, as `RL.MULTI` does: takes what all of them cost, or nothing where one denies. One of
    /// cost 0 denies nothing. Whether all are allowed, and what each would say alone.
    pub fn decide_all(&self, checks: &[(Algorithm, &str, Cost)], now: Micros) -> Result<(bool, Vec<Decision>), Error> {
        let mut held = self.0.several(checks.iter().map(|(_, key, _)| *key));
        let mut each = |taking: bool| {
            let decided = checks.iter().map(|&(algorithm, key, cost)| {
                let look = |held: Option<&mut Held>| match taking {
                    true => decide(held, algorithm, now, cost),
                    false => (look(held, algorithm, now, cost), None),
                };
                held.with(key, now, look).unwrap_or_else(|| Err(Error::new(ErrorKind::Rejected, "a key is not held")))
            });
            decided.collect::<Result<Vec<_>, _>>()
        };
        let seen = each(false)?;
        let all = zip(checks, &seen).all(|((.., cost), decision)| decision.allowed || *cost == Cost::ZERO);
        Ok((all, if all { each(true)? } else { seen }))
    }

    /// Gives back, as `RL.REFUND` does; `None` if there is nothing under the key.
    pub fn refund(&self, key: &str, amount: Cost, age: Option<Age>, now: Micros) -> Result<Option<Decision>, Error> {
        self.0.with(key, now, |held| match held {
            None => (Ok(None), None),
            Some(Held::State(state)) => match state.refund(now, amount, age) {
                Ok(refunded) => {
                    *state = refunded.unwrap_or(*state);
                    (Ok(Some(state.peek(now, Cost::ONE))), None)
                }
                Err(_) => (Err(takes_nothing_back(state.kind())), None),
            },
            Some(Held::Log(bytes)) => refund_log(bytes, amount, age, now),
        })
    }

    /// Takes whatever is there, as `RL.DEBIT` does; with the part that did not fit.
    pub fn debit(&self, bucket: TokenBucket, key: &str, amount: Cost, now: Micros) -> Result<(Decision, u64), Error> {
        self.0.with(key, now, |held| match state_of::<TokenBucket>(held.as_deref()) {
            Err(error) => (Err(error), None),
            Ok(state) => {
                let debit = bucket.debit(state, now, amount);
                (Ok((debit.decision, debit.rest)), debit.next.map(|next| Held::State(next.into())))
            }
        })
    }
}

/// What a look at a key leads to: an answer, and what takes the place of what is there.
type Step<T> = (Result<T, Error>, Option<Held>);

fn decide(held: Option<&mut Held>, algorithm: Algorithm, now: Micros, cost: Cost) -> Step<Decision> {
    match algorithm {
        Algorithm::FixedWindow(limiter) => decide_by(held, limiter, now, cost),
        Algorithm::SlidingWindow(limiter) => decide_by(held, limiter, now, cost),
        Algorithm::TokenBucket(limiter) => decide_by(held, limiter, now, cost),
        Algorithm::LeakyBucket { capacity, rate } => decide_by(held, LeakyBucket::new(capacity, rate), now, cost),
        Algorithm::SlidingLog(limiter) => decide_by_log(held, limiter, now, cost),
    }
}

/// What deciding would say, with nothing taken.
fn look(held: Option<&mut Held>, algorithm: Algorithm, now: Micros, cost: Cost) -> Result<Decision, Error> {
    let held = held.as_deref();
    match algorithm {
        Algorithm::FixedWindow(limiter) => Ok(limiter.peek(state_of::<FixedWindow>(held)?, now, cost)),
        Algorithm::SlidingWindow(limiter) => Ok(limiter.peek(state_of::<SlidingWindow>(held)?, now, cost)),
        Algorithm::TokenBucket(limiter) => Ok(limiter.peek(state_of::<TokenBucket>(held)?, now, cost)),
        Algorithm::LeakyBucket { capacity, rate } => {
            Ok(LeakyBucket::new(capacity, rate).peek(state_of::<LeakyBucket>(held)?, now, cost))
        }
        Algorithm::SlidingLog(limiter) => {
            let log = log_of(held)?;
            // Only this tells that it is full.
            limiter.decide(log, now, cost, MOST_LOG_ENTRIES).map_err(|TooManyEntries| full())?;
            Ok(limiter.peek(log, now, cost))
        }
    }
}

fn decide_by<L: Limiter>(held: Option<&mut Held>, limiter: L, now: Micros, cost: Cost) -> Step<Decision> {
    match state_of::<L>(held.as_deref()) {
        Err(error) => (Err(error), None),
        Ok(state) => {
            let outcome = limiter.decide(state, now, cost);
            (Ok(outcome.decision), outcome.next.map(|next| Held::State(next.into())))
        }
    }
}

fn state_of<L: Limiter>(held: Option<&Held>) -> Result<Option<L::State>, Error> {
    match held {
        None => Ok(None),
        Some(Held::State(state)) => L::State::try_from(*state).map(Some).map_err(|other| other_kind(other.kind())),
        Some(Held::Log(_)) => Err(other_kind("sliding window log")),
    }
}

fn log_of(held: Option<&Held>) -> Result<Option<sliding_log::State<'_>>, Error> {
    match held {
        None => Ok(None),
        Some(Held::Log(bytes)) => Ok(log(bytes)),
        Some(Held::State(state)) => Err(other_kind(state.kind())),
    }
}

fn decide_by_log(held: Option<&mut Held>, limiter: SlidingLog, now: Micros, cost: Cost) -> Step<Decision> {
    let log = match log_of(held.as_deref()) {
        Err(error) => return (Err(error), None),
        Ok(log) => log,
    };
    match limiter.decide(log, now, cost, MOST_LOG_ENTRIES) {
        Err(TooManyEntries) => (Err(full()), None),
        Ok(outcome) => {
            let bytes = match held {
                Some(Held::Log(bytes)) => Some(bytes),
                _ => None,
            };
            (Ok(outcome.decision), outcome.next.and_then(|plan| carry_out(&plan, bytes)))
        }
    }
}

fn refund_log(bytes: &mut Vec<u8>, amount: Cost, age: Option<Age>, now: Micros) -> Step<Option<Decision>> {
    let Some(seen) = log(bytes) else { return (Ok(None), None) };
    let limiter = seen.limiter();
    let next = seen.refund(now, amount, age).and_then(|plan| {
        if plan.leaves_nothing() {
            bytes.clear();
            return None;
        }
        carry_out(&plan, Some(bytes))
    });
    let present = match &next {
        Some(Held::Log(fresh)) => fresh,
        _ => &*bytes,
    };
    (Ok(Some(limiter.peek(log(present), now, Cost::ONE))), next)
}

/// Carries a plan out in the bytes it was made for, or in new ones.
fn carry_out(plan: &Plan, bytes: Option<&mut Vec<u8>>) -> Option<Held> {
    match bytes {
        Some(bytes) if plan.fits() => {
            plan.carry_out(bytes);
            None
        }
        bytes => Some(Held::Log(plan.make(bytes.map_or(&[], |bytes| bytes)))),
    }
}

fn log(bytes: &[u8]) -> Option<sliding_log::State<'_>> {
    match Stored::read(bytes) {
        Ok(Stored::SlidingLog(log)) => Some(log),
        _ => None,
    }
}

fn full() -> Error {
    Error::new(ErrorKind::Rejected, format!("ERR the log is full: it takes {MOST_LOG_ENTRIES} entries"))
}

fn other_kind(kind: &str) -> Error {
    Error::new(ErrorKind::WrongType, format!("WRONGTYPE the key holds a {kind} limiter"))
}

fn takes_nothing_back(kind: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("a {kind} limiter takes nothing back"))
}
