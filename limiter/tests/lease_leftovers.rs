//! Leases that somebody wrote by hand: what they say may be a lie, and does no harm to those that calls take.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rl_limiter::layout::Stored;
use rl_limiter::lease::{Ask, Seq, Ttl};
use rl_limiter::{Capacity, Cost, Fact, Micros, Name, Plan as _, Rate, TokenBucket};

const BEGIN: u64 = 1_796_040_000_000_000;
const HOUR: u64 = 3_600_000_000;
/// Where the rows' head is, and bytes of a row with a name of up to 8 bytes: the name, tokens, expiry, number and ttl.
const ROWS: usize = 52;
const ROW: usize = 40;

fn bucket() -> TokenBucket {
    TokenBucket::new(Capacity::new(10).unwrap(), Rate::new(1, 1_000_000).unwrap())
}

/// The bytes that a first lease at `now` makes over `left`, which is unused.
fn first_lease(node: &str, now: u64, left: &[u8]) -> Vec<u8> {
    let ask = Ask {
        node: Name::new(node.as_bytes()).unwrap(),
        seq: Seq::new(1).unwrap(),
        have: Cost::ZERO,
        want: Cost::new(5).unwrap(),
        ttl: Ttl::from_micros(1_000_000).unwrap(),
        min: Cost::ZERO,
    };
    bucket().lease(None, Micros::new(now).unwrap(), &ask).next.unwrap().make(left)
}

#[test]
fn leases_are_made_anew_over_what_is_unused() {
    let mut planted = first_lease("a", BEGIN, &[]);
    planted[ROWS + 20..ROWS + 28].copy_from_slice(&u64::MAX.to_le_bytes());
    let now = BEGIN + HOUR;
    assert!(Stored::read(&planted).unwrap().is_unused(Micros::new(now).unwrap()));
    assert_eq!(first_lease("b", now, &planted), first_lease("b", now, &[]));
}

#[test]
fn what_is_in_many_rows_is_told_within_bounds() {
    let one = first_lease("a", BEGIN, &[]);
    let row = &one[ROWS + 4..ROWS + 4 + ROW];
    let rows = 4_000_u16;
    let mut planted = one[..ROWS].to_vec();
    planted.extend(rows.to_le_bytes().into_iter().chain([1, 4]));
    for _ in 0..rows {
        planted.extend_from_slice(row);
        let at = planted.len() - 32;
        planted[at..at + 7].copy_from_slice(&((1_u64 << 53) - 1).to_le_bytes()[..7]);
    }
    let stored = Stored::read(&planted).unwrap();
    let mut outstanding = None;
    stored.describe(Micros::new(BEGIN).unwrap(), &mut |name, fact| match fact {
        Fact::Units(units) if name == "outstanding" => outstanding = Some(units),
        _ => {}
    });
    assert_eq!(outstanding, Some((1 << 53) - 1));
}
