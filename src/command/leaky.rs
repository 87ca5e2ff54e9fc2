//! `RL.LEAKY key capacity rate [cost]`

use rl_limiter::LeakyBucket;

use super::args::Args;
use super::settle;
use crate::server::{Call, Error, Handler};

/// The leaky bucket as a queue.
pub struct Leaky;

impl Handler for Leaky {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = LeakyBucket::new(args.capacity(2)?, args.rate(3)?);
        let cost = args.cost(4)?;
        settle::decide(call, limiter, cost)
    }
}
