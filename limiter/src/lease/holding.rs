//! The node's side: what a node may spend, and what it owes.
//!
//! That all nodes together stay within the bucket rests on this:
//!
//! - only the reply to the newest call counts; an older one that arrives late is dropped;
//! - the node spends what that reply gave it, less what it spent since it sent the call;
//! - what exceeds `want` stops being its own when the call is *sent*, for the server may have taken it back before any reply;
//! - it stops at 99 % of the ttl, on its monotonic clock, counted from when the call was sent: so before the server forfeits
//!   its row, even if its clock runs by 1 % too slow;
//! - its name is fresh for each process, and the numbers of its calls rise.

use std::time::Duration;

/// What one node has of one bucket. Times are those of any clock that never goes back.
#[derive(Clone, Debug, Default)]
pub struct Holding {
    left: u64,
    /// From this time on nothing is left.
    deadline: Duration,
    /// The number of the newest call.
    seq: u64,
    /// When the newest call was sent, until it is answered.
    sent: Option<Duration>,
    /// What was spent since.
    spent_since: u64,
}

/// What a node says in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The number of the call.
    pub seq: u64,
    /// What the node has not spent.
    pub have: u64,
    /// What it wants to have.
    pub want: u64,
}

impl Holding {
    /// Nothing, and no call yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tokens that may be spent at `now`.
    pub fn left(&self, now: Duration) -> u64 {
        if now < self.deadline { self.left } else { 0 }
    }

    /// Until when they may be spent.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Whether the newest call has not been answered yet.
    pub fn is_asking(&self) -> bool {
        self.sent.is_some()
    }

    /// Spends `tokens` if so many are left at `now`. Returns whether they were.
    #[must_use]
    pub fn spend(&mut self, now: Duration, tokens: u64) -> bool {
        if self.left(now) < tokens {
            return false;
        }
        self.left -= tokens;
        self.spent_since = self.spent_since.saturating_add(tokens);
        true
    }

    /// The call to send at `now` for having `want`. The answer to any earlier one no longer counts.
    pub fn ask(&mut self, now: Duration, want: u64) -> Statement {
        let have = self.left(now);
        self.left = have.min(want);
        self.seq += 1;
        self.sent = Some(now);
        self.spent_since = 0;
        Statement { seq: self.seq, have, want }
    }

    /// Hears the first two fields of the answer to call `seq` that matter here: what the node holds, and for how many
    /// milliseconds. Returns whether it counts: only the first answer to the newest call does.
    pub fn hear(&mut self, seq: u64, holding: u64, ttl: u64) -> bool {
        let Some(sent) = self.sent.filter(|_| seq == self.seq) else { return false };
        self.sent = None;
        self.left = holding.saturating_sub(self.spent_since);
        self.deadline = sent + Duration::from_micros(ttl.saturating_mul(990));
        true
    }
}
