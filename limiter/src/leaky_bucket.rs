//! The leaky bucket as a queue: calls pass at an even `rate`, up to `capacity` of them wait, the rest is denied.
//!
//! The level drains continuously. A call is admitted if it still fits, and told how long it must wait for its turn, so that
//! what stands behind sees an even stream. Admission is that of a token bucket of the same capacity and rate, seen from the
//! other side: the level is what a token bucket calls spent.
//!
//! Source: J. Turner, "New directions in communications (or which way to the information age?)", IEEE Communications
//! Magazine 24(10), 1986; as a queue for requests, nginx' `limit_req`.

use crate::decision::{Decision, RetryAfter, Taken};
use crate::limiter::{self, Fact, Limiter, LimiterState};
use crate::quantity::{Capacity, Micros, Rate};
use crate::share::Share;
use crate::token_bucket::{self, TokenBucket};

/// A queue of `capacity` that drains at `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket(TokenBucket);

/// What a leaky bucket keeps: its level at the time of the last call that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(token_bucket::State);

impl LeakyBucket {
    /// Up to `capacity` units in the queue, which drains at `rate`.
    pub const fn new(capacity: Capacity, rate: Rate) -> Self {
        Self(TokenBucket::new(capacity, rate))
    }
}

/// A state as one call sees it.
#[derive(Clone, Copy)]
pub struct Look(token_bucket::Look);

impl Limiter for LeakyBucket {
    type State = State;
    type Look = Look;

    #[inline]
    fn look(self, state: Option<State>, now: Micros) -> Look {
        Look(self.0.look(state.map(|state| state.0), now))
    }
}

impl limiter::Look for Look {
    type State = State;

    /// As [`limiter::Look::answer`] says, but `retry_after` of a call that is allowed is the delay before its turn.
    #[inline]
    fn answer(&self, asked: u64) -> Decision {
        let decision = self.0.answer(asked);
        if decision.allowed {
            return Decision { retry_after: RetryAfter::Millis(self.0.millis_to_refill()), ..decision };
        }
        decision
    }

    #[inline]
    fn take(&self, units: u64) -> Taken<State> {
        let Taken { next, reset_after } = self.0.take(units);
        Taken { next: State(next), reset_after }
    }

    #[inline]
    fn set_back(&self) -> Option<State> {
        self.0.set_back().map(State)
    }

    fn share(&self, taken: u64) -> Share {
        self.0.share(taken)
    }
}

impl State {
    /// The time of the last call that took something.
    pub const fn last(&self) -> Micros {
        self.0.last()
    }

    /// A leaky bucket's state from that of the bucket which admits the same calls.
    pub(crate) const fn from_token_bucket(state: token_bucket::State) -> Self {
        Self(state)
    }

    /// The state of the bucket which admits the same calls.
    pub(crate) const fn as_token_bucket(&self) -> &token_bucket::State {
        &self.0
    }
}

impl LimiterState for State {
    type Limiter = LeakyBucket;

    fn limiter(&self) -> LeakyBucket {
        LeakyBucket(self.0.limiter())
    }

    fn unused_at(&self) -> Micros {
        self.0.unused_at()
    }

    fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact)) {
        self.0.describe(tell);
    }

    fn is_unused(&self, now: Micros) -> bool {
        self.0.is_unused(now)
    }
}
