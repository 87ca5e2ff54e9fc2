//! A bucket with rows: what the commands of a token bucket make of it. All of them stay under the rule that what is free and
//! what is in rows are together at most the capacity.

use super::ask::Node;
use super::refill::{Held, Level, millis};
use super::row::{Row, Rows};
use crate::decision::{Decision, RetryAfter};
use crate::limiter::LimiterState;
use crate::quantity::{Age, Cost, Micros};
use crate::token_bucket::{State, TokenBucket, div_floor, saturate};

/// A token bucket of which nodes hold slices. Without rows it behaves as the bucket alone.
#[derive(Clone, Copy, Debug)]
pub struct LeasedBucket<R> {
    bucket: State,
    rows: R,
}

/// What a call makes of a bucket with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The bucket to store in place of the old one.
    pub bucket: State,
    /// What becomes of the row of the node that called.
    pub own: Own,
    /// Whether other rows have expired, or are moved because the clock went back: see [`Change::kept`].
    pub sweeps: bool,
    stamp: Micros,
}

/// What becomes of the row of the node that called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// No node called, or nothing changes for it.
    Untouched,
    /// The row at this index becomes another.
    Replaced(usize, Row),
    /// The node gets a row.
    Added(Row),
    /// The row at this index goes.
    Removed(usize),
}

impl Change {
    /// What is stored of a row that was there before and is not the caller's; `None` if it has expired.
    pub fn kept(&self, row: Row) -> Option<Row> {
        let expires = row.until(self.stamp);
        (expires > self.bucket.last()).then_some(Row { expires, ..row })
    }
}

/// What became of a debit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debit {
    /// What a call of cost 1 would now be told.
    pub decision: Decision,
    /// Units that did not fit any more.
    pub rest: u64,
    /// What to do with the state; `None` leaves it as it is.
    pub change: Option<Change>,
}

impl<R: Rows> LeasedBucket<R> {
    /// A bucket and its rows.
    pub const fn new(bucket: State, rows: R) -> Self {
        Self { bucket, rows }
    }

    /// The bucket; what is in rows counts as spent.
    pub const fn bucket(&self) -> &State {
        &self.bucket
    }

    /// The rows.
    pub const fn rows(&self) -> &R {
        &self.rows
    }

    /// Whether it can't be told from a missing one at `now`. With a live row it is in use, even if that holds nothing.
    pub fn is_unused(&self, now: Micros) -> bool {
        Seen::of(Some(self), now).state.is_none()
    }

    /// The first moment at which it can't be told from a missing one, if nothing happens until then.
    pub fn unused_at(&self) -> Micros {
        let last = self.bucket.last();
        last.plus(saturate(Seen::of(Some(self), last).micros_until_unused()))
    }

    /// Whether a call that sees it at `now` finds that the clock went back.
    fn is_later_than(&self, now: Micros) -> bool {
        self.bucket.last() > now
    }

    /// The answer that a call of `cost` with the remembered parameters would get.
    pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
        self.judge(self.bucket.limiter(), now, cost.get().max(1), false).0
    }

    /// Decides a call of `cost` with the parameters `limiter`; see [`crate::Limiter::decide`].
    pub fn decide(&self, limiter: TokenBucket, now: Micros, cost: Cost) -> (Decision, Option<Change>) {
        self.judge(limiter, now, cost.get().max(1), cost.get() > 0)
    }

    /// Judges a call of `asked` units with the parameters `limiter`; see [`crate::Limiter::judge`].
    pub fn judge(&self, limiter: TokenBucket, now: Micros, asked: u64, taking: bool) -> (Decision, Option<Change>) {
        let seen = Seen::of(Some(self), now);
        let mut level = seen.level(limiter);
        let (capacity, wanted) = (limiter.capacity().get(), limiter.parts(asked));
        let allowed = wanted <= level.free_parts();
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > capacity {
            RetryAfter::Never
        } else {
            let micros = seen.micros_until(level, limiter.parts(capacity) - wanted);
            RetryAfter::Millis(millis(micros.min(seen.micros_until_unused())))
        };
        let change = if allowed && taking {
            level.take(wanted);
            Some(seen.change(State::at_level(limiter, now, level.spent()), Own::Untouched))
        } else {
            seen.restamped().filter(|_| taking)
        };
        let until_unused = seen.micros_until_level_unused(level);
        let until_unused =
            if change.is_some() && allowed { until_unused } else { until_unused.min(seen.micros_until_unused()) };
        let decision = Decision {
            allowed,
            limit: capacity,
            remaining: level.free(),
            retry_after,
            reset_after: millis(until_unused),
        };
        (decision, change)
    }

    /// See [`TokenBucket::debit`].
    pub fn debit(&self, limiter: TokenBucket, now: Micros, amount: Cost) -> Debit {
        let seen = Seen::of(Some(self), now);
        let mut level = seen.level(limiter);
        let room = limiter.most_spent().saturating_sub(level.spent());
        let taken = amount.get().min(saturate(div_floor(room, u128::from(limiter.rate().micros()))));
        let change = if taken > 0 {
            level.take(limiter.parts(taken));
            Some(seen.change(State::at_level(limiter, now, level.spent()), Own::Untouched))
        } else {
            seen.restamped().filter(|_| amount.get() > 0)
        };
        let decision = if taken > 0 { seen.told(level) } else { self.judge(limiter, now, 1, false).0 };
        Debit { decision, rest: amount.get() - taken, change }
    }

    /// See [`crate::Refundable::refund`]. Tokens in rows are not given back, and what is given back leaves room for them. With
    /// it comes what a call of cost 1 would then be told.
    pub fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> (Decision, Option<Change>) {
        let limiter = self.bucket.limiter();
        let seen = Seen::of(Some(self), now);
        let before = seen.level(limiter);
        let refilled = limiter.refill(age.unwrap_or(Age::ZERO).as_micros());
        let mut level = before;
        level.refund(limiter.parts(amount.get()).saturating_sub(refilled));
        if level == before {
            return (self.peek(now, Cost::ONE), seen.restamped().filter(|_| amount.get() > 0));
        }
        let change = seen.change(State::at_level(limiter, now, level.spent()), Own::Untouched);
        (seen.told(level), Some(change))
    }
}

/// A bucket with rows as a call sees it.
pub(crate) struct Seen<'a, R> {
    /// What is under the key; `None` if it is unused.
    pub(crate) state: Option<&'a LeasedBucket<R>>,
    now: Micros,
    /// The time of the last call that took or gave something, or `now` if the clock went back.
    stamp: Micros,
    /// The tokens in rows at the stamp.
    outstanding: u64,
    /// The rows that have expired since.
    expired: Vec<Held>,
    /// The live rows.
    pub(crate) live: usize,
    /// When the first and the last live row expire.
    pub(crate) first: Micros,
    last: Micros,
    sweeps: bool,
}

impl<'a, R: Rows> Seen<'a, R> {
    pub(crate) fn of(state: Option<&'a LeasedBucket<R>>, now: Micros) -> Self {
        let stamp = state.map_or(now, |state| state.bucket.last().min(now));
        let mut seen = Self {
            state,
            now,
            stamp,
            outstanding: 0,
            expired: Vec::new(),
            live: 0,
            first: Micros::MAX,
            last: now,
            sweeps: false,
        };
        let Some(state) = state else { return seen };
        for row in (0..state.rows.count()).map(|index| state.rows.row(index)) {
            let until = row.until(stamp);
            seen.outstanding = seen.outstanding.saturating_add(row.held.get());
            if until <= now {
                seen.expired.push(Held { until, tokens: row.held.get() });
            } else {
                seen.live += 1;
                seen.first = seen.first.min(until);
                seen.last = seen.last.max(until);
            }
            seen.sweeps |= until <= now || until != row.expires;
        }
        seen.expired.sort_unstable();
        if seen.live == 0 && seen.level(state.bucket.limiter()).spent() == 0 {
            return Self { state: None, outstanding: 0, expired: Vec::new(), ..seen };
        }
        seen
    }

    /// The level now, for a call with the parameters `limiter`. What was spent at the stamp counts as spent then, and all time
    /// since at these parameters.
    pub(crate) fn level(&self, limiter: TokenBucket) -> Level {
        let Some(state) = self.state else { return Level::new(limiter, self.now, 0, 0) };
        let mut level = Level::new(limiter, self.stamp, state.bucket.spent_as(limiter), self.outstanding);
        level.pass(&self.expired, self.now);
        level
    }

    /// The row of a node, and where it is, if it has not expired.
    pub(crate) fn find(&self, node: Node<'_>) -> Option<(usize, Row)> {
        let rows = &self.state?.rows;
        let index = rows.find(node)?;
        let row = rows.row(index);
        let expires = row.until(self.stamp);
        (expires > self.now).then_some((index, Row { expires, ..row }))
    }

    /// The live rows that have tokens, all but that at `except`.
    pub(crate) fn held(&self, except: Option<usize>) -> Vec<Held> {
        let Some(state) = self.state else { return Vec::new() };
        (0..state.rows.count())
            .filter(|index| Some(*index) != except)
            .map(|index| state.rows.row(index))
            .map(|row| Held { until: row.until(self.stamp), tokens: row.held.get() })
            .filter(|held| held.until > self.now && held.tokens > 0)
            .collect()
    }

    /// The microseconds from now until a level has at most so many parts spent.
    pub(crate) fn micros_until(&self, level: Level, most: u128) -> u128 {
        if level.spent() <= most { 0 } else { level.micros_until(most, &self.held(None)) }
    }

    /// The microseconds from now until a level and the rows can't be told from a missing bucket.
    fn micros_until_level_unused(&self, level: Level) -> u128 {
        self.micros_until(level, 0).max(self.last.since(self.now).into())
    }

    /// The same by the remembered parameters.
    pub(crate) fn micros_until_unused(&self) -> u128 {
        match self.state {
            Some(state) => self.micros_until_level_unused(self.level(state.bucket.limiter())),
            None => 0,
        }
    }

    /// What a call of cost 1 is told after a call that left this level and the rows that are live.
    fn told(&self, level: Level) -> Decision {
        let limiter = level.limiter();
        let full = limiter.parts(limiter.capacity().get());
        let one = limiter.parts(1);
        let allowed = one <= level.free_parts();
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if one > full {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(millis(self.micros_until(level, full - one)))
        };
        Decision {
            allowed,
            limit: limiter.capacity().get(),
            remaining: level.free(),
            retry_after,
            reset_after: millis(self.micros_until_level_unused(level)),
        }
    }

    /// The change that stores this bucket.
    pub(crate) fn change(&self, bucket: State, own: Own) -> Change {
        Change { bucket, own, sweeps: self.sweeps, stamp: self.stamp }
    }

    /// The change that a call makes which finds that the clock went back, and changes nothing else.
    pub(crate) fn restamped(&self) -> Option<Change> {
        let state = self.state.filter(|state| state.is_later_than(self.now))?;
        let bucket = State::at_level(state.bucket.limiter(), self.now, state.bucket.spent());
        Some(self.change(bucket, Own::Untouched))
    }
}
