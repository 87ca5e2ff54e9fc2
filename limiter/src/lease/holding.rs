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

    /// Takes back a spend of `tokens` that was made, and turned out not to be needed, while call `seq` was the newest (0: before the
    /// first). Returns whether it could: what was spent before the newest call was sent is gone from what the node holds.
    #[must_use]
    pub fn restore(&mut self, now: Duration, seq: u64, tokens: u64) -> bool {
        if seq != self.seq || self.spent_since < tokens || now >= self.deadline {
            return false;
        }
        self.left = self.left.saturating_add(tokens);
        self.spent_since -= tokens;
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

#[cfg(test)]
mod tests {
    use super::Holding;
    use std::time::Duration;

    const TTL: u64 = 1_000;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Holds so many tokens by call 1, which was sent at 0.
    fn holding(tokens: u64) -> Holding {
        let mut holding = Holding::new();
        let seq = holding.ask(at(0), tokens).seq;
        assert!(holding.hear(seq, tokens, TTL));
        holding
    }

    #[test]
    fn what_was_spent_since_the_newest_call_can_be_taken_back() {
        let mut holding = holding(10);
        assert!(holding.spend(at(1), 4));
        assert!(holding.restore(at(2), 1, 3));
        assert_eq!(holding.left(at(2)), 9);
        assert!(!holding.restore(at(2), 1, 2), "1 is spent");
        assert!(holding.restore(at(2), 1, 1));
        assert_eq!(holding.left(at(2)), 10);
    }

    #[test]
    fn what_was_spent_before_the_newest_call_or_is_past_its_time_can_not() {
        let mut holding = holding(10);
        assert!(holding.spend(at(1), 4));
        assert!(!holding.restore(at(990), 1, 4), "what is held is no longer its own");
        let newest = holding.ask(at(2), 10);
        assert_eq!(newest.have, 6);
        assert!(holding.spend(at(3), 4));
        assert!(!holding.restore(at(4), 1, 4), "the server was told that it is spent");
        assert!(holding.restore(at(4), 2, 4));
        assert!(holding.hear(2, 10, TTL));
        assert_eq!(holding.left(at(5)), 10);
    }
}
