//! The reply that all decisions share.

use rl_limiter::{Decision, RetryAfter};

use crate::server::Call;

/// Replies with `allowed`, `limit`, `remaining`, `retry_after_ms` (−1: never) and `reset_ms`.
pub fn decision(call: &Call<'_>, decision: Decision) {
    let retry_after = match decision.retry_after {
        RetryAfter::Millis(millis) => integer(millis),
        RetryAfter::Never => -1,
    };
    call.reply_integers(&[
        i64::from(decision.allowed),
        integer(decision.limit),
        integer(decision.remaining),
        retry_after,
        integer(decision.reset_after),
    ]);
}

/// No number of a decision exceeds 2^53 − 1.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
