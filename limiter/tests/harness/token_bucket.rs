//! The token bucket: its parameters, and the bound for every interval.

use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_limiter::{Capacity, LimiterState, Micros, Rate, token_bucket};

use super::subject::{Small, Stored};
use super::{Algorithm, Taken};
use crate::model::token_bucket::{Params, TokenBucket};
use crate::model::{Exact, whole};

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const DAY: u64 = 86_400 * SECOND;

/// The largest term of a rate.
const MOST_TERM: u64 = i64::MAX.unsigned_abs();

impl Small for TokenBucket {
    type Params = Params;
    type Limiter = rl_limiter::TokenBucket;
    type State = token_bucket::State;

    fn limiter(params: &Params) -> rl_limiter::TokenBucket {
        let [units, micros] = [params.rate.numer(), params.rate.denom()].map(|term| u64::try_from(term).unwrap());
        rl_limiter::TokenBucket::new(Capacity::new(params.capacity).unwrap(), Rate::new(units, micros).unwrap())
    }

    fn restamped(state: token_bucket::State, at: Micros) -> Option<token_bucket::State> {
        token_bucket::State::new(state.limiter(), at, state.spent())
    }

    fn owing(limiter: rl_limiter::TokenBucket, at: Micros, owed: u64) -> Option<token_bucket::State> {
        let parts = u128::from(owed) * u128::from(limiter.rate().micros());
        token_bucket::State::new(limiter, at, parts)
    }
}

impl Algorithm for TokenBucket {
    type Model = Self;
    type Subject = Stored<Self>;

    const MOST_IN_USE: u64 = 2;

    fn any_params() -> BoxedStrategy<Params> {
        (super::scenarios::limit(), rate()).prop_map(|(capacity, rate)| Params { capacity, rate }).boxed()
    }

    fn next_edge(_params: &Params, _at: u64) -> Option<u64> {
        None
    }

    fn longest_wait(params: &Params) -> BigInt {
        (whole(params.capacity) / &params.rate / BigInt::from(1_000)).ceil().to_integer()
    }

    /// A step back costs at most what the time that is lived through twice refills, so `rate × time` counts all time that
    /// the clock went ahead.
    fn within_bounds(params: &Params, taken: &[Taken], _stepped: bool) -> Result<(), TestCaseError> {
        for (index, first) in taken.iter().enumerate() {
            let mut sum = whole(0);
            for last in &taken[index..] {
                sum += whole(last.cost);
                let refilled = &params.rate * BigInt::from(last.ahead - first.ahead);
                let allowance = whole(params.capacity) + refilled;
                prop_assert!(sum <= allowance, "{sum} units from {first:?} to {last:?}, {allowance} allowed");
            }
        }
        Ok(())
    }

    fn with_limit(params: &Params, capacity: u64) -> Params {
        Params { capacity, ..params.clone() }
    }
}

/// Units per microsecond.
fn rate() -> impl Strategy<Value = Exact> {
    let everyday = prop::sample::select(vec![
        (1, SECOND),
        (3, SECOND),
        (10, SECOND),
        (8_000, SECOND),
        (3_000_000, SECOND),
        (2_000_000_000, SECOND),
        (7, 3 * SECOND),
        (1, 2 * SECOND),
        (100, 60 * SECOND),
        (5, 3_600 * SECOND),
        (1_000, DAY),
        (1_000_000_000, DAY),
        (1, 36_500 * DAY),
        (1, MILLISECOND),
    ]);
    let many_digits = (1..1_000_000_000_000_000_u64, 0..=12_u32, prop::sample::select(vec![SECOND, 60 * SECOND]))
        .prop_filter_map("the denominator is too large", |(number, places, per)| {
            term(number, 10_u64.pow(places).checked_mul(per)?)
        });
    let any_terms =
        (1..=MOST_TERM, 1..=MOST_TERM).prop_filter_map("out of range", |(units, micros)| term(units, micros));
    let large = MOST_TERM - 1_000..=MOST_TERM;
    let large_denominator =
        (1..1_000_u64, large.clone()).prop_filter_map("out of range", |(units, micros)| term(units, micros));
    let large_terms = (large.clone(), large).prop_filter_map("out of range", |(units, micros)| term(units, micros));
    prop_oneof![
        10 => everyday.prop_filter_map("out of range", |(units, micros)| term(units, micros)),
        4 => many_digits,
        2 => any_terms,
        2 => large_denominator,
        1 => large_terms,
    ]
}

/// A rate, if a limiter takes it.
fn term(units: u64, micros: u64) -> Option<Exact> {
    let rate: Exact = Ratio::new(BigInt::from(units), BigInt::from(micros));
    let fits = [rate.numer(), rate.denom()].into_iter().all(|term| *term <= BigInt::from(MOST_TERM));
    fits.then_some(rate)
}
