//! Rows that no call can have written: too many, twice the same, with more tokens than there are, for ever. Whatever they say, no
//! number of an answer is beyond what a reply may hold, the bytes stay leases, and what nobody renews ends within the longest ttl.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod sequence;

use rl_limiter::layout::{self, Stored};
use rl_limiter::lease::{Ask, Seq, State, Ttl};
use rl_limiter::{
    Age, Capacity, Cost, Decision, Fact, Limiter as _, Micros, Name, Plan, Rate, RetryAfter, TokenBucket,
};
use sequence::Random;

const NOON: u64 = 1_796_040_000_000_000;
const HOUR: u64 = 3_600_000_000;
const MOST: u64 = (1 << 53) - 1;
/// Bytes before the rows' head, and that head.
const BEFORE: usize = 52;
const HEAD: usize = 4;

/// A row: a name of up to 8 bytes, then tokens, expiry, number of the call, ttl.
type Row = (u64, [u64; 4]);

/// A bucket with these rows, all of whose numbers are taken as they are.
fn planted(limiter: TokenBucket, last: u64, spent: u128, rows: &[Row]) -> Vec<u8> {
    let ask = Ask {
        node: Name::new(b"0").unwrap(),
        seq: Seq::new(1).unwrap(),
        have: Cost::ZERO,
        want: Cost::ONE,
        ttl: Ttl::from_micros(HOUR).unwrap(),
        min: Cost::ZERO,
    };
    let mut bytes = limiter.lease(None, micros(NOON), &ask).next.unwrap().make(&[]);
    bytes[28..36].copy_from_slice(&last.to_le_bytes());
    bytes[36..52].copy_from_slice(&spent.to_le_bytes());
    bytes.truncate(BEFORE + HEAD);
    bytes[BEFORE..BEFORE + 2].copy_from_slice(&u16::try_from(rows.len()).unwrap().to_le_bytes());
    for (name, [held, expires, seq, ttl]) in rows {
        bytes.extend(name.to_le_bytes());
        bytes.extend((held & ((1 << 56) - 1) | 8 << 56).to_le_bytes());
        [expires, seq, ttl].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    }
    bytes
}

fn micros(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn bucket(capacity: u64, units: u64, micros: u64) -> TokenBucket {
    TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::new(units, micros).unwrap())
}

fn leases(bytes: &[u8]) -> Option<State<'_>> {
    match Stored::read(bytes) {
        Ok(Stored::Leases(state)) => Some(state),
        Ok(Stored::State(_)) => None,
        other => panic!("{:?}", other.err()),
    }
}

fn can_be_told(decision: Decision) {
    assert!(decision.remaining <= decision.limit && decision.limit <= MOST && decision.reset_after <= MOST);
    assert!(matches!(decision.retry_after, RetryAfter::Never | RetryAfter::Millis(0..=MOST)));
}

/// Every command at one time, each on bytes of its own. Returns what a lease leaves.
fn call_all(bytes: &[u8], limiter: TokenBucket, now: Micros, random: &mut Random) -> Vec<u8> {
    let after = |plan: Option<rl_limiter::lease::Plan>| {
        let mut bytes = bytes.to_vec();
        let Some(plan) = plan else { return bytes };
        if plan.leaves_nothing() {
            return Vec::new();
        }
        if plan.fits() {
            plan.carry_out(&mut bytes);
        } else {
            bytes = plan.make(&bytes);
        }
        let at = plan.unused_at(&bytes);
        assert!(plan.unused_within().is_none_or(|(earliest, latest)| earliest <= at && at <= latest));
        assert!(leases(&bytes).is_none_or(|state| state.unused_at() == at));
        bytes
    };
    let state = leases(bytes).unwrap();
    let amount = Cost::new(random.pick(&[1, 5, MOST])).unwrap();
    can_be_told(state.peek(now, amount));
    let outcome = state.decide(limiter, now, amount);
    can_be_told(outcome.decision);
    after(outcome.next);
    let debit = state.debit(limiter, now, amount);
    can_be_told(debit.decision);
    after(debit.next);
    let (decision, plan) = state.refund(now, amount, Some(Age::ZERO));
    can_be_told(decision);
    after(plan);
    state.describe(now, &mut |name, fact| {
        assert!(!matches!(fact, Fact::Units(units) if units > MOST && name != "used"), "{name}: {fact:?}");
    });
    let name = random.below(4).to_le_bytes();
    let ask = Ask {
        node: Name::new(&name).unwrap(),
        seq: Seq::new(1 + random.below(MOST)).unwrap(),
        have: Cost::new(random.pick(&[0, 1, MOST])).unwrap(),
        want: Cost::new(random.pick(&[0, 1, MOST])).unwrap(),
        ttl: Ttl::from_micros(random.pick(&[Ttl::MIN, Ttl::MAX])).unwrap(),
        min: Cost::new(random.pick(&[0, MOST])).unwrap(),
    };
    let leased = limiter.lease(Some(state), now, &ask);
    let answer = leased.answer;
    assert!([answer.holding, answer.free, answer.outstanding].iter().all(|&tokens| tokens <= MOST));
    assert!(matches!(answer.retry_after, RetryAfter::Never | RetryAfter::Millis(0..=MOST)));
    assert!(answer.ttl <= HOUR / 1_000);
    after(leased.next)
}

#[test]
fn rows_that_no_call_can_have_written_do_no_harm() {
    let mut random = Random(11);
    for round in 0..15 {
        let count = random.pick(&[1, 2, 7, 90, 1_024, 1_025, 2_100]) as usize;
        let count = if round == 0 { 10_000 } else { count };
        let rows: Vec<Row> = (0..count)
            .map(|_| {
                let held = random.pick(&[0, 1, 9, MOST, 1 << 55, u64::MAX]);
                let expires = match random.below(4) {
                    0 => random.pick(&[0, NOON - 1, NOON, NOON + 1, (1 << 62) - 1, 1 << 62, u64::MAX]),
                    _ => NOON + random.below(2 * HOUR),
                };
                let ttl = random.pick(&[0, 1, 10_000, HOUR, HOUR + 1, u64::MAX]);
                (random.below(3), [held, expires, random.pick(&[0, 1, MOST, u64::MAX]), ttl])
            })
            .collect();
        let limiters = [
            bucket(random.pick(&[1, 10, MOST]), 1, 1_000),
            bucket(MOST, (1 << 63) - 1, 1),
            bucket(MOST, 1, (1 << 63) - 1),
            bucket(0, 1, 1),
        ];
        let remembered = limiters[usize::try_from(random.below(3)).unwrap()];
        let full = u128::from(remembered.capacity().get()) * u128::from(remembered.rate().micros());
        let last = random.pick(&[0, NOON - HOUR, NOON, NOON + HOUR, (1 << 62) - 1]);
        let bytes = planted(remembered, last, random.pick(&[0, 1, full, 2 * full]), &rows);
        assert!(leases(&bytes).is_some(), "{count} rows");
        for limiter in limiters {
            for now in [0, NOON - HOUR, NOON, NOON + HOUR, NOON + 3 * HOUR, (1 << 62) - 1] {
                call_all(&bytes, limiter, micros(now), &mut random);
            }
        }
    }
}

#[test]
fn what_was_planted_for_ever_ends_within_the_longest_ttl() {
    let forever = [MOST, u64::MAX, u64::MAX, u64::MAX];
    let rows: Vec<Row> = (0..2_100).map(|name| (name % 50, forever)).collect();
    let limiter = bucket(1_000, 1, 1_000);
    let mut bytes = planted(limiter, NOON, 0, &rows);
    let mut now = NOON + 7;
    while now < NOON + HOUR {
        // Others go on calling: that must not keep it alive.
        let debit = leases(&bytes).unwrap().debit(limiter, micros(now), Cost::ONE);
        assert_eq!(debit.decision.remaining, 0);
        if let Some(plan) = debit.next {
            assert!(plan.fits());
            plan.carry_out(&mut bytes);
        }
        now += HOUR / 8;
    }
    let state = leases(&bytes).unwrap();
    assert_eq!(state.leases(micros(NOON + HOUR - 1)).count(), 2_100);
    assert_eq!(state.leases(micros(NOON + HOUR)).count(), 0);
    assert_eq!(state.peek(micros(NOON + 3 * HOUR), Cost::ONE).remaining, 1_000);
}

/// What a plan leaves of these bytes.
fn left(bytes: &[u8], plan: Option<&rl_limiter::lease::Plan>) -> Vec<u8> {
    let mut left = bytes.to_vec();
    match plan {
        None => {}
        Some(plan) if plan.leaves_nothing() => left.clear(),
        Some(plan) if plan.fits() => drop(plan.carry_out(&mut left)),
        Some(plan) => left = plan.make(bytes),
    }
    left
}

/// What a call of this cost is told of these bytes, be they of leases, of a bucket without any or none.
fn told(bytes: &[u8], limiter: TokenBucket, now: Micros, cost: Cost) -> Decision {
    match Some(bytes).filter(|bytes| !bytes.is_empty()).map(|bytes| Stored::read(bytes).unwrap()) {
        Some(stored) if stored.is_unused(now) => limiter.decide(None, now, cost).decision,
        Some(Stored::Leases(state)) => state.decide(limiter, now, cost).decision,
        Some(Stored::State(layout::State::TokenBucket(state))) => limiter.decide(Some(state), now, cost).decision,
        None => limiter.decide(None, now, cost).decision,
        Some(_) => panic!("no bucket"),
    }
}

/// Rows may have expired before the last call, with more in them than is spent, and the clock may have gone back: the next call
/// sees what this one was told.
#[test]
fn what_is_left_of_rows_that_had_expired_is_what_was_told() {
    let mut random = Random(12);
    for round in 0..40_000 {
        let remembered = bucket(random.pick(&[1, 10, 3_600]), random.pick(&[1, 7]), random.pick(&[1_000, 1_000_000]));
        let full = u128::from(remembered.capacity().get()) * u128::from(remembered.rate().micros());
        let rows: Vec<Row> = (0..1 + random.below(6))
            .map(|name| {
                let expires = random.pick(&[0, NOON - HOUR, NOON - 1, NOON, NOON + 1, NOON + 5_000_000]);
                (name, [random.pick(&[0, 1, 9, 40]), expires, 1, random.pick(&[0, 1, 10_000, HOUR])])
            })
            .collect();
        let last = random.pick(&[NOON - 1_000, NOON, NOON + 1_000, NOON + HOUR]);
        let bytes = planted(remembered, last, random.pick(&[0, 1, full / 3, full, 2 * full]), &rows);
        let now = micros(NOON);
        let state = leases(&bytes).unwrap();
        if state.is_unused(now) {
            continue;
        }
        let other = bucket(random.pick(&[0, 2, 10, 5_000]), random.pick(&[1, 3]), random.pick(&[1_000, 7_000]));
        let limiter = if random.one_in(3) { remembered } else { other };
        let amount = Cost::new(random.pick(&[1, 4, MOST])).unwrap();
        let context = || format!("round {round}: {amount:?} of {limiter:?}, {last} on {:?}: {rows:?}", state.bucket());

        let debit = state.debit(limiter, now, amount);
        let after = left(&bytes, debit.next.as_ref());
        assert_eq!(told(&after, limiter, now, Cost::ZERO), debit.decision, "debit, {}", context());

        let outcome = state.decide(limiter, now, amount);
        let after = left(&bytes, outcome.next.as_ref());
        if outcome.decision.allowed {
            let left = told(&after, limiter, now, Cost::ZERO);
            let both = |decision: Decision| (decision.remaining, decision.reset_after);
            assert_eq!(both(left), both(outcome.decision), "allowed, {}", context());
        } else {
            assert_eq!(told(&after, limiter, now, amount), outcome.decision, "denied, {}", context());
        }

        let (decision, plan) = state.refund(now, amount, None);
        let after = left(&bytes, plan.as_ref());
        assert_eq!(told(&after, remembered, now, Cost::ZERO), decision, "refund, {}", context());

        // A node without a row that is told to wait, or only asks whether it has one.
        let ask = Ask {
            node: Name::new(b"another").unwrap(),
            seq: Seq::new(1).unwrap(),
            have: Cost::ZERO,
            want: Cost::ZERO,
            ttl: Ttl::from_micros(HOUR).unwrap(),
            min: Cost::ZERO,
        };
        let leased = limiter.lease(Some(state), now, &ask);
        let after = left(&bytes, leased.next.as_ref());
        let looked = state.decide(limiter, now, Cost::ZERO).decision;
        assert_eq!(told(&after, limiter, now, Cost::ZERO), looked, "lease, {}", context());
    }
}
