//! How a bucket refills beside rows that expire one after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::row::Row;
use crate::quantity::{MAX_EXACT, Micros};
use crate::token_bucket::{TokenBucket, div_ceil, div_floor, saturate};

/// Tokens of one row, and when they are forfeited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub(crate) until: Micros,
    pub(crate) tokens: u64,
}

impl Held {
    pub(crate) fn of(row: &Row) -> Self {
        Self { until: row.expires, tokens: row.held }
    }
}

/// What is spent of a bucket at a moment, the tokens in rows among it. As in a bucket without rows, amounts are in parts of a
/// token, and the balance is the capacity less what is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    limiter: TokenBucket,
    at: u128,
    spent: u128,
    outstanding: u64,
}

impl Level {
    /// A level of a bucket of which so many tokens are in rows: at least those are spent.
    pub(crate) fn new(limiter: TokenBucket, at: Micros, spent: u128, outstanding: u64) -> Self {
        let mut level = Self { limiter, at: at.get().into(), spent, outstanding };
        level.spent = spent.max(level.floor());
        level
    }

    /// The parameters of the bucket.
    pub(crate) fn limiter(&self) -> TokenBucket {
        self.limiter
    }

    /// The parts that are spent.
    pub(crate) fn spent(&self) -> u128 {
        self.spent
    }

    /// The tokens in rows.
    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// The parts that are free: none in debt.
    pub(crate) fn free_parts(&self) -> u128 {
        self.limiter.parts(self.limiter.capacity().get()).saturating_sub(self.spent)
    }

    /// Whether so many tokens are free.
    pub(crate) fn has_free(&self, tokens: u64) -> bool {
        self.limiter.parts(tokens) <= self.free_parts()
    }

    /// The tokens that are free, rounded down.
    pub(crate) fn free(&self) -> u64 {
        saturate(div_floor(self.free_parts(), u128::from(self.limiter.rate().micros())))
    }

    /// The fewest parts that are spent: the tokens in rows are never refilled. Where those exceed the capacity, which only a
    /// change of it brings about, the balance is at most 0.
    fn floor(&self) -> u128 {
        if cfg!(lease_without_capacity_rule) {
            return 0;
        }
        self.limiter.parts(self.outstanding.min(self.limiter.capacity().get()))
    }

    /// Whether nothing is refilled at all: the tokens in rows exceed the capacity.
    fn stands_still(&self) -> bool {
        self.outstanding > self.limiter.capacity().get() && !cfg!(lease_without_capacity_rule)
    }

    /// Time passes while no row expires.
    pub(crate) fn advance(&mut self, to: Micros) {
        let to = u128::from(to.get()).max(self.at);
        if !self.stands_still() {
            let refilled = self.limiter.refill(saturate(to - self.at));
            self.spent = self.spent.saturating_sub(refilled).max(self.floor());
        }
        self.at = to;
    }

    /// A row is gone, or holds fewer tokens: they were spent, or are forfeited.
    pub(crate) fn leave(&mut self, tokens: u64) {
        self.outstanding = self.outstanding.saturating_sub(tokens);
    }

    /// Tokens come back from a row.
    pub(crate) fn give_back(&mut self, tokens: u64) {
        self.leave(tokens);
        self.refund(self.limiter.parts(tokens));
    }

    /// Parts come back that are in no row.
    pub(crate) fn refund(&mut self, parts: u128) {
        self.spent = self.spent.saturating_sub(parts).max(self.floor());
    }

    /// Parts are taken that go to no row.
    pub(crate) fn take(&mut self, parts: u128) {
        self.spent += parts;
    }

    /// Tokens go from the free ones to a row.
    pub(crate) fn grant(&mut self, tokens: u64) {
        self.outstanding += tokens;
        self.take(self.limiter.parts(tokens));
    }

    /// Lets rows expire, each at its time; they come in the order of their expiry: refill between them sees the rows of that time. Then
    /// time passes to `now`.
    pub(crate) fn pass(&mut self, expired: &[Held], now: Micros) {
        if cfg!(lease_without_piecewise_refill) {
            expired.iter().for_each(|held| self.leave(held.tokens));
            return self.advance(now);
        }
        for held in expired {
            self.advance(held.until);
            self.leave(held.tokens);
        }
        self.advance(now);
    }

    /// The microseconds until at most `most` parts are spent, if these rows are held until they expire and nothing else
    /// happens. The rows must be all that have tokens out.
    pub(crate) fn micros_until(mut self, most: u128, rows: impl Iterator<Item = Held>) -> u128 {
        let began = self.at;
        // Mostly no row is in the way.
        if self.falls_to(most) {
            return self.micros_to_fall_to(most);
        }
        let mut rows: BinaryHeap<Reverse<Held>> = rows.map(Reverse).collect();
        while let Some(Reverse(held)) = rows.pop() {
            self.advance(held.until);
            self.leave(held.tokens);
            if self.falls_to(most) {
                return self.at - began + self.micros_to_fall_to(most);
            }
        }
        // Without rows nothing stands still, and the floor is 0.
        u128::MAX
    }

    fn micros_to_fall_to(&self, most: u128) -> u128 {
        div_ceil(self.spent.saturating_sub(most), self.limiter.rate().units().into())
    }

    /// Whether what is spent falls to so many parts even if no row expires. Then it does so at the same time if some do: a row that
    /// expires only lets it fall further.
    fn falls_to(&self, most: u128) -> bool {
        !self.stands_still() && self.floor() <= most
    }
}

/// Into how many parts time is cut, so that only rows in few of them need be sorted.
const PARTS: usize = 64;
/// So many rows are sorted without an allocation.
const FEW: usize = 64;

/// Rows in the order of their expiry.
struct Sorted {
    few: [Held; FEW],
    count: usize,
    /// All of them, if they are more than a few.
    many: Vec<Held>,
}

impl Sorted {
    fn of(mut rows: impl Iterator<Item = Held> + Clone) -> Self {
        let all = rows.clone();
        let none = Held { until: Micros::MAX, tokens: 0 };
        let mut sorted = Self { few: [none; FEW], count: 0, many: Vec::new() };
        for (slot, held) in sorted.few.iter_mut().zip(rows.by_ref()) {
            *slot = held;
            sorted.count += 1;
        }
        if sorted.count == FEW && rows.next().is_some() {
            sorted.many = all.collect();
        }
        sorted.many.sort_unstable();
        sorted.few.sort_unstable();
        sorted
    }

    fn get(&self) -> &[Held] {
        if self.many.is_empty() { self.few.get(..self.count).unwrap_or_default() } else { &self.many }
    }
}

impl Level {
    /// The microseconds until nothing is spent, if these rows are held until they expire, the first at `first` and the last at `last`, and
    /// nothing else happens. The rows must be all that are live.
    ///
    /// Where refill never stands still, that is when all that is spent now has flowed back, or all that was in rows just before one
    /// of them expired has since, whatever is later. Most rows are ruled out by a bound for all that expire in the same part of the time.
    pub(crate) fn micros_until_unspent(
        self,
        first: Micros,
        last: Micros,
        rows: impl Iterator<Item = Held> + Clone,
    ) -> u128 {
        let units = u128::from(self.limiter.rate().units());
        let now = self.at;
        let since_now = |at: u64| u128::from(at).saturating_sub(now);
        let flows_back = |tokens: u64| div_ceil(self.limiter.parts(tokens), units);
        let of_now = div_ceil(self.spent, units);
        if self.stands_still() {
            return self.micros_until(0, rows);
        }
        if since_now(last.get()) + flows_back(self.outstanding) <= of_now {
            return of_now;
        }

        let shift = (u64::BITS - last.since(first).leading_zeros()).saturating_sub(PARTS.ilog2());
        let part_of = |until: Micros| (until.since(first) >> shift) as usize;
        let mut sums = [0_u64; PARTS];
        for held in rows.clone() {
            if let Some(sum) = sums.get_mut(part_of(held.until)) {
                *sum = sum.saturating_add(held.tokens);
            }
        }
        // What is in rows when a part begins, and the least and the most that its rows can come to.
        let mut bounds = [(0, 0); PARTS];
        let mut outstanding = self.outstanding;
        let (mut latest, mut begins) = (of_now, first.get());
        for (bound, sum) in bounds.iter_mut().zip(sums) {
            let ends = begins.saturating_add((1 << shift) - 1).min(last.get());
            if sum > 0 {
                let wait = flows_back(outstanding);
                latest = latest.max(since_now(begins) + wait);
                *bound = (outstanding, since_now(ends) + wait);
            }
            outstanding = outstanding.saturating_sub(sum);
            begins = ends.saturating_add(1);
        }
        let at_least = latest;
        let is_open = |part: usize| bounds.get(part).is_some_and(|&(_, most)| most > at_least);
        let mut part = None;
        for held in Sorted::of(rows.filter(|held| is_open(part_of(held.until)))).get() {
            let its = part_of(held.until);
            if part != Some(its) {
                part = Some(its);
                outstanding = bounds.get(its).map_or(0, |&(outstanding, _)| outstanding);
            }
            latest = latest.max(since_now(held.until.get()) + flows_back(outstanding));
            outstanding = outstanding.saturating_sub(held.tokens);
        }
        latest
    }
}

/// The microseconds from `now` until a level and its rows, of which the first expires at `first` or later and the last at `last`, can't be
/// told from a missing bucket.
pub(crate) fn micros_until_unused(
    level: Level,
    now: Micros,
    first: Micros,
    last: Micros,
    rows: impl Iterator<Item = Held> + Clone,
) -> u128 {
    let of_rows = u128::from(last.since(now));
    if level.spent == 0 { of_rows } else { level.micros_until_unspent(first, last, rows).max(of_rows) }
}

/// The moments between which that is, without a look at the rows. A row expires at `last`, and none later.
pub(crate) fn unused_within(level: Level, now: Micros, last: Micros) -> (Micros, Micros) {
    let of_rows = u128::from(last.since(now));
    let flows_back = |parts| div_ceil(parts, level.limiter.rate().units().into());
    let of_now = flows_back(level.spent);
    // What is spent when the last row expires is what is in rows then, or what is left of what is spent now.
    let most_then = if level.stands_still() { level.spent } else { level.limiter.parts(level.outstanding) };
    let latest = of_now.max(of_rows + flows_back(most_then));
    (now.plus(saturate(of_now.max(of_rows))), now.plus(saturate(latest)))
}

/// The moment when that is.
pub(crate) fn unused_at(
    level: Level,
    now: Micros,
    first: Micros,
    last: Micros,
    rows: impl Iterator<Item = Held> + Clone,
) -> Micros {
    now.plus(saturate(micros_until_unused(level, now, first, last, rows)))
}

/// Microseconds as a reply has them: in milliseconds, rounded up, at most 2^53 − 1.
pub(crate) fn millis(micros: u128) -> u64 {
    saturate(micros.div_ceil(1_000)).min(MAX_EXACT)
}
