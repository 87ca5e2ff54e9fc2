//! `RL.SLIDINGLOG key limit window [cost]`

use rl_limiter::SlidingLog;

use super::args::Args;
use super::settle;
use crate::server::{Call, Error, Handler};

/// The sliding window log.
pub struct Log;

impl Handler for Log {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = SlidingLog::new(args.limit(2)?, args.window(3)?);
        let cost = args.cost(4)?;
        settle::decide_by_log(call, limiter, cost)
    }
}
