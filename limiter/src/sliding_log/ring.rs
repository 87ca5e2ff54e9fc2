//! The entries of a log in order: blocks in a ring of slots.

use std::ops::Range;

use super::block::{self, Block, Entry, Format, first_format};
use super::head::Head;
use super::shape::Shape;
use super::sums::Sums;

/// A place among the entries: a block, counted from the first, and an entry in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) block: usize,
    pub(super) entry: usize,
}

/// The entry that holds a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) at: Position,
    /// The entry's time.
    pub(super) time: u64,
    /// Units of the blocks before its block.
    pub(super) before_block: u64,
}

/// Where an entry that is to be appended goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// The entry, with what the newest one holds if that is of the same time.
    pub(super) entry: Entry,
    /// The cost of the newest entry if that is of the same time: the two become one.
    pub(super) joined: Option<u64>,
    /// Whether a new block begins with it.
    pub(super) begins_block: bool,
    /// Entries of the block before it.
    pub(super) index: usize,
    /// The format that its block must have.
    pub(super) format: Format,
}

/// The entries of a log.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    pub(super) head: Head,
    bytes: &'a [u8],
}

impl<'a> Ring<'a> {
    pub(super) fn new(head: Head, bytes: &'a [u8]) -> Self {
        Self { head, bytes }
    }

    pub(super) fn block(&self, block: usize) -> Block<'a> {
        Block::new(self.block_bytes(block))
    }

    pub(super) fn block_bytes(&self, block: usize) -> &'a [u8] {
        let length = block::HEAD + self.head.shape.data();
        self.bytes.get(self.block_at(block)..).and_then(|slot| slot.get(..length)).unwrap_or(&[])
    }

    /// Where a block begins.
    pub(super) fn block_at(&self, block: usize) -> usize {
        self.head.shape.slot_at(self.head.slot(block))
    }

    fn sums(&self) -> Sums<'a> {
        Sums::new(self.head.shape, self.bytes)
    }

    /// The number of the first entry of a block; behind the last block, that of the entry to come.
    pub(super) fn number(&self, block: usize) -> u32 {
        if block < self.head.blocks { self.block(block).number() } else { self.head.next }
    }

    /// Entries of a block, the dropped ones too.
    pub(super) fn count(&self, block: usize) -> usize {
        let count = self.number(block.saturating_add(1)).wrapping_sub(self.number(block));
        (count as usize).min(self.block(block).capacity())
    }

    /// Entries of a block that were dropped.
    pub(super) fn skipped(&self, block: usize) -> usize {
        if block == 0 { self.head.skipped } else { 0 }
    }

    /// Entries of a block that were not dropped.
    pub(super) fn kept(&self, block: usize) -> Range<usize> {
        self.skipped(block)..self.count(block)
    }

    /// Entries of the log.
    pub(super) fn entries(&self) -> u32 {
        let number = self.number(0).wrapping_add(u32::try_from(self.head.skipped).unwrap_or(0));
        self.head.next.wrapping_sub(number)
    }

    /// The most entries that its blocks can have.
    pub(super) fn most_entries(&self) -> u32 {
        u32::try_from(self.head.blocks.saturating_mul(self.head.shape.entries().into())).unwrap_or(u32::MAX)
    }

    /// The number of the entry to come, by which there are at least one entry and at most as many as can be.
    pub(super) fn plausible_next(&self) -> u32 {
        let entries = self.entries();
        let plausible = entries.clamp(1, self.most_entries().max(1));
        self.head.next.wrapping_sub(entries).wrapping_add(plausible)
    }

    /// Whether units of a block count: of one whose sum is 0 the entries count as 0, whatever they hold.
    pub(super) fn counts(&self, block: usize) -> bool {
        block.saturating_add(1) == self.head.blocks || self.sum(block) > 0
    }

    /// The sum of a block that is not the last. Of the first block it may hold what was dropped, too.
    pub(super) fn sum(&self, block: usize) -> u64 {
        self.sums().of(self.head.slot(block))
    }

    /// Units of the entries of a block.
    pub(super) fn units(&self, block: usize, entries: Range<usize>) -> u64 {
        if entries.is_empty() || !self.counts(block) {
            return 0;
        }
        self.block(block).costs(entries).fold(0, u64::saturating_add)
    }

    /// Units of the sums before a block, which must not be the first, counted from slot 0 and on through the ring.
    fn sums_before(&self, block: usize) -> u64 {
        let sums = self.sums();
        let slot = self.head.first.saturating_add(block);
        match slot.checked_sub(self.head.shape.slots()) {
            Some(wrapped) => sums.before(self.head.shape.slots()).wrapping_add(sums.before(wrapped)),
            None => sums.before(slot),
        }
    }

    /// Units of the entries before a position.
    pub(super) fn before(&self, at: Position) -> u64 {
        if at.block >= self.head.blocks {
            return self.head.total;
        }
        if at.block == 0 {
            return self.units(0, self.skipped(0)..at.entry);
        }
        let between = match at.block {
            1 => 0,
            _ => self.sums_before(at.block).wrapping_sub(self.sums_before(1)),
        };
        let units = self.units(0, self.kept(0)).saturating_add(between);
        units.saturating_add(self.units(at.block, 0..at.entry)).min(self.head.total)
    }

    /// The entries of a cost above 0, the newest first.
    pub(super) fn newest_entries(self) -> impl Iterator<Item = Entry> {
        let blocks = (0..self.head.blocks).rev().filter(move |&block| self.counts(block));
        let entries =
            blocks.flat_map(move |block| self.kept(block).rev().map(move |entry| self.block(block).entry(entry)));
        entries.filter(|entry| entry.cost > 0)
    }

    /// The first entry later than `moment`; the end if there is none.
    pub(super) fn first_after(&self, moment: u64) -> Position {
        let is_later = |block: usize| self.block(block).base() > moment;
        // The last block that does not begin later. It is mostly the first one, where what leaves the window is.
        let (mut block, mut later) = (0, self.head.blocks);
        if later > 1 && is_later(1) {
            later = 1;
        }
        while later - block > 1 {
            let middle = block + (later - block) / 2;
            if is_later(middle) { later = middle } else { block = middle }
        }
        let entries = self.block(block);
        let Range { start: mut entry, end: mut later } = self.kept(block);
        while entry < later {
            let middle = entry + (later - entry) / 2;
            if entries.entry(middle).time > moment { later = middle } else { entry = middle + 1 }
        }
        if entry < self.count(block) { Position { block, entry } } else { Position { block: block + 1, entry: 0 } }
    }

    /// The entry that holds unit `unit`, counted from 1 at the oldest. There must be so many.
    pub(super) fn find(&self, unit: u64) -> Found {
        let last = self.head.blocks.saturating_sub(1);
        let (in_first, before_last) = (self.kept(0).len(), self.head.total.saturating_sub(self.head.tail));
        if last == 0 {
            return self.find_in(0, unit, 0).unwrap_or_else(|last| last);
        }
        // Mostly it is among the oldest, which leave the window next. Most entries hold a unit or more.
        if unit <= in_first as u64
            && self.counts(0)
            && let Ok(found) = self.find_in(0, unit, 0)
        {
            return found;
        }
        if unit > before_last {
            return self.find_in(last, unit - before_last, before_last).unwrap_or_else(|last| last);
        }
        // Of the first block the sum may hold what was dropped, so it is counted from the last one.
        let begin = self.sums().before(self.head.first);
        let sum = self.sums_before(last).wrapping_sub(begin);
        let Some(nth) = sum.checked_sub(before_last - unit).filter(|&nth| nth > 0) else {
            return self.find_in(0, unit, 0).unwrap_or_else(|last| last);
        };
        let wanted = begin.wrapping_add(nth);
        let all = self.sums().before(self.head.shape.slots());
        let (slot, rest) = self.sums().find(if wanted > all { wanted - all } else { wanted });
        let block = slot.checked_sub(self.head.first);
        let block =
            block.unwrap_or_else(|| slot.saturating_add(self.head.shape.slots()).saturating_sub(self.head.first));
        let (rest, before) = if block == 0 { (unit, 0) } else { (rest, unit.saturating_sub(rest)) };
        self.find_in(block.min(last), rest, before).unwrap_or_else(|last| last)
    }

    /// The entry of a block that holds its unit `unit`, counted from 1; as an error its last one if it has not so many.
    fn find_in(&self, block: usize, unit: u64, before_block: u64) -> Result<Found, Found> {
        let (entries, kept) = (self.block(block), self.kept(block));
        let found = |entry| Found { at: Position { block, entry }, time: entries.entry(entry).time, before_block };
        let mut units = 0_u64;
        for (entry, cost) in kept.clone().zip(entries.costs(kept.clone())) {
            units = units.saturating_add(cost);
            if unit <= units {
                return Ok(found(entry));
            }
        }
        Err(found(kept.end.saturating_sub(1).max(kept.start)))
    }

    /// The head of the log without the entries behind the one that holds unit `unit`.
    pub(super) fn ending_at(&self, unit: u64) -> Head {
        if unit == 0 {
            return self.head.emptied();
        }
        let last = self.find(unit);
        let index = u32::try_from(last.at.entry).unwrap_or(0);
        Head {
            next: self.number(last.at.block).wrapping_add(index).wrapping_add(1),
            blocks: last.at.block + 1,
            total: unit,
            tail: unit.saturating_sub(last.before_block),
            newest: last.time,
            ..self.head
        }
    }

    /// The head of the log without the entries before `start`, which hold `before` units.
    pub(super) fn starting_at(&self, start: Position, before: u64) -> Head {
        let (head, total) = (self.head, self.head.total.saturating_sub(before));
        if total == 0 || start.block >= head.blocks {
            return head.emptied();
        }
        let blocks = head.blocks - start.block;
        let tail = if blocks == 1 { total } else { head.tail };
        Head { first: head.slot(start.block), blocks, skipped: start.entry, total, tail, ..head }
    }

    /// Where a new entry goes, which must not be older than the newest.
    pub(super) fn placement(&self, new: Entry) -> Placement {
        let begins = |entry: Entry, joined| Placement {
            entry,
            joined,
            begins_block: true,
            index: 0,
            format: first_format(entry.cost),
        };
        let Some(last) = self.head.blocks.checked_sub(1) else { return begins(new, None) };
        let (block, count) = (self.block(last), self.count(last));
        let newest = count.checked_sub(1).map(|index| block.entry(index)).filter(|newest| newest.time == new.time);
        let joined = newest.map(|newest| newest.cost);
        let entry = Entry { cost: new.cost.saturating_add(joined.unwrap_or(0)), ..new };
        let index = if joined.is_some() { count - 1 } else { count };
        if index == 0 {
            return Placement { begins_block: false, ..begins(entry, joined) };
        }
        let format = block.format_with(0..index, block.base(), entry);
        // Among several blocks all have this room; a single one may have to be made longer for it.
        if (index + 1) * format.width() > Shape::LONGEST_DATA {
            return begins(entry, joined);
        }
        Placement { entry, joined, begins_block: false, index, format }
    }

    /// The shape that the log must have for an entry to be placed so; `None` if it has it.
    pub(super) fn shape_for(&self, placement: &Placement) -> Option<Shape> {
        let (head, shape) = (self.head, self.head.shape);
        if shape.slots() > 1 {
            let blocks = head.blocks + usize::from(placement.begins_block);
            return if blocks > shape.slots() {
                Some(Shape::ring(blocks))
            } else if blocks * 4 < shape.slots() {
                Some(Shape::ring(blocks + 1))
            } else {
                None
            };
        }
        let begins_second = placement.begins_block && head.blocks > 0;
        if !begins_second && (placement.index + 1) * placement.format.width() <= shape.data() {
            return None;
        }
        // The block is full. Without what was dropped there may be room; if that is little, it would soon be full again.
        let block = self.block(0);
        let kept = head.skipped..self.count(0) - usize::from(placement.joined.is_some());
        let base = if kept.is_empty() { placement.entry.time } else { block.entry(kept.start).time };
        let needed = (kept.len() + 1) * block.format_with(kept, base, placement.entry).width();
        let room = if head.skipped * 2 < self.count(0) { shape.data() + 1 } else { shape.data() };
        let data = needed.max(room);
        Some(if data > Shape::LONGEST_DATA { Shape::ring(2) } else { Shape::small(data) })
    }
}
