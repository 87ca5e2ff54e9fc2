//! What a call does to a bucket with rows.

use super::crest::Expiries;
use super::refill::{Level, unused_within};
use super::row::{NUMBERS, Row, Stamp};
use super::seen::Seen;
use super::state::{ROWS, State};
use crate::layout::{self, Stored};
use crate::limiter::LimiterState;
use crate::page::{Page, Touched};
use crate::plan;
use crate::quantity::{Micros, Name};
use crate::rows::{OwnName, Shape, Writer};
use crate::token_bucket::{self, saturate};

/// What a call does to a bucket with rows, decided and not yet done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The bucket to store, stamped with the time of the call.
    bucket: token_bucket::State,
    own: Own,
    /// The stamp that the rows are seen from.
    stamp: Stamp,
    /// Whether other rows have expired, or are moved because the clock went back.
    sweeps: bool,
    /// How many rows there are then.
    count: usize,
    shape: Shape<NUMBERS>,
    /// Whether the rows have another shape.
    moves: bool,
    left: Left,
}

/// What is known about when the state that is left is unused.
#[derive(Clone, Copy, Debug)]
enum Left {
    /// The moment.
    At(Micros),
    /// What is spent then, a moment before which no row expires, and when the last one does.
    Of(Level, Micros, Micros),
    /// Nothing without a look at the rows.
    Unknown,
}

/// What becomes of the row of the node that called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Own {
    /// No node called, or nothing changes for it.
    Untouched,
    /// The node gets a row.
    Added { node: OwnName, row: Row },
    /// The row at this index becomes another.
    Replaced(usize, Row),
    /// The row at this index goes.
    Removed(usize),
}

impl Own {
    pub(crate) fn added(name: Name<'_>, row: Row) -> Self {
        Self::Added { node: OwnName::of(name), row }
    }
}

impl Plan {
    pub(crate) fn new(seen: &Seen<'_>, bucket: token_bucket::State, own: Own, level: Option<Level>) -> Self {
        let (added, removed) = match own {
            Own::Added { node, .. } => (Some(node.get().len()), 0),
            Own::Removed(_) => (None, 1),
            _ => (None, 0),
        };
        let count = (seen.live + usize::from(added.is_some())).saturating_sub(removed);
        let present = seen.state.and_then(|state| state.shape());
        let present = present.filter(|shape| count > 0 && shape.suits(count, added.unwrap_or(0)));
        let shape = present.unwrap_or_else(|| {
            let rows = seen.state.into_iter().flat_map(|state| state.leases(seen.now));
            Shape::of(ROWS, count, rows.map(|lease| lease.node.len()).chain(added).max().unwrap_or(1))
        });
        let (first, last) = seen.span();
        let span = match own {
            Own::Untouched => Some((first, last)),
            Own::Added { row, .. } | Own::Replaced(_, row) => Some((first.min(row.expires), last.max(row.expires))),
            Own::Removed(_) => None,
        };
        let left = match (level, span) {
            (Some(level), Some((first, last))) => Left::Of(level, first, last),
            _ => Left::Unknown,
        };
        Self { bucket, own, stamp: seen.stamp(), sweeps: seen.sweeps(), count, shape, moves: present.is_none(), left }
    }

    /// The same, and it is known when the state that it leaves is unused.
    pub(crate) fn unused_at(self, at: Micros) -> Self {
        Self { left: Left::At(at), ..self }
    }

    /// Changes the rows in place. From the last to the first, so that what a removal moves has been seen.
    fn change(&self, writer: &mut Writer<'_, '_, NUMBERS>) {
        match self.own {
            Own::Replaced(index, row) => writer.set(index, row.numbers()),
            Own::Removed(index) if !self.sweeps => writer.remove(index),
            _ => {}
        }
        if self.sweeps {
            for index in (0..writer.count()).rev() {
                match writer.row(index).and_then(|row| self.kept(index, Row::seen(row, self.stamp))) {
                    Some(row) => writer.set(index, row.numbers()),
                    None => writer.remove(index),
                }
            }
        }
        self.add_to(writer);
    }

    /// What is stored of the row at this index; `None` if it goes.
    fn kept(&self, index: usize, row: Row) -> Option<Row> {
        match self.own {
            Own::Replaced(at, row) if at == index => Some(row),
            Own::Removed(at) if at == index => None,
            _ => Some(row).filter(|row| row.expires > self.bucket.last()),
        }
    }

    fn add_to(&self, writer: &mut Writer<'_, '_, NUMBERS>) {
        if let Own::Added { node, row } = &self.own {
            writer.push(node.get(), row.numbers());
        }
    }
}

impl plan::Plan for Plan {
    fn leaves_nothing(&self) -> bool {
        self.count == 0 && self.bucket.is_unused(self.bucket.last())
    }

    fn fits(&self) -> bool {
        !self.moves
    }

    fn length(&self) -> usize {
        match self.count {
            0 => layout::State::from(self.bucket).length(),
            _ => ROWS + self.shape.length(),
        }
    }

    fn unused_at(&self, bytes: &[u8]) -> Micros {
        match (Stored::read(bytes), self.left) {
            (_, Left::At(at)) => at,
            (Ok(Stored::Leases(state)), Left::Of(level, first, last)) => {
                let now = self.bucket.last();
                let rows = Expiries::new(state.rows(), Stamp::new(now), now.get(), first.get(), last.get());
                now.plus(saturate(level.micros_until_unused(last, &rows)))
            }
            (Ok(Stored::Leases(state)), Left::Unknown) => state.unused_at(),
            _ => self.bucket.unused_at(),
        }
    }

    fn unused_within(&self) -> Option<(Micros, Micros)> {
        match self.left {
            Left::At(at) => Some((at, at)),
            Left::Of(level, _, last) if self.count > 0 => Some(unused_within(level, self.bucket.last(), last)),
            _ => None,
        }
    }

    fn carry_out(&self, bytes: &mut [u8]) -> Touched {
        let mut page = Page::new(bytes);
        page.put(0, &State::head(&self.bucket));
        if let Some(mut writer) = Writer::open(&mut page, ROWS) {
            self.change(&mut writer);
            writer.finish();
        }
        page.touched()
    }

    /// Without rows the bytes of a plain bucket.
    fn make(&self, bytes: &[u8]) -> Vec<u8> {
        if self.count == 0 {
            return layout::State::from(self.bucket).encode().to_vec();
        }
        let mut made = vec![0; ROWS + self.shape.length()];
        let mut page = Page::new(&mut made);
        page.put(0, &State::head(&self.bucket));
        let mut writer = Writer::empty(&mut page, ROWS, self.shape);
        // Of what was unused nothing is kept.
        if let Ok(Stored::Leases(state)) = Stored::read(bytes)
            && !state.is_unused(self.bucket.last())
        {
            for (index, stored) in state.rows().iter().enumerate() {
                if let Some(row) = self.kept(index, Row::seen(stored, self.stamp)) {
                    writer.push(stored.name(), row.numbers());
                }
            }
        }
        self.add_to(&mut writer);
        writer.finish();
        made
    }
}
