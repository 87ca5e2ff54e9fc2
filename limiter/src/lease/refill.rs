//! How a bucket refills beside rows.

use super::crest::Expiries;
use crate::quantity::{MAX_EXACT, Micros};
use crate::token_bucket::{TokenBucket, div_ceil, div_floor, saturate};

/// What is spent of a bucket at a moment, the tokens in rows among it. As in a bucket without rows, amounts are in parts of a
/// token, and the balance is the capacity less what is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    limiter: TokenBucket,
    at: Micros,
    spent: u128,
    outstanding: u64,
}

impl Level {
    /// A level of a bucket of which so many tokens are in rows: at least those are spent.
    pub(crate) fn new(limiter: TokenBucket, at: Micros, spent: u128, outstanding: u64) -> Self {
        let mut level = Self { limiter, at, spent, outstanding };
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

    /// Whether nothing is refilled at all while so many tokens are in rows: they exceed the capacity.
    fn stands_still(&self, outstanding: u64) -> bool {
        outstanding > self.limiter.capacity().get() && !cfg!(lease_without_capacity_rule)
    }

    /// The parts that surely stay spent while so many tokens, of those that are in rows now, are in rows.
    pub(super) fn kept(&self, outstanding: u64) -> u128 {
        if self.stands_still(outstanding) {
            self.spent
        } else if cfg!(lease_without_capacity_rule) {
            0
        } else {
            self.limiter.parts(outstanding)
        }
    }

    /// The parts that could flow back until a moment.
    pub(super) fn refilled_until(&self, at: u64) -> u128 {
        self.limiter.refill(at.saturating_sub(self.at.get()))
    }

    /// Time passes while no row expires.
    pub(crate) fn advance(&mut self, to: Micros) {
        if !self.stands_still(self.outstanding) {
            self.spent = self.spent.saturating_sub(self.refilled_until(to.get())).max(self.floor());
        }
        self.at = self.at.max(to);
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

    /// Lets these rows expire, each at its time, which hold so many tokens: refill between them sees the rows of that time. Then time
    /// passes to `now`.
    pub(crate) fn pass(&mut self, expired: &Expiries<'_>, tokens: u64, now: Micros) {
        if !cfg!(lease_without_piecewise_refill) {
            let crest = expired.crest(self, 0);
            self.leave(tokens);
            // Else it is what it was: nothing was refilled.
            if !self.stands_still(self.outstanding) {
                self.spent = crest;
            }
        } else {
            self.leave(tokens);
        }
        self.advance(now);
    }

    /// The microseconds until at most `most` parts are spent, if these rows are held until they expire and nothing else
    /// happens. The rows must be all that have tokens out.
    pub(crate) fn micros_until(&self, most: u128, rows: &Expiries<'_>) -> u128 {
        if self.spent <= most {
            return 0;
        }
        div_ceil(rows.crest(self, most) - most, self.limiter.rate().units().into())
    }

    /// The microseconds until a level and its rows, of which the last expires at `last`, can't be told from a missing bucket.
    pub(crate) fn micros_until_unused(&self, last: Micros, rows: &Expiries<'_>) -> u128 {
        self.micros_until(0, rows).max(last.since(self.at).into())
    }
}

/// The moments between which that is, without a look at the rows. A row expires at `last`, and none later.
pub(crate) fn unused_within(level: Level, now: Micros, last: Micros) -> (Micros, Micros) {
    let of_rows = u128::from(last.since(now));
    let flows_back = |parts| div_ceil(parts, level.limiter.rate().units().into());
    let of_now = flows_back(level.spent);
    // What is spent when the last row expires is what is in rows then, or what is left of what is spent now.
    let most_then =
        if level.stands_still(level.outstanding) { level.spent } else { level.limiter.parts(level.outstanding) };
    let latest = of_now.max(of_rows + flows_back(most_then));
    (now.plus(saturate(of_now.max(of_rows))), now.plus(saturate(latest)))
}

/// Microseconds as a reply has them: in milliseconds, rounded up, at most 2^53 − 1.
pub(crate) fn millis(micros: u128) -> u64 {
    saturate(micros.div_ceil(1_000)).min(MAX_EXACT)
}
