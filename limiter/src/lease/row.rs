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
    /// A row as a call sees it that finds the bucket's stamp at `stamp`, or sets it to that because the clock went back: it
    /// expires no later than its ttl from there. No row is newer than the stamp, so else this is when it was to expire.
    /// Numbers that no call can have written are taken as the nearest.
    pub(crate) fn seen(row: rows::Row<'_, NUMBERS>, stamp: Micros) -> Self {
        let [held, expires, seq, ttl] = row.numbers();
        let ttl = ttl.min(Ttl::MAX);
        let latest = stamp.plus(ttl);
        Self {
            held: (held & !PUT_OFF).min(MAX_EXACT),
            ttl,
            expires: Micros::new(expires).map_or(latest, |expires| expires.min(latest)),
            seq,
            put_off: held & PUT_OFF != 0,
        }
    }

    /// Whether it is seen to expire sooner than the row from which it was read says.
    pub(crate) fn is_moved(&self, row: rows::Row<'_, NUMBERS>) -> bool {
        let [_, expires, ..] = row.numbers();
        expires > self.expires.get()
    }

    pub(crate) fn numbers(&self) -> [u64; NUMBERS] {
        [self.held | if self.put_off { PUT_OFF } else { 0 }, self.expires.get(), self.seq, self.ttl]
    }
}
