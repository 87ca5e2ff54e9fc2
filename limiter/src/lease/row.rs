//! What is kept of a node.

use super::ask::Ttl;
use crate::quantity::{MAX_EXACT, Micros};
use crate::rows;

/// The most nodes that one bucket has rows for.
pub const MAX_ROWS: usize = 1_024;

/// Numbers of a row: tokens and in the highest of 56 bits whether the node was put off, expiry, number of the call, ttl.
pub(crate) const NUMBERS: usize = 4;
const PUT_OFF: u64 = 1 << 55;

/// What is kept of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The tokens that the node may have.
    pub held: u64,
    /// The microseconds from the node's last accepted call to `expires`.
    pub ttl: u64,
    /// From this moment on the row is forfeited.
    pub expires: Micros,
    /// The number of that call.
    pub seq: u64,
    /// Whether that call was put off until more tokens are there.
    pub put_off: bool,
}

impl Row {
    /// A row as a call sees it that finds the bucket's stamp at `stamp`, or sets it to that because the clock went back.
    pub(crate) fn seen(row: rows::Row<'_, NUMBERS>, stamp: Stamp) -> Self {
        let [held, _, seq, ttl] = row.numbers();
        let Held { until, tokens } = Held::seen(row, stamp);
        let expires = Micros::new(until).unwrap_or(Micros::MAX);
        Self { held: tokens, ttl: ttl.min(Ttl::MAX), expires, seq, put_off: held & PUT_OFF != 0 }
    }

    pub(crate) fn numbers(&self) -> [u64; NUMBERS] {
        [self.held | if self.put_off { PUT_OFF } else { 0 }, self.expires.get(), self.seq, self.ttl]
    }
}

/// From when rows are seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    at: u64,
    /// The most microseconds that a row lasts from then.
    longest: u64,
}

impl Stamp {
    pub(crate) fn new(at: Micros) -> Self {
        Self { at: at.get(), longest: Ttl::MAX.min(Micros::MAX.since(at)) }
    }
}

/// Tokens of one row, and when they are forfeited, in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) until: u64,
    pub(crate) tokens: u64,
}

impl Held {
    pub(crate) const NONE: Self = Self { until: 0, tokens: 0 };

    /// Of a row that is seen from a stamp: it expires no later than its ttl from there. No row is newer than the stamp, so else this is when
    /// it was to expire. Numbers that no call can have written are taken as the nearest.
    pub(crate) fn seen(row: rows::Row<'_, NUMBERS>, stamp: Stamp) -> Self {
        let [held, expires, _, ttl] = row.numbers();
        // A moment: it can't overflow.
        let latest = stamp.at.wrapping_add(ttl.min(stamp.longest));
        Self { until: expires.min(latest), tokens: (held & !PUT_OFF).min(MAX_EXACT) }
    }

    /// Whether the row from which it was read says that it expires later.
    pub(crate) fn is_moved(&self, row: rows::Row<'_, NUMBERS>) -> bool {
        let [_, expires, ..] = row.numbers();
        expires != self.until
    }
}
