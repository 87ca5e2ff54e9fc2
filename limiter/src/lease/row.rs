//! What is kept of a node, and a table of such rows.

use super::ask::{Node, Seq};
use crate::quantity::{Cost, Micros};

/// The most nodes that one bucket has rows for.
pub const MAX_ROWS: usize = 1_024;

/// What is kept of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The tokens that the node may have.
    pub held: Cost,
    /// The microseconds from the node's last accepted call to `expires`.
    pub ttl: u32,
    /// From this moment on the row is forfeited.
    pub expires: Micros,
    /// The number of that call.
    pub seq: Seq,
    /// Whether that call was put off until more tokens are there.
    pub put_off: bool,
}

impl Row {
    /// When the row is forfeited, as a call sees it that finds the bucket's stamp at `stamp`, or sets it to that because the
    /// clock went back: no later than its ttl from there. No row is newer than the stamp, so else this is `expires`.
    pub(crate) fn until(&self, stamp: Micros) -> Micros {
        self.expires.min(stamp.plus(self.ttl.into()))
    }
}

/// A table of rows, in any order.
pub trait Rows {
    /// How many there are.
    fn count(&self) -> usize;

    /// The row at `index`, below [`Rows::count`].
    fn row(&self, index: usize) -> Row;

    /// Where the row of `node` is.
    fn find(&self, node: Node<'_>) -> Option<usize>;
}

/// No rows: those of a bucket that nobody holds a lease of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRows;

impl Rows for NoRows {
    fn count(&self) -> usize {
        0
    }

    fn row(&self, _index: usize) -> Row {
        Row { held: Cost::ZERO, ttl: 0, expires: Micros::saturating(0), seq: Seq::FIRST, put_off: false }
    }

    fn find(&self, _node: Node<'_>) -> Option<usize> {
        None
    }
}

impl<R: Rows + ?Sized> Rows for &R {
    fn count(&self) -> usize {
        (**self).count()
    }

    fn row(&self, index: usize) -> Row {
        (**self).row(index)
    }

    fn find(&self, node: Node<'_>) -> Option<usize> {
        (**self).find(node)
    }
}
