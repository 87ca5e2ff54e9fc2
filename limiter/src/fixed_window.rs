//! The fixed window counter: at most `limit` units in each window of the clock.
//!
//! Windows are aligned to the Unix epoch, so every server and every caller agrees on them: 60 s windows start on the
//! minute, windows of a day at midnight UTC. It is the cheapest limiter and the easiest to explain. Its nature: up to twice the limit
//! passes around an edge, the last of one window and the first of the next.
//!
//! Source: the classic counter per interval, for example "Pattern: Rate limiter" in the Redis documentation of `INCR`;
//! here the window stands in the state, not in the key's name or its expiry.

use crate::decision::{Decision, RetryAfter, Taken, millis};
use crate::limiter::{self, Fact, Limiter, LimiterState, Refundable};
use crate::quantity::{Age, Cost, Limit, Micros, Window};
use crate::share::Share;

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

/// A state as one call sees it.
#[derive(Clone, Copy)]
pub struct Look {
    limiter: FixedWindow,
    now: Micros,
    /// `None` if it is unused.
    seen: Option<State>,
    clock_went_back: bool,
    /// Units taken in the window of now.
    count: u64,
    /// Microseconds.
    until_end: u64,
    /// Microseconds until the count is gone.
    until_unused: u64,
}

impl Limiter for FixedWindow {
    type State = State;
    type Look = Look;

    #[inline]
    fn look(self, state: Option<State>, now: Micros) -> Look {
        let used = state.filter(|state| !state.is_unused(now));
        let seen = used.map(|state| state.seen_from(now));
        let until_end = self.window.end(now).since(now);
        let (count, until_unused) = match seen {
            Some(seen) => (seen.count_under(self, now), until_end.min(seen.unused_at().since(now))),
            None => (0, 0),
        };
        Look { limiter: self, now, seen, clock_went_back: seen != used, count, until_end, until_unused }
    }
}

impl limiter::Look for Look {
    type State = State;

    #[inline]
    fn answer(&self, asked: u64) -> Decision {
        let limit = self.limiter.limit.get();
        let remaining = limit.saturating_sub(self.count);
        let allowed = asked <= remaining;
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > limit {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(millis(self.until_unused))
        };
        let reset_after = if self.count == 0 { 0 } else { millis(self.until_unused) };
        Decision { allowed, limit, remaining, retry_after, reset_after }
    }

    #[inline]
    fn take(&self, units: u64) -> Taken<State> {
        let next = State { limiter: self.limiter, last: self.now, count: self.count + units };
        Taken { next, reset_after: millis(self.until_end) }
    }

    #[inline]
    fn set_back(&self) -> Option<State> {
        self.seen.filter(|_| self.clock_went_back)
    }

    fn share(&self, taken: u64) -> Share {
        let limit = self.limiter.limit.get();
        Share::new(limit.saturating_sub(self.count).saturating_sub(taken).into(), limit.into())
    }
}

impl State {
    /// A state from its parts, as they were stored; `None` if one is out of its range, or the count above the limit.
    #[inline]
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
    #[inline]
    fn seen_from(self, now: Micros) -> Self {
        Self { last: self.last.min(now), ..self }
    }

    /// Units taken in the window of `now` as `limiter` cuts time into windows. The count lies in the window that holds its
    /// last call, and is cut to a limit that got smaller; a limit of 0 cuts nothing, so that lifting it grants nothing.
    #[inline]
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

    #[inline]
    fn unused_at(&self) -> Micros {
        if self.count == 0 { self.last } else { self.limiter.window.end(self.last) }
    }

    #[inline]
    fn is_unused(&self, now: Micros) -> bool {
        self.seen_from(now).unused_at() <= now
    }
}
