//! How long a key with leases lives.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rl_limiter::layout::Stored;
use rl_limiter::lease::{Ask, Seq, State, Ttl};
use rl_limiter::{Capacity, Cost, Micros, Name, Plan as _, Rate, TokenBucket};

const BEGIN: u64 = 1_796_040_000_000_000;
const SECOND: u64 = 1_000_000;

fn bucket(capacity: u64) -> TokenBucket {
    TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::new(1, SECOND).unwrap())
}

fn micros(micros: u64) -> Micros {
    Micros::new(micros).unwrap()
}

fn read(bytes: &[u8]) -> State<'_> {
    match Stored::read(bytes) {
        Ok(Stored::Leases(leases)) => leases,
        _ => panic!("no leases"),
    }
}

/// Six tokens are in a row for a second when the capacity becomes 5, and a debit leaves 10 spent: nothing is refilled
/// until the row has expired, and only then come ten seconds.
#[test]
fn a_debt_beside_more_in_rows_than_the_capacity_is_owed_until_refill_that_stood_still_has_paid_it() {
    let ask = Ask {
        node: Name::new(b"a").unwrap(),
        seq: Seq::new(1).unwrap(),
        have: Cost::ZERO,
        want: Cost::new(6).unwrap(),
        ttl: Ttl::from_micros(SECOND).unwrap(),
        min: Cost::ZERO,
    };
    let leased = bucket(1_000).lease(None, micros(BEGIN), &ask);
    assert_eq!(leased.answer.holding, 6);
    let mut bytes = leased.next.unwrap().make(&[]);

    let debit = read(&bytes).debit(bucket(5), micros(BEGIN), Cost::new(5).unwrap());
    let plan = debit.next.unwrap();
    assert!(plan.fits());
    plan.carry_out(&mut bytes);

    let unused_at = micros(BEGIN + 11 * SECOND);
    assert_eq!(debit.decision.reset_after, 11_000);
    assert_eq!(plan.unused_at(&bytes), unused_at);
    assert_eq!(read(&bytes).unused_at(), unused_at);
    assert!(read(&bytes).is_unused(unused_at) && !read(&bytes).is_unused(micros(BEGIN + 11 * SECOND - 1)));
}
