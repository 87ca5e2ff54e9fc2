//! Who decides when Redis can't be asked.

use std::num::NonZeroU32;

use rl_limiter::{Age, Cost, Decision, Micros};

use crate::memory::Memory;
use crate::rule::Algorithm;

/// What decides a check that Redis could not be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outage {
    /// All is allowed: for what is cheap to serve. The limit is gone.
    Open,
    /// Nothing is allowed: for logins, messages that cost money, other people's paid services.
    Closed,
    /// Each server decides in its own memory by its part of the limit: capacity and rate divided by the number of servers, which Redis told
    /// last (see [`Builder::fleet`](crate::Builder::fleet)), so that the sum over the fleet stays near the limit.
    ///
    /// A part is rounded down, and at least 1: with more nodes than the limit has units the sum is the number of nodes. If the
    /// number of nodes is wrong, the sum is off by as much: 8 servers that believe to be 4 admit twice the limit. What was used is kept
    /// between outages, so a Redis that comes and goes hands out no fresh parts.
    LocalShare,
}

/// This server's part of each limit, and what was used of it.
pub(crate) struct LocalShare(Memory);

impl LocalShare {
    /// For about `most` keys.
    pub fn new(most: usize) -> Self {
        Self(Memory::new(most))
    }

    /// Decides as one of so many nodes. `None` where this can't: what is kept under the key is of another algorithm, or a full log.
    pub fn decide(
        &self,
        algorithm: Algorithm,
        nodes: NonZeroU32,
        key: &str,
        cost: Cost,
        now: Micros,
    ) -> Option<Decision> {
        self.0.decide(algorithm.share(nodes), key, cost, now).ok()
    }

    /// Counts as used what is spent elsewhere: tokens of a bucket that were leased.
    pub fn debit(&self, algorithm: Algorithm, nodes: NonZeroU32, key: &str, amount: Cost, now: Micros) {
        if let Algorithm::TokenBucket(bucket) = algorithm.share(nodes) {
            // What is kept under the key is of another algorithm, and can't decide either.
            let _ = self.0.debit(bucket, key, amount, now);
        }
    }

    /// Gives back what was taken of it. What can't take it back errs to the safe side.
    pub fn give_back(&self, key: &str, amount: Cost, age: Option<Age>, now: Micros) {
        let _ = self.0.refund(key, amount, age, now);
    }
}
