//! The leaky bucket: parameters and bounds are those of the token bucket that admits the same calls.

use num_bigint::BigInt;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_limiter::{Capacity, Limiter, Micros, Rate, leaky_bucket};

use super::subject::{Small, Stored};
use super::{Algorithm, Taken};
use crate::model::leaky_bucket::LeakyBucket;
use crate::model::token_bucket::{Params, TokenBucket};

impl Small for LeakyBucket {
    type Params = Params;
    type Limiter = rl_limiter::LeakyBucket;
    type State = leaky_bucket::State;

    fn limiter(params: &Params) -> rl_limiter::LeakyBucket {
        let [units, micros] = [params.rate.numer(), params.rate.denom()].map(|term| u64::try_from(term).unwrap());
        rl_limiter::LeakyBucket::new(Capacity::new(params.capacity).unwrap(), Rate::new(units, micros).unwrap())
    }

    /// By what a denied call does after the clock went back, which is all that the crate lets a caller do to the time alone.
    fn restamped(state: leaky_bucket::State, at: Micros) -> Option<leaky_bucket::State> {
        let never = rl_limiter::LeakyBucket::new(Capacity::new(0)?, Rate::new(1, 1)?);
        never.decide(Some(state), at, Capacity::ONE).next.or(Some(state))
    }

    fn owing(_limiter: rl_limiter::LeakyBucket, _at: Micros, _owed: u64) -> Option<leaky_bucket::State> {
        None
    }
}

impl Algorithm for LeakyBucket {
    type Model = Self;
    type Subject = Stored<Self>;

    fn any_params() -> BoxedStrategy<Params> {
        TokenBucket::any_params()
    }

    fn next_edge(_params: &Params, _at: u64) -> Option<u64> {
        None
    }

    fn longest_wait(params: &Params) -> BigInt {
        TokenBucket::longest_wait(params)
    }

    fn within_bounds(params: &Params, taken: &[Taken], stepped: bool) -> Result<(), TestCaseError> {
        TokenBucket::within_bounds(params, taken, stepped)
    }

    fn with_limit(params: &Params, limit: u64) -> Params {
        TokenBucket::with_limit(params, limit)
    }
}
