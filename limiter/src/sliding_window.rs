//! The sliding window counter: at most `limit` units in the last `window`, estimated from two counts.
//!
//! Time is cut into the same windows, aligned to the Unix epoch, as for the fixed window. The units of the window before count
//! for the part of it that the last `window` still covers, as if they had been taken evenly: `current + previous × part`,
//! compared as exact fractions. It takes as little as a fixed window and lets no double burst through around an edge. But it
//! is an estimate: where the previous window's calls were uneven, a stretch as long as the window may see more than the
//! limit, though never more than twice.
//!
//! Source: Cloudflare, "How we built rate limiting capable of scaling to millions of domains", 2017; there in floating point.

use crate::decision::{Decision, RetryAfter, Taken, millis};
use crate::limiter::{self, Fact, Limiter, LimiterState, Refundable};
use crate::quantity::{Age, Cost, Limit, Micros, Window};
use crate::share::Share;

/// A limit for any stretch of time as long as the window, estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    limit: Limit,
    window: Window,
}

/// What a sliding window counter keeps: how much was taken in the window that holds `last`, and in the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    limiter: SlidingWindow,
    last: Micros,
    current: u64,
    previous: u64,
}

impl SlidingWindow {
    /// At most `limit` units in any stretch as long as `window`.
    pub const fn new(limit: Limit, window: Window) -> Self {
        Self { limit, window }
    }

    /// The most that any window admits.
    pub const fn limit(self) -> Limit {
        self.limit
    }

    /// The length of the windows.
    pub const fn window(self) -> Window {
        self.window
    }
}

/// The two counts as one moment sees them.
#[derive(Clone, Copy)]
struct Counts {
    current: u64,
    previous: u64,
    /// Microseconds of the current window that are left: for so long the previous one is still covered.
    left: u64,
    window: u64,
}

impl Counts {
    /// `current + previous × left / window`, rounded up.
    #[inline]
    fn estimate(self) -> u64 {
        let covered = u128::from(self.previous) * u128::from(self.left);
        self.current + narrow(covered.div_ceil(u128::from(self.window)))
    }

    /// Microseconds, rounded up, until the estimate is at most `most`, if nothing is taken until then.
    #[inline]
    fn until_at_most(self, most: u64) -> u64 {
        // Of so many units, at most `most` are left when `window × most / units` of their window is still covered.
        let covered = |units: u64, most: u64| match units {
            0 => self.window,
            _ => narrow(u128::from(self.window) * u128::from(most) / u128::from(units)).min(self.window),
        };
        match most.checked_sub(self.current) {
            Some(most) => self.left.saturating_sub(covered(self.previous, most)),
            None => self.left + self.window - covered(self.current, most),
        }
    }

    /// What remains of `limit`, unrounded. Below 2^53 × 2^52 over the same, from which at most 2^61 × 2^52 is taken away.
    fn share(self, limit: u64) -> Share {
        let window = u128::from(self.window);
        let used = u128::from(self.current) * window + u128::from(self.previous) * u128::from(self.left);
        let whole = u128::from(limit) * window;
        Share::new(whole.saturating_sub(used), whole)
    }

    #[inline]
    fn until_unused(self) -> u64 {
        self.until_at_most(0)
    }
}

/// A state as one call sees it.
#[derive(Clone, Copy)]
pub struct Look {
    limiter: SlidingWindow,
    now: Micros,
    /// `None` if it is unused.
    seen: Option<State>,
    clock_went_back: bool,
    /// By the parameters of the call.
    counts: Counts,
    /// Microseconds until the remembered parameters call it unused.
    remembered_unused: u64,
}

impl Limiter for SlidingWindow {
    type State = State;
    type Look = Look;

    #[inline]
    fn look(self, state: Option<State>, now: Micros) -> Look {
        let used = state.filter(|state| !state.is_unused(now));
        let seen = used.map(|state| state.seen_from(now));
        let (counts, remembered_unused) = match seen {
            Some(seen) => (seen.under(self).counts(now), seen.unused_at().since(now)),
            None => (State::unused(self, now).counts(now), 0),
        };
        Look { limiter: self, now, seen, clock_went_back: seen != used, counts, remembered_unused }
    }
}

impl Look {
    #[inline]
    fn counts_with(&self, taken: u64) -> Counts {
        Counts { current: self.counts.current + taken, ..self.counts }
    }
}

impl limiter::Look for Look {
    type State = State;

    #[inline]
    fn answer(&self, asked: u64) -> Decision {
        let limit = self.limiter.limit.get();
        let remaining = limit.saturating_sub(self.counts.estimate());
        let allowed = asked <= remaining;
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > limit {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(millis(self.counts.until_at_most(limit - asked).min(self.remembered_unused)))
        };
        let reset_after = millis(self.counts.until_unused().min(self.remembered_unused));
        Decision { allowed, limit, remaining, retry_after, reset_after }
    }

    #[inline]
    fn take(&self, units: u64) -> Taken<State> {
        let counts = self.counts_with(units);
        let Counts { current, previous, .. } = counts;
        let next = State { limiter: self.limiter, last: self.now, current, previous };
        Taken { next, reset_after: millis(counts.until_unused()) }
    }

    #[inline]
    fn set_back(&self) -> Option<State> {
        self.seen.filter(|_| self.clock_went_back)
    }

    fn share(&self, taken: u64) -> Share {
        self.counts_with(taken).share(self.limiter.limit.get())
    }
}

impl State {
    /// The most units that a count may be said to hold. Steps of the clock can add to a count beyond the limit, by a limit
    /// each, so this is far off; it keeps the arithmetic within bounds.
    const MOST: u64 = 1 << 60;

    /// A state from its parts, as they were stored; `None` if one is out of its range.
    pub fn new(limiter: SlidingWindow, last: Micros, current: u64, previous: u64) -> Option<Self> {
        let plausible = limiter.limit.get() > 0 && current <= Self::MOST && previous <= Self::MOST;
        plausible.then_some(Self { limiter, last, current, previous })
    }

    /// The time of the last call that took or gave back something.
    pub const fn last(&self) -> Micros {
        self.last
    }

    /// Units taken in the window that holds [`State::last`].
    pub const fn current(&self) -> u64 {
        self.current
    }

    /// Units taken in the window before that.
    pub const fn previous(&self) -> u64 {
        self.previous
    }

    fn unused(limiter: SlidingWindow, now: Micros) -> Self {
        Self { limiter, last: now, current: 0, previous: 0 }
    }

    /// The counts as they stand at `now`, which must not be earlier than the state.
    fn counts(&self, now: Micros) -> Counts {
        let window = self.limiter.window;
        let end = window.end(now);
        let (current, previous) = match window.between(self.last, now) {
            0 => (self.current, self.previous),
            1 => (0, self.current),
            _ => (0, 0),
        };
        Counts { current, previous, left: end.since(now), window: window.as_micros() }
    }

    /// What is used stays used when the clock went back. Within the window only the stamp moves; in an earlier one the
    /// estimate counts as taken now.
    fn seen_from(self, now: Micros) -> Self {
        if now >= self.last {
            self
        } else if now >= self.limiter.window.start(self.last) {
            Self { last: now, ..self }
        } else {
            let estimate = self.counts(self.last).estimate().min(Self::MOST);
            Self { last: now, current: estimate, previous: 0, ..self }
        }
    }

    /// The state as `limiter` takes it. Another window: the estimate at the last call counts as taken then. A limit that got
    /// smaller cuts both counts; a limit of 0 cuts nothing, so that lifting it grants nothing.
    fn under(&self, limiter: SlidingWindow) -> Self {
        let (current, previous) = if limiter.window == self.limiter.window {
            (self.current, self.previous)
        } else {
            (self.counts(self.last).estimate(), 0)
        };
        let smaller = 0 < limiter.limit.get() && limiter.limit < self.limiter.limit;
        let most = if smaller { limiter.limit.get() } else { u64::MAX };
        Self { limiter, last: self.last, current: current.min(most), previous: previous.min(most) }
    }
}

impl Refundable for State {
    /// What was taken before the two windows that are counted has left by itself.
    fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> Option<Self> {
        let age = age.unwrap_or(Age::ZERO);
        let seen = self.seen_from(now);
        let Counts { current, previous, .. } = seen.counts(now);
        let (from_current, from_previous) = match self.limiter.window.between(now.minus(age.as_micros()), now) {
            0 => (amount.get().min(current), 0),
            1 => (0, amount.get().min(previous)),
            _ => (0, 0),
        };
        if from_current + from_previous > 0 {
            let (current, previous) = (current - from_current, previous - from_previous);
            return Some(Self { last: now, current, previous, ..seen });
        }
        Some(seen).filter(|seen| amount.get() > 0 && seen != self)
    }
}

impl LimiterState for State {
    type Limiter = SlidingWindow;

    fn limiter(&self) -> SlidingWindow {
        self.limiter
    }

    fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact)) {
        tell("limit", Fact::Units(self.limiter.limit.get()));
        tell("window", Fact::Window(self.limiter.window));
        tell("current", Fact::Units(self.current));
        tell("previous", Fact::Units(self.previous));
        tell("last_ms", Fact::Moment(self.last));
    }

    fn unused_at(&self) -> Micros {
        self.last.plus(self.counts(self.last).until_unused())
    }

    fn is_unused(&self, now: Micros) -> bool {
        self.seen_from(now).unused_at() <= now
    }
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
