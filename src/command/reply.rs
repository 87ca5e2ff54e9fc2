//! The reply that all decisions share.

use arrayvec::ArrayVec;
use rl_limiter::lease::Answer;
use rl_limiter::{JointVerdict, RetryAfter};

use super::counted::Counted;
use super::multi::MOST_LIMITS;
use crate::server::Call;

/// Replies with `allowed`, `limit`, `remaining`, `retry_after_ms` (−1: never) and `reset_ms`.
pub fn decision(call: &Call<'_>, counted: Counted) {
    call.reply_integers(&integers(counted));
}

/// The same, and one more number.
pub fn decision_and(call: &Call<'_>, counted: Counted, number: u64) {
    let [allowed, limit, remaining, retry_after, reset] = integers(counted);
    call.reply_integers(&[allowed, limit, remaining, retry_after, reset, integer(number)]);
}

/// Replies with `holding`, `free`, `outstanding`, `retry_after_ms` (−1: never), `ttl_ms` and `nodes`.
pub fn lease(call: &Call<'_>, answer: Answer) {
    let Answer { holding, free, outstanding, retry_after, ttl, nodes } = answer;
    let [holding, free, outstanding, ttl, nodes] = [holding, free, outstanding, ttl, nodes].map(integer);
    call.reply_integers(&[holding, free, outstanding, wait(retry_after), ttl, nodes]);
}

/// Replies to a call that asked several limits: with `allowed`, `index` and five integers for each.
pub fn several(call: &Call<'_>, joint: JointVerdict, decisions: impl Iterator<Item = Counted>) {
    let index = i64::try_from(joint.index).unwrap_or(i64::MAX);
    let each: ArrayVec<_, MOST_LIMITS> = decisions.take(MOST_LIMITS).map(integers).collect();
    call.reply_joined_integers(&[i64::from(joint.allowed), index], each.as_flattened());
}

/// The five integers.
pub fn integers(counted: Counted) -> [i64; 5] {
    let decision = counted.decision();
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
