//! What a call does to the bytes of holders.

use super::survey::Survey;
use super::{NUMBERS, Place, ROWS, State};
use crate::layout::{self, Stored};
use crate::page::{Page, Touched};
use crate::plan;
use crate::quantity::{Limit, Micros, Name};
use crate::rows::{OwnName, Shape, Writer};

/// What a call does to the holders.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    now: Micros,
    /// The limit to remember.
    limit: Limit,
    change: Change,
    /// Whether some places have expired, or are later than now.
    sweeps: bool,
    /// Microseconds by which places ended too late, at most.
    later: u64,
    /// How many holders there are then.
    count: usize,
    /// When the last place expires then.
    unused_at: Micros,
    shape: Shape<NUMBERS>,
    /// Whether the rows have another shape.
    moves: bool,
}

/// What becomes of one place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Nothing,
    /// A new holder gets a place.
    Add {
        holder: OwnName,
        numbers: [u64; NUMBERS],
    },
    /// The place at this index gets other numbers.
    Renew {
        index: usize,
        numbers: [u64; NUMBERS],
    },
    /// The place at this index comes back.
    Release {
        index: usize,
    },
}

impl Change {
    pub(super) fn add(name: Name<'_>, numbers: [u64; NUMBERS]) -> Self {
        Self::Add { holder: OwnName::of(name), numbers }
    }

    fn add_to(&self, writer: &mut Writer<'_, '_, NUMBERS>) {
        if let Self::Add { holder, numbers } = self {
            writer.push(holder.get(), *numbers);
        }
    }
}

impl Plan {
    pub(super) fn new(
        state: Option<State<'_>>,
        survey: &Survey<'_>,
        limit: Limit,
        change: Change,
        unused_at: Micros,
    ) -> Self {
        let added = match change {
            Change::Add { holder, .. } => Some(holder.get().len()),
            _ => None,
        };
        let count = survey.live + usize::from(added.is_some());
        let now = survey.now;
        let present = state.map(|state| state.rows.shape()).filter(|shape| shape.suits(count, added.unwrap_or(0)));
        let shape = present.unwrap_or_else(|| {
            let kept = state.into_iter().flat_map(|state| state.places(now)).map(|place| place.holder.len());
            Shape::of(ROWS, count, kept.chain(added).max().unwrap_or(1))
        });
        Self {
            now,
            limit,
            change,
            sweeps: survey.expired || survey.later > 0,
            later: survey.later,
            count,
            unused_at,
            shape,
            moves: present.is_none(),
        }
    }

    /// Microseconds, at most, by which a place ended later than its ttl from now: the clock went back.
    pub fn later(&self) -> u64 {
        self.later
    }

    fn head(&self) -> [u8; ROWS] {
        let mut head = [0; ROWS];
        let fields = layout::head_of(layout::CONCURRENCY).into_iter().chain(self.limit.get().to_le_bytes());
        head.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        head
    }

    /// Changes the rows in place. From the last to the first, so that what a removal moves has been seen.
    fn change(&self, writer: &mut Writer<'_, '_, NUMBERS>) {
        match self.change {
            Change::Renew { index, numbers } => writer.set(index, numbers),
            Change::Release { index } if !self.sweeps => writer.remove(index),
            _ => {}
        }
        if self.sweeps {
            for index in (0..writer.count()).rev() {
                let Some(row) = writer.row(index) else { continue };
                let place = Place::seen(row, self.now);
                let (gone, numbers) = (place.expiry <= self.now, place.numbers());
                if gone || matches!(self.change, Change::Release { index: released } if released == index) {
                    writer.remove(index);
                } else {
                    writer.set(index, numbers);
                }
            }
        }
        self.change.add_to(writer);
    }
}

impl plan::Plan for Plan {
    fn leaves_nothing(&self) -> bool {
        self.count == 0
    }

    fn fits(&self) -> bool {
        !self.moves
    }

    fn length(&self) -> usize {
        ROWS + self.shape.length()
    }

    fn unused_at(&self, _bytes: &[u8]) -> Micros {
        self.unused_at
    }

    fn carry_out(&self, bytes: &mut [u8]) -> Touched {
        let mut page = Page::new(bytes);
        page.put(0, &self.head());
        if let Some(mut writer) = Writer::open(&mut page, ROWS) {
            self.change(&mut writer);
            writer.finish();
        }
        page.touched()
    }

    fn make(&self, bytes: &[u8]) -> Vec<u8> {
        let mut fresh = vec![0; self.length()];
        let mut page = Page::new(&mut fresh);
        page.put(0, &self.head());
        let mut writer = Writer::empty(&mut page, ROWS, self.shape);
        let (own, numbers) = match self.change {
            Change::Nothing | Change::Add { .. } => (None, None),
            Change::Renew { index, numbers } => (Some(index), Some(numbers)),
            Change::Release { index } => (Some(index), None),
        };
        // Of another kind, which was unused, nothing is kept.
        if let Ok(Stored::Concurrency(old)) = Stored::read(bytes) {
            for (index, row) in old.rows.iter().enumerate() {
                let place = Place::seen(row, self.now);
                let numbers = if Some(index) == own { numbers } else { Some(place.numbers()) };
                if let Some(numbers) = numbers.filter(|_| place.expiry > self.now) {
                    writer.push(place.holder, numbers);
                }
            }
        }
        self.change.add_to(&mut writer);
        writer.finish();
        fresh
    }
}
