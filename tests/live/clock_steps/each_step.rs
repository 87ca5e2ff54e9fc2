//! Each step of the clock, on a limiter of each kind that has nothing left.

use redis::{Connection, Value};

use super::history::Witness;
use super::kind::{Kind, LIMIT};
use crate::support::{HOUR, NOON, Options, SECOND, Server, ask, decide};

const DAY: i64 = 24 * HOUR;
const BACK: [i64; 3] = [-2 * DAY, -HOUR, -SECOND];
const AHEAD: [i64; 2] = [HOUR, 365 * DAY];

/// Fails unless the key expires when the limiter is unused, or at most a quarter of that time, or a second, later.
pub fn assert_expiry_fits(redis: &mut Connection, key: &str, case: &str) {
    let reset = decide(redis, &format!("RL.PEEK {key}"))[4];
    let left: i64 = ask(redis, &format!("PTTL {key}"));
    let latest = reset + 1_000.max(reset / 4) + 1;
    assert!((reset - 1..=latest).contains(&left), "{case}: the key has {left} ms, its use {reset}");
}

/// Fails unless a look says what `cost` is then told, and writes nothing.
pub fn assert_peek_agrees(redis: &mut Connection, kind: Kind, key: &str, cost: i64, case: &str) {
    let before: Value = ask(redis, &format!("GET {key}"));
    let Some(looked) = ask::<Option<Vec<i64>>>(redis, &format!("RL.PEEK {key} {cost}")) else { return };
    let expiry = |redis: &mut Connection| ask::<i64>(redis, &format!("PEXPIRETIME {key}"));
    let expires = expiry(redis);
    assert_eq!((ask::<Value>(redis, &format!("GET {key}")), expiry(redis)), (before, expires), "{case}: a look writes");
    ask::<()>(redis, &format!("COPY {key} asked REPLACE"));
    let told = decide(redis, &kind.call("asked", cost));
    assert_eq!((looked[0], looked[1], looked[3]), (told[0], told[1], told[3]), "{case}: {looked:?} and {told:?}");
    assert_eq!(looked[2] - told[0] * cost, told[2], "{case}: {looked:?} and {told:?}");
}

/// Waits as long as the denial says; one millisecond less must not be enough.
fn sleep_it_off(witness: &mut Witness, server: &mut Server, redis: &mut Connection, denied: [i64; 5], case: &str) {
    let wait = denied[3];
    assert!((1..=witness.kind.longest_wait()).contains(&wait), "{case}: locked out for {wait} ms");
    witness.advance(server.clock(), (wait - 1) * 1_000);
    assert_eq!(witness.call(redis, "k", 1)[0], 0, "{case}: a millisecond before");
    witness.advance(server.clock(), 1_000);
    assert_eq!(witness.call(redis, "k", 1)[0], 1, "{case}: after {wait} ms");
}

/// Then all comes back by one full window or refill from then.
fn wait_for_all(witness: &mut Witness, server: &mut Server, redis: &mut Connection, case: &str) {
    witness.advance(server.clock(), witness.kind.longest_wait() * 1_000);
    assert_eq!(witness.call(redis, "k", LIMIT)[0], 1, "{case}: all of it is back");
    witness.assert_kept();
}

fn each_kind(steps: &[i64], check: impl Fn(&mut Witness, &mut Server, &mut Connection, i64, &str)) {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for kind in Kind::ALL {
        for &step in steps {
            ask::<()>(&mut redis, "FLUSHALL");
            server.clock().set(NOON);
            let mut witness = Witness::of(kind);
            witness.call(&mut redis, "k", LIMIT - 1);
            witness.advance(server.clock(), 3 * SECOND);
            assert!(witness.exhaust(&mut redis, "k").0 <= 1);
            let case = format!("{kind:?}, a step of {step} µs");
            check(&mut witness, &mut server, &mut redis, step, &case);
        }
    }
}

#[test]
fn back_nothing_is_granted_again_and_a_sleep_is_enough() {
    each_kind(&BACK, |witness, server, redis, step, case| {
        let expires: i64 = ask(redis, "PEXPIRETIME k");
        witness.advance(server.clock(), step);
        assert_eq!(ask::<i64>(redis, "PEXPIRETIME k"), expires, "{case}: nobody has called yet");
        assert_peek_agrees(redis, witness.kind, "k", 1, case);
        let (again, denied) = witness.exhaust(redis, "k");
        assert_eq!(again, 0, "{case}: what was used stays used");
        // The denied call brought the state to now, and the key's expiry with it.
        assert_expiry_fits(redis, "k", case);
        sleep_it_off(witness, server, redis, denied, case);
        assert_expiry_fits(redis, "k", case);
        wait_for_all(witness, server, redis, case);
    });
}

#[test]
fn ahead_all_is_back_and_no_more() {
    each_kind(&AHEAD, |witness, server, redis, step, case| {
        witness.advance(server.clock(), step);
        assert_eq!(ask::<Value>(redis, "RL.PEEK k"), Value::Nil, "{case}: it is unused");
        let (again, denied) = witness.exhaust(redis, "k");
        assert_eq!(again, LIMIT, "{case}");
        assert_expiry_fits(redis, "k", case);
        sleep_it_off(witness, server, redis, denied, case);
        wait_for_all(witness, server, redis, case);
    });
}

/// Only the limiters that were asked while it was ahead have been granted anything, once; a correction grants nothing.
#[test]
fn ahead_and_corrected_grants_what_the_leap_brought_and_not_again() {
    each_kind(&AHEAD, |witness, server, redis, step, case| {
        witness.advance(server.clock(), step);
        assert_eq!(witness.exhaust(redis, "k").0, LIMIT, "{case}");
        witness.advance(server.clock(), -step);
        assert_peek_agrees(redis, witness.kind, "k", 1, case);
        // Whoever is not asked again keeps the key for as long as the clock was ahead.
        let left: i64 = ask(redis, "PTTL k");
        assert!(left > step / 1_000 && left <= step / 1_000 + 2 * witness.kind.longest_wait(), "{case}: {left} ms");
        let (again, denied) = witness.exhaust(redis, "k");
        assert_eq!(again, 0, "{case}");
        assert_expiry_fits(redis, "k", case);
        sleep_it_off(witness, server, redis, denied, case);
        wait_for_all(witness, server, redis, case);
    });
}

/// The server deletes what it finds expired, whoever asks, and it does not come back with the clock.
#[test]
fn a_key_that_was_found_expired_while_the_clock_was_ahead_is_gone_after_the_correction() {
    each_kind(&AHEAD, |witness, server, redis, step, case| {
        witness.advance(server.clock(), step);
        assert_eq!(ask::<i64>(redis, "EXISTS k"), 0, "{case}");
        witness.advance(server.clock(), -step);
        assert_eq!(witness.exhaust(redis, "k").0, LIMIT, "{case}: the laxer answer is right");
        witness.assert_kept();
    });
}
