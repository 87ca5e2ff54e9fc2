//! What the commands promise, computed by definition.
//!
//! A model knows nothing but the history: who took how much when, with which parameters, and when the clock was found
//! to have gone back. Every answer is worked out from the whole of it in exact fractions, the slow way: a wait is not
//! calculated but searched for, as the first millisecond at which the model itself says yes. It shares no type and no
//! function with the crate it judges, so a mistake has to be made twice to pass.
//!
//! An algorithm is one file beside this one that implements [`Model`].

pub mod fixed_window;
pub mod leaky_bucket;
pub mod sliding_window;
pub mod token_bucket;

use std::fmt::Debug;

use num_bigint::BigInt;
use num_rational::BigRational;

/// A number of units, or units per microsecond, without any rounding.
pub type Exact = BigRational;

/// The units in use as a function of the time in microseconds, if nothing happens until then.
pub type Usage = Box<dyn Fn(&BigInt) -> Exact>;

/// The largest number that a reply holds. Longer waits are answered with it.
pub const MOST: u64 = 9_007_199_254_740_991;

/// The reply's wait for "never".
pub const NEVER: i64 = -1;

/// The five numbers that a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub allowed: bool,
    pub limit: u64,
    pub remaining: u64,
    pub retry_after: i64,
    pub reset_after: u64,
}

/// What a call is answered, and whether the key may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub answer: Answer,
    pub writes: bool,
}

/// Something that the state has to remember.
#[derive(Clone, Debug)]
pub enum Event<P> {
    /// A call took so many units.
    Taken { at: u64, cost: u64, params: P },
    /// So many units were given back, of what was taken so many microseconds before.
    Refunded { at: u64, amount: u64, age: u64 },
    /// A call that may write came at a time before that of the last event: the clock went back.
    SteppedBack { at: u64 },
}

/// One algorithm by its definition.
pub trait Model {
    /// What travels with each call.
    type Params: Clone + Debug + PartialEq + 'static;
    /// What a history amounts to. The default is an unused limiter.
    type Standing: Default;

    /// The most that can be had at once.
    fn limit(params: &Self::Params) -> u64;

    /// The time of the last event; `None` if nothing was ever taken.
    fn stamp(standing: &Self::Standing) -> Option<u64>;

    /// How an event changes what the history amounts to. An event is never earlier than the one before it, except
    /// [`Event::SteppedBack`].
    fn after(standing: Self::Standing, event: &Event<Self::Params>) -> Self::Standing;

    /// The units in use in the eyes of a caller with these parameters, from the stamp on.
    fn usage(standing: &Self::Standing, params: &Self::Params) -> Usage;

    /// After how many milliseconds a call that is allowed has its turn, if so many units are in use before it.
    fn delay(_params: &Self::Params, _used: &Exact) -> BigInt {
        BigInt::from(0)
    }

    /// The units in use by the remembered parameters, from the stamp on.
    fn remembered_usage(standing: &Self::Standing) -> Usage;
}

/// The history of one key.
pub struct History<M: Model> {
    events: Vec<Event<M::Params>>,
}

impl<M: Model> Default for History<M> {
    fn default() -> Self {
        Self { events: Vec::new() }
    }
}

impl<M: Model> History<M> {
    /// Answers a call, and remembers what has to be remembered of it.
    pub fn decide(&mut self, at: u64, params: &M::Params, cost: u64) -> Verdict {
        let looked = self.peek(at, params, cost);
        let stepped_back = self.is_later_than(at);
        if cost == 0 {
            return Verdict { answer: looked, writes: false };
        }
        if stepped_back {
            self.events.push(Event::SteppedBack { at });
        }
        if !looked.allowed {
            return Verdict { answer: looked, writes: stepped_back };
        }
        self.events.push(Event::Taken { at, cost, params: params.clone() });
        let after = M::usage(&self.standing(), params);
        let answer =
            Answer { remaining: left::<M>(&after, at, params), reset_after: until_unused(&after, at), ..looked };
        Verdict { answer, writes: true }
    }

    /// What a call would be answered, with nothing taken.
    pub fn peek(&self, at: u64, params: &M::Params, cost: u64) -> Answer {
        let limit = M::limit(params);
        let asked = cost.max(1);
        let usage = M::usage(&self.standing_at(at), params);
        let most_used = whole(limit) - whole(asked);
        let fits = |micros: &BigInt| usage(micros) <= most_used;
        let allowed = fits(&BigInt::from(at));
        let retry_after = match allowed {
            true => {
                let delay = M::delay(params, &usage(&BigInt::from(at)));
                i64::try_from(delay.min(BigInt::from(MOST))).unwrap()
            }
            false if asked > limit => NEVER,
            false => i64::try_from(first_millisecond(at, fits)).unwrap(),
        };
        let remaining = left::<M>(&usage, at, params);
        Answer { allowed, limit, remaining, retry_after, reset_after: until_unused(&usage, at) }
    }

    /// The first microsecond from `at` on at which the remembered parameters call the limiter unused.
    pub fn unused_from(&self, at: u64) -> BigInt {
        let usage = M::remembered_usage(&self.standing_at(at));
        let at = BigInt::from(at);
        let steps = first_step(|steps| usage(&(&at + steps)) == whole(0));
        at + steps
    }

    /// Whether the remembered parameters call the limiter unused at `at`.
    pub fn is_unused(&self, at: u64) -> bool {
        M::remembered_usage(&self.standing_at(at))(&BigInt::from(at)) == whole(0)
    }

    /// So many units are taken, whatever there is.
    pub fn owe(&mut self, at: u64, params: &M::Params, owed: u64) {
        self.events.push(Event::Taken { at, cost: owed, params: params.clone() });
    }

    /// Gives back what turned out not to be used, and says what a call of one unit would then be answered; `None` where
    /// nothing is in use.
    pub fn refund(&mut self, at: u64, amount: u64, age: u64) -> Option<Answer> {
        let remembered = self.remembered().filter(|_| !self.is_unused(at))?.clone();
        if amount > 0 {
            if self.is_later_than(at) {
                self.events.push(Event::SteppedBack { at });
            }
            self.events.push(Event::Refunded { at, amount, age });
        }
        Some(self.peek(at, &remembered, 1))
    }

    /// Takes units whatever is there, down to a balance of minus what can be had at once, and says what a call of one unit
    /// would then be answered, and how many did not fit.
    pub fn debit(&mut self, at: u64, params: &M::Params, amount: u64) -> (Answer, u64) {
        let used = M::usage(&self.standing_at(at), params)(&BigInt::from(at));
        let room = (whole(2 * M::limit(params)) - used).max(whole(0)).floor().to_integer();
        let taken = amount.min(u64::try_from(room).unwrap());
        if amount > 0 && self.is_later_than(at) {
            self.events.push(Event::SteppedBack { at });
        }
        if taken > 0 {
            self.events.push(Event::Taken { at, cost: taken, params: params.clone() });
        }
        (self.peek(at, params, 1), amount - taken)
    }

    /// A call that may write took nothing, as something else denied it.
    pub fn set_back(&mut self, at: u64) {
        if self.is_later_than(at) {
            self.events.push(Event::SteppedBack { at });
        }
    }

    /// The share of what can be had at once that is not in use; none of nothing.
    pub fn share(&self, at: u64, params: &M::Params) -> Exact {
        let limit = whole(M::limit(params));
        let used = M::usage(&self.standing_at(at), params)(&BigInt::from(at));
        if limit == whole(0) { limit } else { (&limit - used).max(whole(0)) / limit }
    }

    /// The key is gone.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    /// The parameters of the last call that took something.
    pub fn remembered(&self) -> Option<&M::Params> {
        self.events.iter().rev().find_map(|event| match event {
            Event::Taken { params, .. } => Some(params),
            Event::Refunded { .. } | Event::SteppedBack { .. } => None,
        })
    }

    /// Whether the last event lies after `at`: the clock went back.
    pub fn is_later_than(&self, at: u64) -> bool {
        M::stamp(&self.standing()).is_some_and(|stamp| stamp > at)
    }

    fn standing(&self) -> M::Standing {
        self.events.iter().fold(M::Standing::default(), M::after)
    }

    /// What the history amounts to for a call at `at`. If the clock went back, everything is as if used now.
    fn standing_at(&self, at: u64) -> M::Standing {
        let standing = self.standing();
        match self.is_later_than(at) {
            true => M::after(standing, &Event::SteppedBack { at }),
            false => standing,
        }
    }
}

/// So many units.
pub fn whole(units: u64) -> Exact {
    Exact::from_integer(BigInt::from(units))
}

fn left<M: Model>(usage: &Usage, at: u64, params: &M::Params) -> u64 {
    let left = whole(M::limit(params)) - usage(&BigInt::from(at));
    u64::try_from(left.max(whole(0)).floor().to_integer()).unwrap()
}

fn until_unused(usage: &Usage, at: u64) -> u64 {
    first_millisecond(at, |micros| usage(micros) == whole(0))
}

/// After how many milliseconds from `at` on `holds` is true first, as far as a reply can say. It must stay true.
fn first_millisecond(at: u64, holds: impl Fn(&BigInt) -> bool) -> u64 {
    let millis = first_step(|steps| holds(&(BigInt::from(at) + steps * 1_000)));
    u64::try_from(millis.min(BigInt::from(MOST))).unwrap()
}

/// The smallest number of steps for which `holds` is true. It must stay true for all larger ones.
fn first_step(holds: impl Fn(&BigInt) -> bool) -> BigInt {
    let mut enough = BigInt::from(0);
    let mut too_few = BigInt::from(-1);
    while !holds(&enough) {
        too_few.clone_from(&enough);
        enough = enough * 2 + 1;
    }
    while &enough - &too_few > BigInt::from(1) {
        let middle: BigInt = (&enough + &too_few) / 2;
        if holds(&middle) { enough = middle } else { too_few = middle }
    }
    enough
}
