//! The fixed window counter: at most `limit` units in each window of the clock.
//!
//! Windows are aligned to the Unix epoch, so every server and every caller agrees on them: 60 s windows start on the
//! minute, windows of a day at midnight UTC. It is the cheapest limiter and the easiest to explain. Its nature: up to twice the limit
//! passes around an edge, the last of one window and the first of the next.
//!
//! Source: the classic counter per interval, for example "Pattern: Rate limiter" in the Redis documentation of `INCR`;
//! here the window stands in the state, not in the key's name or its expiry.

use crate::decision::{Decision, Outcome, RetryAfter, millis};
use crate::limiter::{Fact, Limiter, LimiterState, Refundable};
use crate::quantity::{Age, Cost, Limit, Micros, Window};

/// A limit for each window of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    limit: Limit,
    window: Window,
}

/// What a fixed window counter keeps: how much was taken in the window that holds `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    limiter: FixedWindow,
    last: Micros,
    count: u64,
}

impl FixedWindow {
    /// At most `limit` units in each window.
    pub const fn new(limit: Limit, window: Window) -> Self {
        Self { limit, window }
    }

    /// The most that each window admits.
    pub const fn limit(self) -> Limit {
        self.limit
    }

    /// The length of the windows.
    pub const fn window(self) -> Window {
        self.window
    }
}

impl Limiter for FixedWindow {
    type State = State;

    fn judge(self, state: Option<State>, now: Micros, asked: u64, taking: bool) -> Outcome<State> {
        let limit = self.limit.get();
        let stored = state.filter(|state| !state.is_unused(now)).map(|state| state.seen_from(now));
        let until_end = self.window.end(now).since(now);
        let (count, until_unused) = match stored {
            Some(stored) => (stored.count_under(self, now), until_end.min(stored.unused_at().since(now))),
            None => (0, 0),
        };

        let remaining = limit.saturating_sub(count);
        let fits = asked <= remaining;
        let retry_after = if fits {
            RetryAfter::Millis(0)
        } else if asked > limit {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(millis(until_unused))
        };
        let answer = |remaining, until_reset| Decision {
            allowed: fits,
            limit,
            remaining,
            retry_after,
            reset_after: millis(until_reset),
        };
        if fits && taking {
            let next = State { limiter: self, last: now, count: count + asked };
            return Outcome { decision: answer(remaining - asked, until_end), next: Some(next) };
        }
        let clock_went_back = taking && stored != state && stored.is_some();
        Outcome {
            decision: answer(remaining, if count == 0 { 0 } else { until_unused }),
            next: stored.filter(|_| clock_went_back),
        }
    }
}

impl State {
    /// A state from its parts, as they were stored; `None` if one is out of its range, or the count above the limit.
    pub fn new(limiter: FixedWindow, last: Micros, count: u64) -> Option<Self> {
        let plausible = limiter.limit.get() > 0 && count <= limiter.limit.get();
        plausible.then_some(Self { limiter, last, count })
    }

    /// The time of the last call that took something.
    pub const fn last(&self) -> Micros {
        self.last
    }

    /// Units taken in the window that holds [`State::last`].
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// What is used stays used when the clock went back: it counts in the window of now.
    fn seen_from(self, now: Micros) -> Self {
        Self { last: self.last.min(now), ..self }
    }

    /// Units taken in the window of `now` as `limiter` cuts time into windows. The count lies in the window that holds its
    /// last call, and is cut to a limit that got smaller; a limit of 0 cuts nothing, so that lifting it grants nothing.
    fn count_under(&self, limiter: FixedWindow, now: Micros) -> u64 {
        if self.last < limiter.window.start(now) {
            0
        } else if limiter.limit.get() > 0 {
            self.count.min(limiter.limit.get())
        } else {
            self.count
        }
    }
}

impl Refundable for State {
    /// What was taken in an earlier window than that of now has left by itself.
    fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> Option<Self> {
        let age = age.unwrap_or(Age::ZERO);
        let seen = self.seen_from(now);
        let window = self.limiter.window;
        let stands = !self.is_unused(now) && window.between(now.minus(age.as_micros()), now) == 0;
        let given = if stands { amount.get().min(seen.count) } else { 0 };
        if given > 0 {
            return Some(Self { last: now, count: seen.count - given, ..seen });
        }
        Some(seen).filter(|seen| amount.get() > 0 && seen != self)
    }
}

impl LimiterState for State {
    type Limiter = FixedWindow;

    fn limiter(&self) -> FixedWindow {
        self.limiter
    }

    fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact)) {
        tell("limit", Fact::Units(self.limiter.limit.get()));
        tell("window", Fact::Window(self.limiter.window));
        tell("used", Fact::Units(self.count));
        tell("last_ms", Fact::Moment(self.last));
    }

    fn unused_at(&self) -> Micros {
        if self.count == 0 { self.last } else { self.limiter.window.end(self.last) }
    }

    fn is_unused(&self, now: Micros) -> bool {
        self.seen_from(now).unused_at() <= now
    }
}
