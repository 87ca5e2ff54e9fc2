//! The token bucket: `capacity` tokens at once, refilled continuously at `rate`.
//!
//! The bucket starts full and refills lazily: nothing runs between calls, each call works out what time has brought since
//! the last. Over any interval it admits at most `capacity + rate × time`, and what it admits is exactly what that
//! rational number allows, because amounts are kept in fractions of a token whose denominator is that of the rate.
//!
//! Source: J. Turner, "New directions in communications (or which way to the information age?)", IEEE Communications
//! Magazine 24(10), 1986. The virtual scheduling form of it is known as GCRA (ITU-T I.371): a GCRA with burst `b` is a
//! token bucket of capacity `b + 1`.

use crate::decision::{Decision, RetryAfter, Taken};
use crate::limiter::{self, Fact, Limiter, LimiterState, Refundable};
use crate::quantity::{Age, Capacity, Cost, MAX_EXACT, Micros, Rate};
use crate::share::Share;

/// A bucket of tokens and the rate at which it refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    capacity: Capacity,
    rate: Rate,
}

/// What a token bucket keeps: how much was spent and not yet refilled at the time of the last call that took something.
///
/// Amounts are in parts: a token is [`Rate::micros`] parts and a microsecond refills [`Rate::units`] parts, so both are
/// whole numbers. Bounds: 2^53 tokens twice over, of 2^63 parts, are below 2^117; 2^62 µs of 2^63 parts are below 2^125.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    limiter: TokenBucket,
    last: Micros,
    spent: u128,
}

impl TokenBucket {
    /// `capacity` tokens at once, refilled at `rate`.
    pub const fn new(capacity: Capacity, rate: Rate) -> Self {
        Self { capacity, rate }
    }

    /// The most that the bucket holds.
    pub const fn capacity(self) -> Capacity {
        self.capacity
    }

    /// What it refills.
    pub const fn rate(self) -> Rate {
        self.rate
    }

    /// The most parts that can be spent: a debt ends at a balance of −capacity.
    #[inline]
    pub(crate) fn most_spent(self) -> u128 {
        2 * self.parts(self.capacity.get())
    }

    /// So many tokens in parts.
    #[inline]
    pub(crate) fn parts(self, tokens: u64) -> u128 {
        u128::from(tokens) * u128::from(self.rate.micros())
    }

    /// Parts that flow back in so many microseconds.
    #[inline]
    pub(crate) fn refill(self, micros: u64) -> u128 {
        u128::from(self.rate.units()) * u128::from(micros)
    }

    /// Milliseconds, rounded up, until so many parts have flowed back.
    #[inline]
    fn millis_to_refill(self, parts: u128) -> u64 {
        saturate(div_ceil(parts, u128::from(self.rate.units()) * 1_000)).min(MAX_EXACT)
    }
}

/// What became of a debit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debit {
    /// What a call of cost 1 would now be told.
    pub decision: Decision,
    /// Units that did not fit any more.
    pub rest: u64,
    /// The state to store in place of the old one; `None` leaves it as it is.
    pub next: Option<State>,
}

impl TokenBucket {
    /// Takes `amount` whatever is there, as late costs are, or what was let through while nobody could decide: down to a
    /// balance of −capacity, in whole units.
    pub fn debit(self, state: Option<State>, now: Micros, amount: Cost) -> Debit {
        let seen = state.map(|state| state.seen_from(now));
        let spent = seen.map_or(0, |seen| seen.spent_under(self, now).0);
        let room = self.most_spent().saturating_sub(spent);
        let taken = amount.get().min(saturate(div_floor(room, u128::from(self.rate.micros()))));
        let next = if taken > 0 {
            Some(State { limiter: self, last: now, spent: spent + self.parts(taken) })
        } else {
            seen.filter(|seen| amount.get() > 0 && seen.spent > 0 && Some(*seen) != state)
        };
        let decision = self.peek(next.or(state), now, Cost::ONE);
        Debit { decision, rest: amount.get() - taken, next }
    }
}

/// A state as one call sees it.
#[derive(Clone, Copy)]
pub struct Look {
    limiter: TokenBucket,
    now: Micros,
    seen: Option<State>,
    clock_went_back: bool,
    /// Parts that are spent by the parameters of the call.
    spent: u128,
    /// Milliseconds until the remembered parameters call it unused; no bound where they are those of the call, by which that is when all
    /// has flowed back.
    until_unused: u64,
}

impl Limiter for TokenBucket {
    type State = State;
    type Look = Look;

    #[inline(always)]
    fn look(self, state: Option<State>, now: Micros) -> Look {
        let seen = state.map(|state| state.seen_from(now));
        let (spent, until_unused) = match seen {
            Some(seen) => seen.spent_under(self, now),
            None => (0, u64::MAX),
        };
        Look { limiter: self, now, seen, clock_went_back: seen != state, spent, until_unused }
    }
}

impl Look {
    /// Milliseconds, rounded up, until all that is spent has flowed back at the rate of the call.
    pub(crate) fn millis_to_refill(&self) -> u64 {
        self.limiter.millis_to_refill(self.spent)
    }
}

impl limiter::Look for Look {
    type State = State;

    #[inline(always)]
    fn answer(&self, asked: u64) -> Decision {
        let limiter = self.limiter;
        let limit = limiter.capacity.get();
        let full = limiter.parts(limit);
        let free = full.saturating_sub(self.spent);
        let wanted = limiter.parts(asked);
        let allowed = wanted <= free;
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > limit {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(limiter.millis_to_refill(self.spent + wanted - full).min(self.until_unused))
        };
        let remaining = saturate(div_floor(free, u128::from(limiter.rate.micros())));
        let reset_after = self.millis_to_refill().min(self.until_unused);
        Decision { allowed, limit, remaining, retry_after, reset_after }
    }

    #[inline(always)]
    fn take(&self, units: u64) -> Taken<State> {
        let next = State { limiter: self.limiter, last: self.now, spent: self.spent + self.limiter.parts(units) };
        Taken { next, reset_after: self.limiter.millis_to_refill(next.spent) }
    }

    #[inline(always)]
    fn set_back(&self) -> Option<State> {
        self.seen.filter(|seen| self.clock_went_back && seen.spent > 0)
    }

    fn share(&self, taken: u64) -> Share {
        let full = self.limiter.parts(self.limiter.capacity.get());
        Share::new(full.saturating_sub(self.spent).saturating_sub(self.limiter.parts(taken)), full)
    }
}

impl State {
    /// A state from its parts, as they were stored; `None` if one is out of its range, or more is spent than can be. `spent` is
    /// in parts of a token.
    #[inline]
    pub fn new(limiter: TokenBucket, last: Micros, spent: u128) -> Option<Self> {
        let plausible = limiter.capacity.get() > 0 && spent <= limiter.most_spent();
        plausible.then_some(Self { limiter, last, spent })
    }

    /// A state from a level that a bucket of these parameters has.
    pub(crate) const fn at_level(limiter: TokenBucket, last: Micros, spent: u128) -> Self {
        Self { limiter, last, spent }
    }

    /// The time of the last call that took something.
    pub const fn last(&self) -> Micros {
        self.last
    }

    /// What was spent and not yet refilled at [`State::last`], in parts of a token.
    pub const fn spent(&self) -> u128 {
        self.spent
    }

    /// What is spent stays spent when the clock went back: it counts as spent now.
    #[inline]
    fn seen_from(self, now: Micros) -> Self {
        Self { last: self.last.min(now), ..self }
    }

    /// What is spent at `now`, in the parts of `limiter`, and the milliseconds until the remembered parameters call the
    /// bucket unused, which are no bound if they are those of `limiter`. If they do already, it is unused for every caller. Else
    /// all time since the last call counts at the rate of `limiter`. The state must not be later than `now`.
    #[inline(always)]
    fn spent_under(&self, limiter: TokenBucket, now: Micros) -> (u128, u64) {
        let elapsed = now.since(self.last);
        let remembered = self.spent.saturating_sub(self.limiter.refill(elapsed));
        if remembered == 0 || self.limiter == limiter {
            return (remembered, u64::MAX);
        }
        let spent = self.converted(limiter).saturating_sub(limiter.refill(elapsed));
        (spent, self.limiter.millis_to_refill(remembered))
    }

    /// What was spent at the last call, as a call with the parameters `limiter` sees it.
    pub(crate) fn spent_as(&self, limiter: TokenBucket) -> u128 {
        if self.limiter == limiter { self.spent } else { self.converted(limiter) }
    }

    /// What was spent at the last call, in the parts of `limiter`: rounded up, so against the caller and by less than one of
    /// them, and cut to a capacity that got smaller. A capacity of 0 cuts nothing, so that lifting it grants nothing.
    fn converted(&self, limiter: TokenBucket) -> u128 {
        let (old, new) = (u128::from(self.limiter.rate.micros()), u128::from(limiter.rate.micros()));
        let (tokens, fraction) = (self.spent / old, self.spent % old);
        let spent = tokens * new + div_ceil(fraction * new, old);
        let smaller = 0 < limiter.capacity.get() && limiter.capacity < self.limiter.capacity;
        if smaller { spent.min(limiter.parts(limiter.capacity.get())) } else { spent }
    }
}

impl Refundable for State {
    /// What was refilled since it was taken has come back by itself: `max(0, amount − rate × age)` is given back, exactly.
    fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> Option<Self> {
        let age = age.unwrap_or(Age::ZERO);
        let seen = self.seen_from(now);
        let limiter = self.limiter;
        let spent = seen.spent.saturating_sub(limiter.refill(now.since(seen.last)));
        let given = limiter.parts(amount.get()).saturating_sub(limiter.refill(age.as_micros())).min(spent);
        if given > 0 {
            return Some(Self { last: now, spent: spent - given, ..seen });
        }
        Some(seen).filter(|seen| amount.get() > 0 && seen != self)
    }
}

impl LimiterState for State {
    type Limiter = TokenBucket;

    fn limiter(&self) -> TokenBucket {
        self.limiter
    }

    /// What is used is told in units, rounded up.
    fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact)) {
        let used = div_ceil(self.spent, u128::from(self.limiter.rate.micros()));
        tell("capacity", Fact::Units(self.limiter.capacity.get()));
        tell("rate", Fact::Rate(self.limiter.rate));
        tell("used", Fact::Units(saturate(used)));
        tell("last_ms", Fact::Moment(self.last));
    }

    #[inline]
    fn unused_at(&self) -> Micros {
        self.last.plus(saturate(div_ceil(self.spent, u128::from(self.limiter.rate.units()))))
    }

    #[inline]
    fn is_unused(&self, now: Micros) -> bool {
        self.spent <= self.limiter.refill(now.since(self.last))
    }
}

#[inline]
pub(crate) fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// `a / b`, rounded down. Most amounts fit 64 bits, where the processor divides in one instruction.
#[inline]
pub(crate) fn div_floor(a: u128, b: u128) -> u128 {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => u128::from(a / b),
        _ => a / b,
    }
}

/// `a / b`, rounded up.
#[inline]
pub(crate) fn div_ceil(a: u128, b: u128) -> u128 {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => u128::from(a.div_ceil(b)),
        _ => a.div_ceil(b),
    }
}
