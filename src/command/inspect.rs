//! `RL.INSPECT key`

use rl_limiter::concurrency::Place;
use rl_limiter::layout::Stored;
use rl_limiter::lease::Lease;
use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Cost, Fact, Micros};

use super::args::Args;
use super::reply;
use super::store::Slot;
use crate::server::{Call, Error, Field, Handler, Mode};

/// The most rows that are told of what has many.
const MOST_ROWS: usize = 100;

/// Tells people what is under a key.
pub struct Inspect;

impl Handler for Inspect {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        Args::of(call, 2)?;
        let fields = {
            let mut slot = Slot::open(call, Mode::Look)?;
            let now = slot.now();
            slot.load()?.map(|stored| told(&stored, now))
        };
        match fields {
            Some(fields) => call.reply_map(&fields),
            None => call.reply_null(),
        }
        Ok(())
    }
}

fn told(stored: &Stored<'_>, now: Micros) -> Vec<(&'static str, Field)> {
    let mut fields = vec![("kind", Field::Text(stored.kind().to_owned()))];
    stored.describe(now, &mut |name, fact| fields.push((name, field(fact))));
    match stored {
        Stored::State(_) => {}
        Stored::SlidingLog(log) => {
            let row = |(time, cost): (Micros, u64)| [reply::integer(time.get() / 1_000), reply::integer(cost)];
            fields.push(("newest_entries", Field::Pairs(log.newest_entries().take(MOST_ROWS).map(row).collect())));
        }
        Stored::Concurrency(holders) => {
            fields.push(("places", Field::Rows(holders.places(now).take(MOST_ROWS).map(place).collect())));
        }
        Stored::Leases(leases) => {
            fields.push(("leases", Field::Rows(leases.leases(now).take(MOST_ROWS).map(lease).collect())));
        }
    }
    let told = stored.peek(now, Cost::ONE);
    fields.push(("remaining", Field::Integer(reply::integer(told.remaining))));
    fields.push(("reset_ms", Field::Integer(reply::integer(told.reset_after))));
    fields
}

/// The holder, its units, its ttl in ms and the time in ms at which its place ends.
fn place(place: Place<'_>) -> (Vec<u8>, Vec<i64>) {
    let numbers = [place.units, place.ttl.div_ceil(1_000), place.expiry.get() / 1_000];
    (place.holder.to_vec(), numbers.map(reply::integer).to_vec())
}

/// The node, the tokens that it may have, its ttl in ms, the time in ms at which they are forfeited, and the number of its last call.
fn lease(lease: Lease<'_>) -> (Vec<u8>, Vec<i64>) {
    let row = lease.row;
    // A planted number may be more than a reply may say.
    let numbers = [row.held, row.ttl.div_ceil(1_000), row.expires.get() / 1_000, row.seq.min(MAX_EXACT)];
    (lease.node.to_vec(), numbers.map(reply::integer).to_vec())
}

fn field(fact: Fact) -> Field {
    match fact {
        // A debt, or counts that steps of the clock have added up, may be more than a reply may say.
        Fact::Units(units) => Field::Integer(reply::integer(units.min(MAX_EXACT))),
        Fact::Moment(moment) => Field::Integer(reply::integer(moment.get() / 1_000)),
        Fact::Window(window) => Field::Text(window.to_string()),
        Fact::Rate(rate) => Field::Text(rate.to_string()),
    }
}
