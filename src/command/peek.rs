//! `RL.PEEK key [cost]`

use super::args::Args;
use super::{reply, store};
use crate::server::{Call, Error, Handler};

/// A look at a limiter of any kind.
pub struct Peek;

impl Handler for Peek {
    fn run(call: &Call<'_>) -> Result<(), Error> {
        let cost = Args::of(call, 3)?.cost(2)?;
        match store::peek(call, cost)? {
            Some(decision) => reply::decision(call, decision),
            None => call.reply_null(),
        }
        Ok(())
    }
}
