//! The head of a log: what it remembers and where its entries are.

use super::SlidingLog;
use super::shape::Shape;
use crate::layout;
use crate::page::{Page, u32_at, u64_at};
use crate::quantity::{Limit, Micros, Window};

const LIMIT: usize = layout::HEAD;
const WINDOW: usize = LIMIT + 8;
const SLOTS: usize = WINDOW + 8;
const ENTRIES: usize = SLOTS + 4;
/// From here on an ordinary call changes it.
const NEWEST: usize = ENTRIES + 1;
const TOTAL: usize = NEWEST + 8;
const TAIL: usize = TOTAL + 8;
const NEXT: usize = TAIL + 8;
const FIRST: usize = NEXT + 4;
const BLOCKS: usize = FIRST + 4;
const SKIPPED: usize = BLOCKS + 4;
/// Bytes of the head.
pub(super) const LENGTH: usize = SKIPPED + 1;

/// The head of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The parameters of the last call that took something.
    pub(super) limiter: SlidingLog,
    pub(super) shape: Shape,
    /// The time of the newest entry, in microseconds since the Unix epoch. That entry has a cost above 0.
    pub(super) newest: u64,
    /// Units of all entries. What a call admits is within its limit and drops what it does not count, so these are within the remembered one.
    pub(super) total: u64,
    /// Units of the last block's entries.
    pub(super) tail: u64,
    /// The number of the entry to come, modulo 2^32. Entries are numbered in order, and each block knows its first.
    pub(super) next: u32,
    /// The slot of the first block.
    pub(super) first: usize,
    /// Blocks in use, in slots that follow each other, the first slot after the last.
    pub(super) blocks: usize,
    /// Entries of the first block that were dropped.
    pub(super) skipped: usize,
}

impl Head {
    /// Of a log without entries.
    pub(super) fn empty(limiter: SlidingLog, shape: Shape) -> Self {
        Self { limiter, shape, newest: 0, total: 0, tail: 0, next: 0, first: 0, blocks: 0, skipped: 0 }
    }

    /// Of the same log without its entries.
    pub(super) fn emptied(self) -> Self {
        Self { total: 0, tail: 0, blocks: 0, skipped: 0, ..self }
    }

    /// Reads the head of a log, which must have the length that it demands; `None` if a field is out of its range or does
    /// not fit the others. Tag, version and kind have been checked.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let limiter = SlidingLog::new(Limit::new(u64_at(bytes, LIMIT))?, Window::from_micros(u64_at(bytes, WINDOW))?);
        let head = Self {
            limiter,
            shape: Shape::new(u32_at(bytes, SLOTS), *bytes.get(ENTRIES)?)?,
            newest: Micros::new(u64_at(bytes, NEWEST))?.get(),
            total: u64_at(bytes, TOTAL),
            tail: u64_at(bytes, TAIL),
            next: u32_at(bytes, NEXT),
            first: u32_at(bytes, FIRST) as usize,
            blocks: u32_at(bytes, BLOCKS) as usize,
            skipped: usize::from(*bytes.get(SKIPPED)?),
        };
        let slots = head.shape.slots();
        let plausible = bytes.len() == head.shape.length()
            && (1..=limiter.limit().get()).contains(&head.total)
            && (1..=head.total).contains(&head.tail)
            && (head.blocks > 1 || head.tail == head.total)
            && head.first < slots
            && (1..=slots).contains(&head.blocks)
            && head.skipped < usize::from(head.shape.entries());
        plausible.then_some(head)
    }

    /// Writes the head. Of a log whose bytes lie inside, the sums are brought into bounds.
    pub(super) fn write(&self, page: &mut Page<'_>) {
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let total = self.total.clamp(1, self.limiter.limit().get().max(1));
        let tail = if self.blocks > 1 { self.tail.clamp(1, total) } else { total };

        let mut bytes = [0; LENGTH];
        let mut left = bytes.as_mut_slice();
        let mut field = |field: &[u8]| {
            if let Some((place, rest)) = std::mem::take(&mut left).split_at_mut_checked(field.len()) {
                place.copy_from_slice(field);
                left = rest;
            }
        };
        field(&layout::head_of(layout::SLIDING_LOG));
        field(&self.limiter.limit().get().to_le_bytes());
        field(&self.limiter.window().as_micros().to_le_bytes());
        field(&small(self.shape.slots()));
        field(&[self.shape.entries()]);
        field(&self.newest.to_le_bytes());
        field(&total.to_le_bytes());
        field(&tail.to_le_bytes());
        field(&self.next.to_le_bytes());
        field(&small(self.first));
        field(&small(self.blocks));
        field(&[u8::try_from(self.skipped).unwrap_or(0)]);
        let (parameters, counts) = bytes.split_at(NEWEST);
        page.put(0, parameters);
        page.put(NEWEST, counts);
    }

    /// The slot of a block, counted from the first.
    pub(super) fn slot(&self, block: usize) -> usize {
        let slot = self.first.saturating_add(block);
        slot.checked_sub(self.shape.slots()).unwrap_or(slot)
    }
}
