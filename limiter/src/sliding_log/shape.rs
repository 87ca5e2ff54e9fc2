//! How many bytes a log has, and what lies where: `head | sums | slots`.
//!
//! A log of one block is as short as its entries allow; longer ones have blocks of one size. Allocators hand out sizes a
//! quarter of a power of two apart (jemalloc's classes, which Redis is built with), so a shape takes all of the size that its
//! string would be given anyway: that is the slack by which a log grows.

use super::block;
use super::head;
use crate::allocation::{self, allocated};

/// How many slots for blocks a log has, and for how many entries each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    slots: usize,
    entries: u8,
    /// Where the slots begin.
    slots_at: usize,
}

impl Shape {
    /// Entries of a block among several.
    pub(super) const FULL: u8 = 61;
    /// Entries of a block that is the only one: with all else these strings are the most that go into 112, 160, 256, 384
    /// and 512 bytes.
    const LADDER: [u8; 5] = [4, 11, 25, 43, Self::FULL];
    /// The most slots. A block is closed with no fewer than 26 entries, so ten million of them, in the worst case and with
    /// what slack an allocation has, need fewer. A string that claims more is no log: nothing made of it may come near
    /// what a server takes as a string.
    pub(super) const MOST_SLOTS: usize = 600_000;
    /// Bytes for the entries of a block among several.
    pub(super) const LONGEST_DATA: usize = Self::FULL as usize * block::NARROW;
    /// What Redis puts around the bytes of a long string.
    const AROUND: usize = allocation::MOST_AROUND;
    /// Fan-out of the sums, as a power of two.
    pub(super) const FAN_OUT: u32 = 5;

    /// A shape as it was stored; `None` if there is no such shape.
    pub(super) fn new(slots: u32, entries: u8) -> Option<Self> {
        let known = if slots == 1 { Self::LADDER.contains(&entries) } else { entries == Self::FULL };
        let slots = slots as usize;
        ((1..=Self::MOST_SLOTS).contains(&slots) && known).then(|| Self::of(slots, entries))
    }

    fn of(slots: usize, entries: u8) -> Self {
        let sums = Levels::of(slots).total_cells().saturating_mul(8);
        Self { slots, entries, slots_at: head::LENGTH.saturating_add(sums) }
    }

    /// The shortest shape of one block with so many bytes for entries; the longest of one block if none has.
    pub(super) fn small(data: usize) -> Self {
        let entries = Self::LADDER.into_iter().find(|&entries| Self::of(1, entries).data() >= data);
        Self::of(1, entries.unwrap_or(Self::FULL))
    }

    /// A shape for at least so many blocks, with what slack its allocation has.
    pub(super) fn ring(blocks: usize) -> Self {
        let of = |slots: usize| Self::of(slots.clamp(2, Self::MOST_SLOTS.max(blocks)), Self::FULL);
        let allocated = allocated(of(blocks).length().saturating_add(Self::AROUND));
        let most = Self::slots_in(allocated - Self::AROUND);
        let slots = (0..4)
            .map(|less| most.saturating_sub(less))
            .find(|&slots| of(slots).length().saturating_add(Self::AROUND) <= allocated);
        of(slots.unwrap_or(blocks).max(blocks))
    }

    /// The shape of a log of this length; `None` if no log has it.
    pub(super) fn of_length(length: usize) -> Option<Self> {
        let small = Self::LADDER.into_iter().map(|entries| Self::of(1, entries));
        let near = Self::slots_in(length);
        let rings =
            (near.saturating_sub(2).max(2)..=near.min(Self::MOST_SLOTS)).map(|slots| Self::of(slots, Self::FULL));
        small.chain(rings).find(|shape| shape.length() == length)
    }

    /// At least as many slots as a ring of this length has, and at most two more.
    fn slots_in(length: usize) -> usize {
        // All levels of the sums together take 8 × 32 / 31 bytes for each slot, and what rounding adds.
        let bytes = length.saturating_sub(head::LENGTH) as u128;
        let slot = block::HEAD as u128 + u128::from(Self::FULL) * block::NARROW as u128;
        usize::try_from(bytes * 31 / (slot * 31 + 8 * 32) + 1).unwrap_or(usize::MAX)
    }

    pub(super) fn slots(self) -> usize {
        self.slots
    }

    pub(super) fn entries(self) -> u8 {
        self.entries
    }

    /// Bytes for the entries of a block.
    pub(super) fn data(self) -> usize {
        usize::from(self.entries) * block::NARROW
    }

    /// Bytes of the whole log.
    pub(super) fn length(self) -> usize {
        self.slot_at(self.slots)
    }

    /// Where a slot begins.
    pub(super) fn slot_at(self, slot: usize) -> usize {
        self.slots_at.saturating_add(slot.saturating_mul(block::HEAD + self.data()))
    }

    /// The levels of the sums.
    pub(super) fn levels(self) -> Levels {
        Levels::of(self.slots)
    }
}

/// The levels of the sums: a cell for each slot, above that one for 32 cells each, until at most 32 are left. One block needs none.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    /// Cells of each level, from the slots up, and how many cells lie before it.
    cells: [(usize, usize); Levels::MOST],
    count: usize,
}

impl Levels {
    /// For 2^32 slots.
    const MOST: usize = 7;

    fn of(slots: usize) -> Self {
        let mut levels = Self { cells: [(0, 0); Self::MOST], count: 0 };
        let (mut cells, mut before) = (slots, 0_usize);
        for level in &mut levels.cells {
            if slots <= 1 {
                break;
            }
            *level = (cells, before);
            levels.count += 1;
            if cells <= 1 << Shape::FAN_OUT {
                break;
            }
            before = before.saturating_add(cells);
            cells = cells.div_ceil(1 << Shape::FAN_OUT);
        }
        levels
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Cells of a level.
    pub(super) fn cells(&self, level: usize) -> usize {
        self.cells.get(level).map_or(0, |&(cells, _)| cells)
    }

    /// Where a cell lies.
    pub(super) fn at(&self, level: usize, cell: usize) -> usize {
        let before = self.cells.get(level).map_or(0, |&(_, before)| before);
        head::LENGTH.saturating_add(before.saturating_add(cell).saturating_mul(8))
    }

    fn total_cells(&self) -> usize {
        self.cells.iter().take(self.count).fold(0, |total, &(cells, _)| total.saturating_add(cells))
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, allocated};

    #[test]
    fn small_shapes_fill_their_classes() {
        let lengths = Shape::LADDER.map(|entries| Shape::of(1, entries).length());
        for (length, (around, class)) in lengths.into_iter().zip([(4, 112), (4, 160), (4, 256), (6, 384), (6, 512)]) {
            assert!((class - 6..=class).contains(&(length + around)), "{length} in {class}");
        }
    }

    #[test]
    fn what_claims_more_than_any_log_needs_is_none() {
        let (most, more) = (Shape::MOST_SLOTS, Shape::MOST_SLOTS + 1);
        let known = |slots: usize| Shape::new(u32::try_from(slots).unwrap_or(0), Shape::FULL).is_some();
        assert!(known(most) && !known(more));
        let length = |slots| Shape::of(slots, Shape::FULL).length();
        assert!(Shape::of_length(length(most)).is_some() && Shape::of_length(length(more)).is_none());
        assert_eq!(Shape::ring(most).slots(), most, "no slack beyond it");
        assert!(length(most) < 512 << 20, "the most that a server takes as a string");
        // Ten million entries, 26 to a block at the least, and a quarter of slack.
        assert!(10_000_000 / 26 * 5 / 4 < most);
    }

    #[test]
    fn every_shape_is_known_by_its_length_and_grows_by_what_is_allocated() {
        for blocks in (2..3_000).chain([100_000, 400_000]) {
            let exact = Shape::of(blocks, Shape::FULL);
            assert_eq!(Shape::of_length(exact.length()), Some(exact), "{blocks}");
            assert_eq!(Shape::of_length(exact.length() + 1), None);
            let shape = Shape::ring(blocks);
            let class = allocated(exact.length() + Shape::AROUND);
            assert!(shape.slots >= blocks && shape.length() + Shape::AROUND <= class);
            let more = Shape::of(shape.slots + 1, Shape::FULL);
            assert!(more.length() + Shape::AROUND > class, "{blocks} could have more than {}", shape.slots);
        }
    }
}
