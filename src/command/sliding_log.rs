//! `RL.SLIDINGLOG key limit window [cost]`

use rl_limiter::SlidingLog;

use super::MAX_LOG_ENTRIES;
use super::args::Args;
use super::reply;
use super::store::Slot;
use crate::server::{Call, Error, Handler, Mode};

/// The sliding window log.
pub struct Log;

impl Handler for Log {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = SlidingLog::new(args.limit(2)?, args.window(3)?);
        let cost = args.cost(4)?;

        let decision = {
            let mut slot = Slot::open(call, Mode::Change)?;
            let (now, most) = (slot.now(), MAX_LOG_ENTRIES.get());
            let outcome = limiter
                .decide(slot.load_log()?, now, cost, u32::try_from(most).unwrap_or(u32::MAX))
                .map_err(|_| Error::formatted(format_args!("ERR the log is full: rl.max-log-entries is {most}")))?;
            if let Some(plan) = outcome.next {
                slot.carry_out(&plan)?;
            }
            outcome.decision
        };
        reply::decision(call, decision);
        Ok(())
    }
}
