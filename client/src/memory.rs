//! The same algorithms as in Redis, on states in this process.

use rl_limiter::layout::{State, Stored};
use rl_limiter::sliding_log::{self, Plan};
use rl_limiter::{
    Age, Cost, Decision, LeakyBucket, Limiter, Micros, Plan as _, SlidingLog, TokenBucket, TooManyEntries,
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
        self.0.with(key, now, |held| match algorithm {
            Algorithm::FixedWindow(limiter) => decide(held, limiter, now, cost),
            Algorithm::SlidingWindow(limiter) => decide(held, limiter, now, cost),
            Algorithm::TokenBucket(limiter) => decide(held, limiter, now, cost),
            Algorithm::LeakyBucket { capacity, rate } => decide(held, LeakyBucket::new(capacity, rate), now, cost),
            Algorithm::SlidingLog(limiter) => decide_by_log(held, limiter, now, cost),
        })
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

fn decide<L: Limiter>(held: Option<&mut Held>, limiter: L, now: Micros, cost: Cost) -> Step<Decision> {
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

fn decide_by_log(held: Option<&mut Held>, limiter: SlidingLog, now: Micros, cost: Cost) -> Step<Decision> {
    let bytes = match held {
        None => None,
        Some(Held::Log(bytes)) => Some(bytes),
        Some(Held::State(state)) => return (Err(other_kind(state.kind())), None),
    };
    match limiter.decide(bytes.as_deref().and_then(|bytes| log(bytes)), now, cost, MOST_LOG_ENTRIES) {
        Err(TooManyEntries) => {
            let text = format!("ERR the log is full: it takes {MOST_LOG_ENTRIES} entries");
            (Err(Error::new(ErrorKind::Rejected, text)), None)
        }
        Ok(outcome) => (Ok(outcome.decision), outcome.next.and_then(|plan| carry_out(&plan, bytes))),
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

fn other_kind(kind: &str) -> Error {
    Error::new(ErrorKind::WrongType, format!("WRONGTYPE the key holds a {kind} limiter"))
}

fn takes_nothing_back(kind: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("a {kind} limiter takes nothing back"))
}
