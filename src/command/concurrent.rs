//! `RL.CONCURRENT key limit ttl holder [cost] [XX]`

use rl_limiter::concurrency::Request;
use rl_limiter::{Concurrency, Cost, TooManyHolders};

use super::MAX_HOLDERS;
use super::algorithm::Decides as _;
use super::args::Args;
use super::counted::Counted;
use super::reply;
use super::store::{Change, KEY, Slot};
use crate::server::{Call, Error, Handler, Mode, RareLine};

static TOO_MANY_HOLDERS: RareLine = RareLine::new();

/// The concurrency limit.
pub struct Concurrent;

impl Handler for Concurrent {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 7)?;
        let limiter = Concurrency::new(args.limit(2)?, args.ttl(3)?);
        let holder = args.holder(4)?;
        let (cost, renew_only) = if args.is_last_and_xx(5) { (Cost::ONE, true) } else { (args.cost(5)?, args.xx(6)?) };
        let request = Request { holder, cost, renew_only };

        let decision = {
            let mut slot = Slot::open(call, Mode::Change)?;
            let (now, most) = (slot.now(), MAX_HOLDERS.get());
            let holders = slot.load_holders()?;
            let (plan, decision) = match limiter.decide(holders, now, request, usize::try_from(most).unwrap_or(0)) {
                Ok(outcome) => (outcome.next, Ok(outcome.decision)),
                // Whatever the answer, no place is held for longer than its ttl from now.
                Err(TooManyHolders) => {
                    (holders.and_then(|holders| holders.seen_from(now)), Err(too_many_holders(most)))
                }
            };
            if let Some(plan) = plan {
                slot.change(&Change::Holders(plan))?;
            }
            decision?
        };
        reply::decision(call, Counted::decided(call, KEY, Concurrency::BY, cost, decision));
        Ok(())
    }
}

fn too_many_holders(most: i64) -> Error {
    TOO_MANY_HOLDERS.warn(|| {
        format!("a concurrency limit has too many holders, and new ones get errors: rl.max-holders is {most}")
    });
    Error::formatted(format_args!("ERR there are too many holders: rl.max-holders is {most}"))
}
