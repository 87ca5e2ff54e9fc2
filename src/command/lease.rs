//! `RL.LEASE key capacity rate node seq have want ttl [MIN m]`

use rl_limiter::TokenBucket;
use rl_limiter::lease::{Ask, State};

use super::args::Args;
use super::reply;
use super::store::{Bucket, Change, Slot};
use crate::server::{Call, Error, Handler, Mode};

/// A slice of a token bucket for a node that decides alone.
pub struct Lease;

impl Handler for Lease {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 11)?;
        let limiter = TokenBucket::new(args.capacity(2)?, args.rate(3)?);
        let (node, seq) = (args.node(4)?, args.seq(5)?);
        let (have, want, ttl) = (args.have(6)?, args.want(7)?, args.lease_ttl(8)?);
        let ask = Ask { node, seq, have, want, ttl, min: args.min(9)? };

        let answer = {
            let mut slot = Slot::open(call, Mode::Change)?;
            let now = slot.now();
            let state = match slot.load_bucket()? {
                Bucket::Plain(state) => state.map(State::from),
                Bucket::Leased(leases) => Some(leases),
            };
            let leased = limiter.lease(state, now, &ask);
            if let Some(plan) = leased.next {
                slot.change(&Change::Leases(plan))?;
            }
            leased.answer
        };
        reply::lease(call, answer);
        Ok(())
    }
}
