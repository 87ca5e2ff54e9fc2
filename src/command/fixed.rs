//! `RL.FIXED key limit window [cost]`

use rl_limiter::FixedWindow;

use super::args::Args;
use super::settle;
use crate::server::{Call, Error, Handler};

/// The fixed window counter.
pub struct Fixed;

impl Handler for Fixed {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = FixedWindow::new(args.limit(2)?, args.window(3)?);
        let cost = args.cost(4)?;
        settle::decide(call, limiter, cost)
    }
}
