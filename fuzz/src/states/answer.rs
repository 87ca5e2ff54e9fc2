//! What holds for every answer, whatever was stored.

use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Decision, RetryAfter};

/// Every number is one that a reply may hold, and they fit each other.
pub fn check(decision: Decision, asked: u64) {
    let Decision { allowed, limit, remaining, retry_after, reset_after } = decision;
    assert!(remaining <= limit && limit <= MAX_EXACT && reset_after <= MAX_EXACT, "{decision:?}");
    match retry_after {
        RetryAfter::Never => assert!(!allowed && asked > limit, "{decision:?} to {asked}"),
        // A call that is allowed may have to wait for its turn in a queue.
        RetryAfter::Millis(millis) => {
            assert!(millis <= MAX_EXACT && (allowed || millis > 0 && asked <= limit), "{decision:?} to {asked}");
        }
    }
}
