//! `RL.DEBIT key capacity rate amount`

use rl_limiter::TokenBucket;

use super::args::Args;
use super::reply;
use super::store::{Change, Slot};
use crate::server::{Call, Error, Handler, Mode};

/// Takes from a token bucket whatever is there.
pub struct Debit;

impl Handler for Debit {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = TokenBucket::new(args.capacity(2)?, args.rate(3)?);
        let amount = args.amount(4)?;

        let debit = {
            let mut slot = Slot::open(call, Mode::Change)?;
            let debit = limiter.debit(slot.load_kind()?, slot.now(), amount);
            if let Some(next) = debit.next {
                slot.change(&Change::Store(next.into()))?;
            }
            debit
        };
        reply::decision_and(call, debit.decision, debit.rest);
        Ok(())
    }
}
