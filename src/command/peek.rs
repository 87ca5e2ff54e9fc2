//! `RL.PEEK key [cost]`

use super::args::Args;
use super::counted::Counted;
use super::reply;
use super::store::Slot;
use crate::server::{Call, Error, Handler, Mode};

/// A look at a limiter of any kind.
pub struct Peek;

impl Handler for Peek {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let cost = Args::of(call, 3)?.cost(2)?;

        let told = {
            let mut slot = Slot::open(call, Mode::Look)?;
            let now = slot.now();
            slot.load()?.map(|stored| stored.peek(now, cost))
        };
        match told {
            Some(decision) => reply::decision(call, Counted::told(decision)),
            None => call.reply_null(),
        }
        Ok(())
    }
}
