//! `RL.TOKENBUCKET key capacity rate [cost]`

use rl_limiter::TokenBucket;

use super::args::Args;
use super::settle;
use crate::server::{Call, Error, Handler};

/// The token bucket.
pub struct Bucket;

impl Handler for Bucket {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = TokenBucket::new(args.capacity(2)?, args.rate(3)?);
        let cost = args.cost(4)?;
        settle::decide_by_bucket(call, limiter, cost)
    }
}
