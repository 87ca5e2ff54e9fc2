//! `RL.SLIDING key limit window [cost]`

use rl_limiter::SlidingWindow;

use super::args::Args;
use super::settle;
use crate::server::{Call, Error, Handler};

/// The sliding window counter.
pub struct Sliding;

impl Handler for Sliding {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = SlidingWindow::new(args.limit(2)?, args.window(3)?);
        let cost = args.cost(4)?;
        settle::decide(call, limiter, cost)
    }
}
