//! How a bucket refills beside rows that expire one after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::quantity::{MAX_EXACT, Micros};
use crate::token_bucket::{TokenBucket, div_ceil, div_floor, saturate};

/// Tokens of one row, and when they are forfeited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub(crate) until: Micros,
    pub(crate) tokens: u64,
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
    pub(crate) fn micros_until(mut self, most: u128, rows: &[Held]) -> u128 {
        let began = self.at;
        // Most waits end before most rows do.
        let mut rows: BinaryHeap<Reverse<Held>> = rows.iter().copied().map(Reverse).collect();
        loop {
            let next = rows.pop();
            if !self.stands_still() && self.floor() <= most {
                let refilled = div_ceil(self.spent.saturating_sub(most), self.limiter.rate().units().into());
                let reached = self.at + refilled;
                if next.is_none_or(|Reverse(held)| reached <= held.until.get().into()) {
                    return reached - began;
                }
            }
            // Without rows nothing stands still, and the floor is 0.
            let Some(Reverse(held)) = next else { return u128::MAX };
            self.advance(held.until);
            self.leave(held.tokens);
        }
    }
}

/// Microseconds as a reply has them: in milliseconds, rounded up, at most 2^53 − 1.
pub(crate) fn millis(micros: u128) -> u64 {
    saturate(micros.div_ceil(1_000)).min(MAX_EXACT)
}
