//! What Redis denied a moment ago is denied without asking it again.

use rl_limiter::{Decision, Micros, RetryAfter};

use crate::table::{Passing, Table};

/// No denial is believed for longer, so that a refund, a raised limit or a deleted key shows within a second.
const LONGEST_MILLIS: u64 = 1_000;

/// Denials by key: abuse costs Redis one call a second, and those that are under way before the reply to it.
pub(crate) struct DenyCache(Table<Denial>);

/// What Redis said when it denied.
struct Denial {
    at: Micros,
    /// So much was asked; more would have been denied too.
    cost: u64,
    decision: Decision,
}

impl Passing for Denial {
    fn over_at(&self) -> Micros {
        let millis = match self.decision.retry_after {
            RetryAfter::Millis(millis) => millis.min(LONGEST_MILLIS),
            RetryAfter::Never => LONGEST_MILLIS,
        };
        Micros::new(self.at.get().saturating_add(millis * 1_000)).unwrap_or(Micros::MAX)
    }
}

impl Denial {
    /// What is left of the waits that it told.
    fn seen_at(&self, now: Micros) -> Decision {
        let passed = now.get().saturating_sub(self.at.get()) / 1_000;
        let retry_after = match self.decision.retry_after {
            RetryAfter::Millis(millis) => RetryAfter::Millis(millis.saturating_sub(passed)),
            RetryAfter::Never => RetryAfter::Never,
        };
        Decision { retry_after, reset_after: self.decision.reset_after.saturating_sub(passed), ..self.decision }
    }
}

impl DenyCache {
    /// For about so many keys.
    pub fn new(most: usize) -> Self {
        Self(Table::new(most))
    }

    /// The denial that holds for a check of `cost` now.
    pub fn find(&self, key: &str, cost: u64, now: Micros) -> Option<Decision> {
        self.0.with(key, now, |denial| {
            let holds = denial.filter(|denial| denial.cost <= cost);
            (holds.map(|denial| denial.seen_at(now)), None)
        })
    }

    /// Keeps what Redis said at `at`, if it denied.
    pub fn remember(&self, key: &str, cost: u64, decision: Decision, at: Micros) {
        if !decision.allowed {
            self.0.with(key, at, |_| ((), Some(Denial { at, cost, decision })));
        }
    }

    /// Budget came back.
    pub fn forget(&self, key: &str) {
        self.0.forget(key);
    }
}

#[cfg(test)]
mod tests {
    use super::DenyCache;
    use rl_limiter::{Decision, Micros, RetryAfter};

    fn at_millis(millis: u64) -> Micros {
        Micros::new(millis * 1_000).unwrap_or(Micros::MAX)
    }

    fn denial(retry_after: RetryAfter) -> Decision {
        Decision { allowed: false, limit: 10, remaining: 3, retry_after, reset_after: 60_000 }
    }

    fn cache_with(cost: u64, decision: Decision) -> DenyCache {
        let cache = DenyCache::new(100);
        cache.remember("key", cost, decision, at_millis(5_000));
        cache
    }

    #[test]
    fn a_denial_holds_until_the_wait_is_over() {
        let cache = cache_with(1, denial(RetryAfter::Millis(300)));
        let seen = cache.find("key", 1, at_millis(5_100)).map(|seen| (seen.retry_after, seen.reset_after));
        assert_eq!(seen, Some((RetryAfter::Millis(200), 59_900)));
        assert!(cache.find("key", 1, at_millis(5_299)).is_some());
        assert!(cache.find("key", 1, at_millis(5_300)).is_none());
    }

    #[test]
    fn none_holds_for_more_than_a_second() {
        for wait in [RetryAfter::Millis(3_600_000), RetryAfter::Never] {
            let cache = cache_with(1, denial(wait));
            assert!(cache.find("key", 1, at_millis(5_999)).is_some(), "{wait:?}");
            assert!(cache.find("key", 1, at_millis(6_000)).is_none(), "{wait:?}");
        }
    }

    #[test]
    fn less_than_what_was_denied_is_asked_for() {
        let cache = cache_with(4, denial(RetryAfter::Millis(300)));
        assert!(cache.find("key", 3, at_millis(5_100)).is_none(), "3 of the 3 remaining");
        assert!(cache.find("key", 4, at_millis(5_100)).is_some());
        assert!(cache.find("key", 5, at_millis(5_100)).is_some());
        assert!(cache.find("another", 4, at_millis(5_100)).is_none());
    }

    #[test]
    fn what_was_allowed_is_not_remembered_and_a_refund_forgets() {
        let allowed = Decision { allowed: true, ..denial(RetryAfter::Millis(700)) };
        assert!(cache_with(1, allowed).find("key", 1, at_millis(5_100)).is_none());
        let cache = cache_with(1, denial(RetryAfter::Millis(300)));
        cache.forget("key");
        assert!(cache.find("key", 1, at_millis(5_100)).is_none());
    }
}
