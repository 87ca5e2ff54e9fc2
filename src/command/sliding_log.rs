//! `RL.SLIDINGLOG key limit window [cost]`

use rl_limiter::{SlidingLog, TooManyEntries};

use super::MAX_LOG_ENTRIES;
use super::algorithm::Decides as _;
use super::args::Args;
use super::reply;
use super::store::{KEY, Slot};
use super::verdict::Verdict;
use crate::server::{Call, Error, Handler, Mode, RareLine};

static LOG_IS_FULL: RareLine = RareLine::new();

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
            let entries = u32::try_from(most).unwrap_or(u32::MAX);
            let (plan, decision) = match limiter.decide(slot.load_log()?, now, cost, entries) {
                Ok(outcome) => (outcome.next, Ok(outcome.decision)),
                // Whatever the answer, what is later than now is brought to now.
                Err(TooManyEntries) => (
                    slot.load_log()?.and_then(|log| log.seen_from(now)),
                    Err(Error::formatted(format_args!("ERR the log is full: rl.max-log-entries is {most}"))),
                ),
            };
            if decision.is_err() {
                LOG_IS_FULL.warn(|| {
                    format!("a sliding window log is full, and its calls get errors: rl.max-log-entries is {most}")
                });
            }
            if let Some(plan) = plan {
                slot.carry_out(&plan)?;
            }
            decision?
        };
        reply::decision(call, Verdict::decided(call, KEY, SlidingLog::BY, cost, decision));
        Ok(())
    }
}
