//! Several limits in one call, against models that compute each of them by definition: all take or none does, each
//! answers as it would alone, and the limit that is named is the one by the rule, in exact fractions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "shared with tests that need other parts")]
mod model;
mod random;
mod several_limits;

use std::cmp::Ordering;
use std::convert::Infallible;

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::collection::vec;
use proptest::prelude::*;
use rl_limiter::several::Summary;
use rl_limiter::{Cost, FixedWindow, JointVerdict, Limit, Limiter, Micros, Share, Window};

use random::check;
use several_limits::{Asked, Judged, any_limit};

#[test]
fn shares_are_compared_exactly() {
    let term = || {
        prop_oneof![
            any::<u128>(),
            any::<u64>().prop_map(u128::from),
            0..4_u128,
            (0..4_u128).prop_map(|n| u128::MAX - n)
        ]
    };
    let near = || prop_oneof![Just(None), (0..3_u128, 1..1_000_u128).prop_map(Some)];
    check(20_000, (term(), term(), term(), term(), near()), |(left, whole, other_left, other_whole, near)| {
        // Mostly they differ by much; some by little or nothing, at other terms.
        let (other_left, other_whole) = match near {
            Some((more, factor)) => {
                let cut = |term: u128| (term / 1_000).saturating_mul(factor);
                return agree([(left / 1_000, whole / 1_000), (cut(left).saturating_add(more), cut(whole))]);
            }
            None => (other_left, other_whole),
        };
        agree([(left, whole), (other_left, other_whole)])
    });
}

fn agree(terms: [(u128, u128); 2]) -> Result<(), TestCaseError> {
    let exact = |(left, whole): (u128, u128)| match whole {
        0 => BigRational::from_integer(BigInt::from(0)),
        _ => BigRational::new(left.into(), whole.into()),
    };
    let [one, other] = terms.map(|(left, whole)| Share::new(left, whole));
    let expected = exact(terms[0]).cmp(&exact(terms[1]));
    prop_assert_eq!(one.cmp(&other), expected, "{:?}", terms);
    prop_assert_eq!(other.cmp(&one), expected.reverse(), "{:?}", terms);
    prop_assert_eq!(one == other, expected == Ordering::Equal, "{:?}", terms);
    Ok(())
}

/// A call: so many microseconds after the last one, or before it if that is negative, and what it asks of each limit.
type Step = (i64, Vec<Asked>);

#[test]
fn all_take_or_none_does() {
    let gap = prop_oneof![
        3 => Just(0_i64),
        3 => 0..3_000_000_i64,
        2 => 0..100_000_000_i64,
        1 => 0..4_000_000_000_000_i64,
        1 => -100_000_000..0_i64,
    ];
    let steps = |limits: usize| vec((gap.clone(), vec(any::<Asked>(), limits)), 1..16);
    let scenario = (1..6_usize).prop_flat_map(move |limits| (vec(any_limit(), limits), steps(limits)));
    check(300, scenario, |(limits, steps)| {
        let mut limits: Vec<Box<dyn Judged>> = limits.iter().map(several_limits::Chosen::make).collect();
        let mut now = 1_800_000_000_000_000_u64;
        for step in &steps {
            now = now.saturating_add_signed(step.0);
            call(&mut limits, now, step)?;
        }
        Ok(())
    });
}

fn call(limits: &mut [Box<dyn Judged>], now: u64, (_, asked): &Step) -> Result<(), TestCaseError> {
    let costs: Vec<u64> = limits.iter().zip(asked).map(|(limit, asked)| asked.cost(limit.untaken(now, 1))).collect();
    let answers: Vec<_> = limits.iter().zip(&costs).map(|(limit, &cost)| limit.untaken(now, cost)).collect();
    let summaries: Vec<Summary> = limits.iter_mut().zip(&costs).map(|(limit, &cost)| limit.judge(now, cost)).collect();
    let verdict = JointVerdict::of(summaries);

    let denying: Vec<usize> = (0..limits.len()).filter(|&index| costs[index] > 0 && !answers[index].allowed).collect();
    prop_assert_eq!(verdict.allowed, denying.is_empty());
    for (limit, &cost) in limits.iter_mut().zip(&costs) {
        limit.settle(now, cost, verdict.allowed)?;
    }
    // Exact fractions, and the first of equals.
    let first = |candidates: &mut dyn Iterator<Item = usize>, before: &dyn Fn(usize, usize) -> bool| {
        candidates.reduce(|best, next| if before(next, best) { next } else { best }).unwrap()
    };
    let expected = if verdict.allowed {
        let shares: Vec<_> = limits.iter().map(|limit| limit.share(now)).collect();
        first(&mut (0..limits.len()), &|next, best| shares[next] < shares[best])
    } else {
        let wait = |index: usize| u64::try_from(answers[index].retry_after).unwrap_or(u64::MAX);
        first(&mut denying.into_iter(), &|next, best| wait(next) > wait(best))
    };
    prop_assert_eq!(verdict.index, expected, "{:?}", verdict);
    Ok(())
}

#[test]
fn the_limit_that_is_named_when_it_is_denied_is_the_one_with_the_longest_wait() {
    let now = Micros::new(1_800_000_000_000_000).unwrap();
    let full = |limit: u64, window: &[u8]| {
        let limiter = FixedWindow::new(Limit::new(limit).unwrap(), Window::parse("window", window).unwrap());
        (limiter, limiter.decide(None, now, Cost::new(limit).unwrap()).next)
    };
    let summary = |(limiter, state): (FixedWindow, Option<_>), cost: u64| {
        limiter.judge::<_, Infallible>(state, now, Cost::new(cost).unwrap(), |state| state).summary()
    };
    let (second, minute, nothing) = (full(1, b"1s"), full(1, b"1m"), full(0, b"1ms"));
    let named = |votes: &[Summary]| JointVerdict::of(votes.iter().copied());
    let of = |allowed, index| JointVerdict { allowed, index };
    assert_eq!(named(&[summary(second, 1), summary(minute, 1)]), of(false, 1));
    assert_eq!(named(&[summary(minute, 1), summary(second, 1)]), of(false, 0));
    assert_eq!(named(&[summary(minute, 1), summary(nothing, 1), summary(second, 1)]), of(false, 1), "never is longest");
    assert_eq!(named(&[summary(minute, 1), summary(minute, 1)]), of(false, 0), "the first of equals");
    assert_eq!(named(&[summary(nothing, 0), summary(second, 1)]), of(false, 1), "cost 0 never denies");
    assert_eq!(named(&[summary(second, 0), summary(nothing, 0)]), of(true, 0), "nothing remains of either");
    assert_eq!(named(&[]), of(true, 0));
}
