//! What is done to a sliding window log. Only what a call reads of it is checked by the call, so what was planted may
//! be a lie: then answers may be wrong, but keep to their bounds, and so does what is written.

use rl_limiter::sliding_log::{Plan, State};
use rl_limiter::{Cost, Micros, SlidingLog};

use super::call::Call;
use super::{answer, changed};

/// The rows that are told to people.
const MOST_ROWS: usize = 100;
/// The most bytes that a call writes into a log that stays in its place. An entry, the head, its block where the
/// format changes, and for each of two ranges of blocks that go some cells of each level of the sums.
const MOST_TOUCHED: usize = 16_384;

/// Decides a call. What it would do.
pub fn decided(limiter: SlidingLog, log: State<'_>, now: Micros, call: &Call) -> Option<Plan> {
    let cost = call.cost();
    let seen = limiter.peek(Some(log), now, cost);
    answer::check(seen, cost.get().max(1));
    log.newest_entries().take(MOST_ROWS).for_each(|(at, _)| assert!(at <= Micros::MAX));

    let Ok(outcome) = limiter.decide(Some(log), now, cost, call.entries.into()) else { return log.seen_from(now) };
    let told = outcome.decision;
    answer::check(told, cost.get().max(1));
    assert_eq!((told.allowed, told.retry_after), (seen.allowed, seen.retry_after), "{limiter:?} at {now:?}, {cost:?}");
    assert!(outcome.next.is_none() || cost > Cost::ZERO, "{limiter:?} at {now:?} takes nothing and writes");
    if told.allowed && cost.get() > 0 {
        assert_eq!(told.remaining, seen.remaining - cost.get());
        assert!(outcome.next.is_some(), "what was taken is not stored");
    }
    outcome.next
}

/// The first call, where nothing is in use any more.
pub fn begun(limiter: SlidingLog, bytes: &[u8], now: Micros, call: &Call) {
    if let Ok(outcome) = limiter.decide(None, now, call.cost(), call.entries.into()) {
        changed::over_unused(bytes, outcome.next.as_ref());
    }
}

/// Gives back. What it would do.
pub fn refunded(log: State<'_>, now: Micros, call: &Call) -> Option<Plan> {
    let plan = log.refund(now, call.cost(), call.age());
    assert!(plan.is_none() || call.cost() > Cost::ZERO, "nothing given back writes");
    plan
}

/// What is stored after a call that would do this.
pub fn left(bytes: &[u8], plan: Option<&Plan>) -> Option<Vec<u8>> {
    changed::left(bytes, plan, MOST_TOUCHED)
}
