//! The leaky bucket as a queue: what a token bucket calls in use is its level, and a call that is admitted waits until
//! what was there before it has drained.

use num_bigint::BigInt;

use super::token_bucket::{Params, Standing, TokenBucket};
use super::{Event, Exact, Model, Usage};

pub enum LeakyBucket {}

impl Model for LeakyBucket {
    type Params = Params;
    type Standing = Standing;

    fn limit(params: &Params) -> u64 {
        TokenBucket::limit(params)
    }

    fn stamp(standing: &Standing) -> Option<u64> {
        TokenBucket::stamp(standing)
    }

    fn after(standing: Standing, event: &Event<Params>) -> Standing {
        TokenBucket::after(standing, event)
    }

    fn usage(standing: &Standing, params: &Params) -> Usage {
        TokenBucket::usage(standing, params)
    }

    fn remembered_usage(standing: &Standing) -> Usage {
        TokenBucket::remembered_usage(standing)
    }

    fn delay(params: &Params, level: &Exact) -> BigInt {
        (level / &params.rate / BigInt::from(1_000)).ceil().to_integer()
    }
}
