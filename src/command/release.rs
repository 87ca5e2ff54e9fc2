//! `RL.RELEASE key holder`

use super::args::Args;
use super::reply;
use super::store::{Change, Slot};
use crate::server::{Call, Error, Handler, Mode};

/// Gives back a holder's place.
pub struct Release;

impl Handler for Release {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let holder = Args::of(call, 3)?.holder(2)?;

        let units = {
            let mut slot = Slot::open(call, Mode::Change)?;
            let now = slot.now();
            let (units, plan) = slot.load_holders()?.map_or((0, None), |holders| holders.release(now, holder));
            if let Some(plan) = plan {
                slot.change(&Change::Holders(plan))?;
            }
            units
        };
        call.reply_integer(reply::integer(units));
        Ok(())
    }
}
