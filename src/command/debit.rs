//! `RL.DEBIT key capacity rate amount`

use rl_limiter::TokenBucket;

use super::args::Args;
use super::counted::Counted;
use super::reply;
use super::store::{Bucket, Change, Slot};
use crate::server::{Call, Error, Handler, Mode};

/// Takes from a token bucket whatever is there.
pub struct Debit;

impl Handler for Debit {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let limiter = TokenBucket::new(args.capacity(2)?, args.rate(3)?);
        let amount = args.amount(4)?;

        let (decision, rest) = {
            let mut slot = Slot::open(call, Mode::Change)?;
            let now = slot.now();
            let (decision, rest, change) = match slot.load_bucket()? {
                Bucket::Plain(state) => {
                    let debit = limiter.debit(state, now, amount);
                    (debit.decision, debit.rest, debit.next.map(|next| Change::Store(next.into())))
                }
                Bucket::Leased(leases) => {
                    let debit = leases.debit(limiter, now, amount);
                    (debit.decision, debit.rest, debit.next.map(Change::Leases))
                }
            };
            if let Some(change) = change {
                slot.change(&change)?;
            }
            (decision, rest)
        };
        reply::decision_and(call, Counted::told(decision), rest);
        Ok(())
    }
}
