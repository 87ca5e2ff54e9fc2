//! The reply that all decisions share.

use rl_limiter::lease::Answer;
use rl_limiter::{Decision, RetryAfter};

use crate::server::Call;

/// Replies with `allowed`, `limit`, `remaining`, `retry_after_ms` (−1: never) and `reset_ms`.
pub fn decision(call: &Call<'_>, decision: Decision) {
    call.reply_integers(&integers(decision));
}

/// The same, and one more number.
pub fn decision_and(call: &Call<'_>, decision: Decision, number: u64) {
    let [allowed, limit, remaining, retry_after, reset] = integers(decision);
    call.reply_integers(&[allowed, limit, remaining, retry_after, reset, integer(number)]);
}

/// Replies with `holding`, `free`, `outstanding`, `retry_after_ms` (−1: never), `ttl_ms` and `nodes`.
pub fn lease(call: &Call<'_>, answer: Answer) {
    let Answer { holding, free, outstanding, retry_after, ttl, nodes } = answer;
    let [holding, free, outstanding, ttl, nodes] = [holding, free, outstanding, ttl, nodes].map(integer);
    call.reply_integers(&[holding, free, outstanding, wait(retry_after), ttl, nodes]);
}

fn integers(decision: Decision) -> [i64; 5] {
    [
        i64::from(decision.allowed),
        integer(decision.limit),
        integer(decision.remaining),
        wait(decision.retry_after),
        integer(decision.reset_after),
    ]
}

fn wait(retry_after: RetryAfter) -> i64 {
    match retry_after {
        RetryAfter::Millis(millis) => integer(millis),
        RetryAfter::Never => -1,
    }
}

/// No number of a decision exceeds 2^53 − 1.
pub fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
