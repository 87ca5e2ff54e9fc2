//! Several limits in one call: all or nothing.
//!
//! Each limit is judged once, by itself, and its [`Vote`] says what becomes of it either way. The [`JointVerdict`] is
//! the one rule: if none denies, all take, else none does.
//!
//! ```
//! use rl_limiter::{
//!     Capacity, Cost, FixedWindow, JointVerdict, Limit, Limiter, Micros, Rate, TokenBucket, Vote, Window,
//! };
//!
//! // 2 requests a minute, and 1000 tokens that come back at 10 a second.
//! let requests = FixedWindow::new(Limit::new(2).unwrap(), Window::parse("window", b"1m").unwrap());
//! let tokens = TokenBucket::new(Capacity::new(1_000).unwrap(), Rate::parse("rate", b"10").unwrap());
//! let noon = Micros::new(1_796_040_000_000_000).unwrap();
//!
//! let request: Vote<_> = requests.judge(None, noon, Cost::ONE, |state| state);
//! let words: Vote<_> = tokens.judge(None, noon, Cost::new(1_200).unwrap(), |state| state);
//! let verdict = JointVerdict::of([request.summary(), words.summary()]);
//! assert!(!verdict.allowed);
//! assert_eq!(verdict.index, 1, "the second one denies");
//!
//! // So the first one, which alone would allow, has nothing to store.
//! let request = request.outcome(verdict.allowed).unwrap();
//! assert!(request.decision.allowed);
//! assert!(request.next.is_none());
//! ```

use std::convert::Infallible;

use crate::decision::{Decision, Outcome, RetryAfter, Taken};
use crate::quantity::Cost;
use crate::share::Share;

/// What one limit says to its part of a call, and what becomes of it whether or not the call takes anything. `E` is why
/// it may be unable to take what it would allow.
#[derive(Clone, Debug)]
pub struct Vote<N, E = Infallible> {
    /// The answer with nothing taken.
    answer: Decision,
    cost: Cost,
    /// What is to be stored then.
    set_back: Option<N>,
    /// What the cost makes of the state, should the call take; `None` if it asks for nothing or may not.
    taken: Option<Result<Taken<N>, E>>,
    share: Share,
}

/// As much of a vote as a verdict needs.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// How long to wait, if it denies. A cost of 0 never denies.
    denies_for: Option<RetryAfter>,
    /// What remains, should the call take.
    share: Share,
}

/// What becomes of a call that asks several limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointVerdict {
    /// Whether the call may go on: no limit denies.
    pub allowed: bool,
    /// Denied: of the limits that deny, the one with the longest wait, "never" being longest. Allowed: the one with the
    /// smallest share remaining. The first of equals.
    pub index: usize,
}

impl<N, E: Copy> Vote<N, E> {
    /// Of the answer to a call of `cost` with nothing taken. The functions are asked where it matters: what there is to
    /// store though nothing is taken, what taking so many units makes of the state, and what share then remains.
    pub(crate) fn new(
        cost: Cost,
        answer: Decision,
        set_back: impl FnOnce() -> Option<N>,
        take: impl FnOnce(u64) -> Result<Taken<N>, E>,
        share: impl FnOnce(u64) -> Share,
    ) -> Self {
        let units = if answer.allowed { cost.get() } else { 0 };
        Self {
            answer,
            cost,
            set_back: if cost > Cost::ZERO { set_back() } else { None },
            taken: if units > 0 { Some(take(units)) } else { None },
            share: share(units),
        }
    }

    /// What a verdict needs of it.
    pub fn summary(&self) -> Summary {
        let denies = self.cost > Cost::ZERO && !self.answer.allowed;
        Summary { denies_for: denies.then_some(self.answer.retry_after), share: self.share }
    }

    /// What becomes of this limit, should the call be allowed by all or not. An error if it can't take what it allows.
    pub fn outcome(&self, allowed: bool) -> Result<Outcome<&N>, E> {
        Ok(Outcome { next: self.next(allowed)?, decision: self.decision(allowed) })
    }

    /// What is to be stored, should the call be allowed by all or not. An error if this limit can't take what it allows.
    #[inline]
    pub fn next(&self, allowed: bool) -> Result<Option<&N>, E> {
        match &self.taken {
            Some(taken) if allowed => taken.as_ref().map(|taken| Some(&taken.next)).map_err(|error| *error),
            _ => Ok(self.set_back.as_ref()),
        }
    }

    /// The answer of this limit, should the call be allowed by all or not. One that would allow a call which another one
    /// denies says so, as a look does.
    #[inline]
    pub fn decision(&self, allowed: bool) -> Decision {
        match &self.taken {
            Some(Ok(taken)) if allowed => self.answer.less(self.cost.get(), taken.reset_after),
            _ => self.answer,
        }
    }
}

impl JointVerdict {
    /// The verdict on a call by what its limits say, in order. Without limits it is allowed.
    pub fn of(votes: impl IntoIterator<Item = Summary>) -> Self {
        let mut longest = None;
        let mut smallest = None;
        for (index, vote) in votes.into_iter().enumerate() {
            match vote.denies_for {
                Some(wait) if longest.is_none_or(|(longest, _)| wait > longest) => longest = Some((wait, index)),
                None if smallest.is_none_or(|(smallest, _)| vote.share < smallest) => {
                    smallest = Some((vote.share, index))
                }
                _ => {}
            }
        }
        match (longest, smallest) {
            (Some((_, index)), _) => Self { allowed: false, index },
            (None, Some((_, index))) => Self { allowed: true, index },
            (None, None) => Self { allowed: true, index: 0 },
        }
    }
}
