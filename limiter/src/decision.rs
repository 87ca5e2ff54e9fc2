//! The answer to a call.

use crate::quantity::MAX_EXACT;

/// When a denied call may come again. Ordered by length: no wait is longer than [`RetryAfter::Never`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryAfter {
    /// After this many milliseconds, rounded up: then the same call is allowed if nobody else took budget meanwhile,
    /// and one millisecond earlier it would not have been. 0 for a call that is allowed.
    Millis(u64),
    /// No wait helps: the call costs more than the limit.
    Never,
}

/// What a limiter says to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the call may go on.
    pub allowed: bool,
    /// The most that can be had at once, in units.
    pub limit: u64,
    /// What a further call could take right now, in units, rounded down.
    pub remaining: u64,
    /// When the same call is allowed.
    pub retry_after: RetryAfter,
    /// Milliseconds, rounded up, until the limiter is as good as unused; 0 when it is.
    pub reset_after: u64,
}

/// A decision, and what it makes of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<S> {
    /// The answer to the caller.
    pub decision: Decision,
    /// The state to store in place of the old one; `None` leaves it as it is, which is so for every denied call unless
    /// the clock went back.
    pub next: Option<S>,
}

/// What units that are taken make of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<S> {
    /// The state to store in place of the old one.
    pub next: S,
    /// [`Decision::reset_after`] from then on.
    pub reset_after: u64,
}

impl Decision {
    /// The same answer once so many units, which remained, are taken.
    #[inline]
    pub(crate) fn less(self, units: u64, reset_after: u64) -> Self {
        Self { remaining: self.remaining.saturating_sub(units), reset_after, ..self }
    }

    /// The same, with what it makes of the state.
    #[inline]
    pub(crate) fn having_taken<S>(self, units: u64, taken: Taken<S>) -> Outcome<S> {
        Outcome { decision: self.less(units, taken.reset_after), next: Some(taken.next) }
    }
}

/// Milliseconds in a reply: microseconds rounded up, at most [`MAX_EXACT`].
pub(crate) fn millis(micros: u64) -> u64 {
    micros.div_ceil(1_000).min(MAX_EXACT)
}
