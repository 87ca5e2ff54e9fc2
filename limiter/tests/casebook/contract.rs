//! What this project decided, where a case leaves a choice or is overruled.
//!
//! Steps are counted from 1. A chosen answer must be among those that the case accepts; one that overrules the case
//! stands in its place. `docs/commands.md` says all this in rules; here it is in numbers.

use super::case::{Case, Kind, Words};
use super::expectation::{Reply, check, check_bounds, is_choice, read};

/// Holds the replies to a step of a case against what the case expects of it and against what was decided. `meter` is
/// what stands for the casebook's meter.
pub fn judge(case: &Case, number: usize, meter: Kind, expected: &Words, replies: &[Reply]) -> Result<(), String> {
    let step = &case.steps[number - 1];
    let is_meant = |&&(id, at, _): &&Row| id == case.id && at == number;
    let chosen = CHOSEN.iter().find(is_meant);
    let overruled = OVERRULED.iter().find(is_meant);
    let delayed = DELAYS.iter().find(is_meant).filter(|_| meter == Kind::LeakyBucket);
    if is_choice(expected) && chosen.or(overruled).is_none() {
        return Err("leaves a choice, and none is made".to_owned());
    }

    let queues = step.call.as_ref().is_some_and(|call| call.request(meter).kind == Kind::LeakyBucket);
    for reply in replies {
        check_bounds(reply, queues)?;
        if let (Reply::Error(text), true) = (reply, expected.is_empty()) {
            return Err(format!("nothing is expected of it, but it failed: {text}"));
        }
    }
    if overruled.is_none() {
        check(expected, replies)?;
    }
    for (_, _, notation) in [chosen, overruled, delayed].into_iter().flatten() {
        check(&read(notation), replies)?;
    }
    Ok(())
}

/// Rows that are about no step.
pub fn misplaced(cases: &[Case]) -> impl Iterator<Item = &'static Row> {
    let is_there =
        |&&(id, at, _): &&Row| cases.iter().any(|case| case.id == id && (1..=case.steps.len()).contains(&at));
    [CHOSEN, OVERRULED, DELAYS].into_iter().flatten().filter(move |row| !is_there(row))
}

/// Case, step and expectation.
pub type Row = (&'static str, usize, &'static str);

/// One of the answers that the case accepts, or more than it asks for.
const CHOSEN: &[Row] = &[
    // The key goes when it is unused, or at most a quarter of that time or a second later.
    ("RC-003", 3, "pttl 120 to 1120"),
    // More than the limit is no error: it is denied, for ever.
    ("RC-013", 1, "DENY, rem 6, retry never, reset 0"),
    // Cost 0 is answered as cost 1 would be.
    ("RC-025", 2, "DENY, rem 0, retry 1000, reset 2000"),
    ("RC-025", 3, "DENY, rem 0, retry 500, reset 1500"),
    ("RC-025", 5, "ALLOW, rem 1, retry 0, reset 1000"),
    ("RC-059", 2, "pttl 60000 to 75000"),
    ("RC-082", 2, "DENY, rem 5, retry never, reset 60000"),
    ("RC-085", 4, "DENY, rem 0, retry never, reset 100000"),
    ("RC-085", 5, "pttl 100000 to 125000"),
    // Nothing is minted by a negative cost: a cost is digits.
    ("RC-088", 2, "ERROR"),
    ("RC-088", 3, "passed 7"),
    ("RC-090", 1, "DENY, rem 2, retry never, reset 0"),
    // Above 2^53 - 1.
    ("RC-091", 1, "ERROR"),
    // Units are whole.
    ("RC-094", 2, "ERROR"),
    ("RC-094", 3, "ERROR"),
    // A lower capacity cuts what is used to itself; what is below stays used.
    ("RC-106", 2, "ALLOW, limit 10, rem 8"),
    ("RC-106", 3, "passed 8"),
    ("RC-106", 4, "DENY, rem 0, retry 6000"),
    // The count moves to the new window that holds the last call, and that has passed.
    ("RC-109", 2, "ALLOW, rem 4, reset 10000"),
    ("RC-109", 3, "ALLOW, rem 4, reset 10000"),
    // A rate is above 0.
    ("RC-112", 1, "ERROR"),
    ("RC-115", 1, "ERROR"),
    ("RC-117", 4, "DENY, rem 0, retry never"),
    // When the clock goes back what is used stays used, as if it had been used now.
    ("RC-118", 2, "ALLOW, rem 6, reset 400"),
    ("RC-118", 3, "ALLOW, rem 9, reset 100"),
    ("RC-119", 2, "DENY, rem 0, retry 100, reset 1000"),
    ("RC-119", 3, "ALLOW, rem 9, reset 100"),
    ("RC-120", 3, "ALLOW, rem 7, reset 300"),
    ("RC-122", 3, "DENY, rem 0, retry 100, reset 1000"),
    ("RC-122", 4, "ALLOW, rem 9, reset 100"),
    // A window ends at 36500 days.
    ("RC-136", 1, "ERROR"),
    ("RC-136", 2, "ERROR"),
    ("RC-137", 1, "ALLOW, rem 200000000, reset 86400000"),
    ("RC-137", 2, "ALLOW, rem 199999999, reset 172800000"),
    ("RC-139", 1, "ERROR"),
    ("RC-139", 2, "ERROR"),
    ("RC-140", 1, "ERROR"),
    ("RC-140", 2, "ERROR"),
    // The empty key is a key.
    ("RC-153", 1, "ALLOW, rem 0"),
    ("RC-153", 2, "DENY, rem 0, retry 60000"),
    ("RC-158", 2, "ERROR WRONGTYPE"),
    ("RC-158", 3, "ERROR WRONGTYPE"),
    ("RC-158", 4, "ERROR WRONGTYPE"),
    // Less what the nodes took, which live by the real clock.
    ("RC-178", 5, "pttl 210000 to 300000"),
    // When memory is full, limiters that exist go on deciding.
    ("RC-185", 4, "ALLOW, rem 3"),
    ("RC-185", 7, "ALLOW, rem 2"),
];

/// The case expects something else.
const OVERRULED: &[Row] = &[
    // 600.001 ms are whole microseconds, so they are a window.
    ("RC-149", 1, "ALLOW, limit 10, rem 9"),
    ("RC-149", 3, "reply 1"),
    // GCRA is a token bucket, so the two share a key: both calls take from it.
    ("RC-158", 5, "ALLOW, rem 3"),
    ("RC-158", 6, "ALLOW, rem 2"),
    // States are strings and any string restores; what is no state is refused when it is asked to decide.
    ("RC-173", 1, "ERROR WRONGTYPE"),
    // No deny-oom: limiters that exist go on deciding when memory is full.
    ("RC-177", 2, "has write fast, lacks denyoom"),
    // A release is told how many units it gave back, not how many are free.
    ("RC-195", 3, "reply 1"),
    ("RC-195", 4, "reply 0"),
    ("RC-195", 5, "reply 0"),
    ("RC-197", 4, "reply 1"),
    ("RC-199", 5, "reply 1"),
    ("RC-199", 6, "reply 1"),
    ("RC-199", 8, "reply 1"),
    ("RC-203", 4, "reply 0"),
];

/// What a queue adds to a meter: how long a call that is admitted waits for its turn, which is the level before it over
/// the rate.
const DELAYS: &[Row] = &[
    ("RC-046", 1, "delay 0"),
    ("RC-046", 2, "delay 3500"),
    ("RC-048", 1, "delay 0"),
    ("RC-048", 4, "delay 0"),
    ("RC-066", 4, "delay 54000"),
    ("RC-116", 11, "delay 0"),
    ("RC-116", 13, "delay 0"),
];
