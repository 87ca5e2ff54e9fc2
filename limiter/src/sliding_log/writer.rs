//! Changing a log in place.

use std::ops::Range;

use super::block::{self, Entry};
use super::head::Head;
use super::ring::Ring;
use super::shape::Shape;
use super::sums;
use crate::page::{Page, Touched};

/// A log to change.
pub(super) struct Writer<'a> {
    head: Head,
    page: Page<'a>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(head: Head, bytes: &'a mut [u8]) -> Self {
        Self { head, page: Page::new(bytes) }
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(self.head, self.page.bytes())
    }

    /// Writes the head, too. Of a log whose bytes lie inside, the number of entries is brought into bounds, so that a log is left.
    pub(super) fn finish(mut self) -> Touched {
        self.head.next = self.ring().plausible_next();
        self.head.write(&mut self.page);
        self.page.touched()
    }

    /// Takes over a head that has some of the blocks and entries of the present one, and its limiter.
    pub(super) fn keep(&mut self, head: Head) {
        let old = self.head;
        let dropped = head.first.checked_sub(old.first);
        let dropped = dropped.unwrap_or_else(|| (head.first + old.shape.slots()).saturating_sub(old.first));
        let dropped = if head.blocks == 0 { old.blocks } else { dropped.min(old.blocks) };
        let end = dropped.saturating_add(head.blocks);
        self.clear(&old, 0..dropped);
        if dropped < end && end < old.blocks {
            // Another block is the last one now. Its units are in the head, so what its slot says must not count.
            self.clear(&old, end - 1..old.blocks);
        }
        self.head = head;
    }

    /// Makes the units of blocks, counted by `head`, 0.
    fn clear(&mut self, head: &Head, blocks: Range<usize>) {
        let slots = head.shape.slots();
        let (start, end) = (head.first.saturating_add(blocks.start), head.first.saturating_add(blocks.end));
        if blocks.is_empty() {
            return;
        }
        sums::clear(&mut self.page, head.shape, start.min(slots)..end.min(slots));
        sums::clear(&mut self.page, head.shape, start.max(slots) - slots..end.max(slots) - slots);
    }

    /// Appends an entry, which must not be older than the newest.
    pub(super) fn append(&mut self, new: Entry) {
        let to = self.ring().placement(new);
        let head = &mut self.head;
        if let Some(cost) = to.joined {
            head.next = head.next.wrapping_sub(1);
            head.tail = head.tail.saturating_sub(cost);
            head.total = head.total.saturating_sub(cost);
        }
        if to.begins_block {
            if head.blocks >= head.shape.slots() {
                return;
            }
            if let Some(last) = head.blocks.checked_sub(1) {
                sums::add(&mut self.page, head.shape, head.slot(last), head.tail);
            }
            head.blocks += 1;
            head.tail = 0;
        }
        let last = head.blocks.saturating_sub(1);
        head.next = head.next.wrapping_add(1);
        head.tail = head.tail.saturating_add(to.entry.cost);
        head.total = head.total.saturating_add(to.entry.cost);
        head.newest = to.entry.time;
        let number = head.next.wrapping_sub(1);

        let at = self.ring().block_at(last);
        let mut base = to.entry.time;
        if to.index == 0 {
            block::write_head(&mut self.page, at, base, number, to.format);
        } else {
            let old = self.ring().block(last);
            base = old.base();
            if old.format() != to.format {
                let mut entries = [Entry::default(); Shape::FULL as usize];
                entries.iter_mut().enumerate().for_each(|(index, entry)| *entry = old.entry(index));
                block::write_format(&mut self.page, at, to.format);
                for (index, entry) in entries.into_iter().enumerate().take(to.index) {
                    block::write_entry(&mut self.page, at, base, to.format, index, entry);
                }
            }
        }
        block::write_entry(&mut self.page, at, base, to.format, to.index, to.entry);
    }

    /// Removes the units of a range, counted from 0 at the oldest, from the entries that hold them.
    pub(super) fn remove(&mut self, units: Range<u64>) {
        let (from, to) = (self.ring().find(units.start.saturating_add(1)), self.ring().find(units.end));
        let (first, last) = (from.at.block, to.at.block);
        let in_first = units.start.saturating_sub(from.before_block);
        let in_last = units.end.saturating_sub(to.before_block);
        if first >= last {
            self.remove_in(first, in_first..in_last);
        } else {
            self.remove_in(first, in_first..u64::MAX);
            let head = self.head;
            self.clear(&head, first + 1..last);
            self.remove_in(last, 0..in_last);
        }
        self.head.total = self.head.total.saturating_sub(units.end.saturating_sub(units.start));
        let ring = self.ring();
        let kept = Ring::new(ring.ending_at(self.head.total), self.page.bytes()).starting_at(ring.find(1).at, 0);
        self.keep(kept);
    }

    /// Removes the units of a range, counted from 0 at the block's oldest entry.
    fn remove_in(&mut self, block: usize, units: Range<u64>) {
        if !self.ring().counts(block) {
            return;
        }
        let at = self.ring().block_at(block);
        let (mut passed, mut removed) = (0_u64, 0_u64);
        for index in self.ring().kept(block) {
            let old = self.ring().block(block);
            let (base, format, entry) = (old.base(), old.format(), old.entry(index));
            let end = passed.saturating_add(entry.cost);
            let gone = end.min(units.end).saturating_sub(passed.max(units.start));
            passed = end;
            if gone > 0 {
                let rest = Entry { cost: entry.cost.saturating_sub(gone), ..entry };
                block::write_entry(&mut self.page, at, base, format, index, rest);
                removed = removed.saturating_add(gone);
            }
        }
        if block.saturating_add(1) == self.head.blocks {
            self.head.tail = self.head.tail.saturating_sub(removed);
        } else {
            let (shape, slot) = (self.head.shape, self.head.slot(block));
            sums::add(&mut self.page, shape, slot, removed.wrapping_neg());
        }
    }
}

/// A log with the blocks and entries that `head` has in `bytes`, in another shape: its head, which is yet to be written, and its
/// bytes.
pub(super) fn moved(head: Head, bytes: &[u8], shape: Shape) -> (Head, Vec<u8>) {
    let old = Ring::new(head, bytes);
    let mut fresh = vec![0; shape.length()];
    if shape.slots() == 1 {
        let mut writer = Writer::new(Head::empty(head.limiter, shape), &mut fresh);
        if head.blocks > 0 {
            old.kept(0).for_each(|index| writer.append(old.block(0).entry(index)));
        }
        let head = writer.head;
        return (head, fresh);
    }
    let mut page = Page::new(&mut fresh);
    for block in 0..head.blocks.min(shape.slots()) {
        page.put(shape.slot_at(block), old.block_bytes(block));
        if block + 1 < head.blocks {
            sums::add(&mut page, shape, block, old.sum(block));
        }
    }
    (Head { shape, first: 0, ..head }, fresh)
}
