//! Units of the blocks in every slot, and sums of them in levels of fan-out 32.
//!
//! Level 0 has a cell for each slot, the one above it a cell for each 32 of those, and so on until at most 32 are left. **A
//! cell of 0 means that nothing below it counts**, whatever is written there: so to clear any number of slots writes
//! at most 64 cells a level.
//!
//! The last block's units are not here but in the head, so that a call which adds to it touches nothing here.

use std::ops::Range;

use super::shape::{Levels, Shape};
use crate::page::{Page, u64_at};

/// The sums, to read.
#[derive(Clone, Copy)]
pub(super) struct Sums<'a> {
    levels: Levels,
    slots: usize,
    bytes: &'a [u8],
}

const FAN_OUT: usize = 1 << Shape::FAN_OUT;

/// The cell of a level that a slot counts in.
fn cell_of(slot: usize, level: usize) -> usize {
    slot >> (level * Shape::FAN_OUT as usize)
}

/// The cells below one, of which the level below has so many.
fn below(cell: usize, cells: usize) -> Range<usize> {
    let from = cell.saturating_mul(FAN_OUT).min(cells);
    from..from.saturating_add(FAN_OUT).min(cells)
}

impl<'a> Sums<'a> {
    pub(super) fn new(shape: Shape, bytes: &'a [u8]) -> Self {
        Self { levels: shape.levels(), slots: shape.slots(), bytes }
    }

    fn get(&self, level: usize, cell: usize) -> u64 {
        u64_at(self.bytes, self.levels.at(level, cell))
    }

    /// The units of cells that follow each other.
    fn cells(&self, level: usize, cells: Range<usize>) -> impl Iterator<Item = u64> {
        let bytes = self.bytes.get(self.levels.at(level, cells.start)..).unwrap_or_default();
        bytes.as_chunks().0.iter().take(cells.len()).map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn sum(&self, level: usize, cells: Range<usize>) -> u64 {
        self.cells(level, cells).fold(0, u64::wrapping_add)
    }

    /// Units of the block in a slot.
    pub(super) fn of(&self, slot: usize) -> u64 {
        let mut units = 0;
        for level in (0..self.levels.count()).rev() {
            units = self.get(level, cell_of(slot, level));
            if units == 0 {
                break;
            }
        }
        units
    }

    /// Units of all slots before this one.
    pub(super) fn before(&self, slot: usize) -> u64 {
        let Some(top) = self.levels.count().checked_sub(1) else { return 0 };
        if slot >= self.slots {
            return self.sum(top, 0..self.levels.cells(top));
        }
        let (mut units, mut from) = (0_u64, 0);
        for level in (0..=top).rev() {
            let cell = cell_of(slot, level);
            units = units.wrapping_add(self.sum(level, from..cell));
            if self.get(level, cell) == 0 {
                break;
            }
            from = cell.saturating_mul(FAN_OUT);
        }
        units
    }

    /// The slot whose block holds unit `unit`, counted from 1 over the slots in order, and which of its units that is.
    pub(super) fn find(&self, mut unit: u64) -> (usize, u64) {
        let mut cell = 0;
        for level in (0..self.levels.count()).rev() {
            let cells = self.levels.cells(level);
            let candidates = if level + 1 == self.levels.count() { 0..cells } else { below(cell, cells) };
            cell = candidates.end.saturating_sub(1);
            for (candidate, units) in candidates.clone().zip(self.cells(level, candidates)) {
                if unit <= units {
                    cell = candidate;
                    break;
                }
                unit -= units;
            }
        }
        (cell, unit)
    }
}

/// Adds to the units of a slot, modulo 2^64.
pub(super) fn add(page: &mut Page<'_>, shape: Shape, slot: usize, units: u64) {
    let levels = shape.levels();
    for level in (0..levels.count()).rev() {
        let at = levels.at(level, cell_of(slot, level));
        let old = u64_at(page.bytes(), at);
        let new = old.wrapping_add(units);
        page.put_u64(at, new);
        if new == 0 {
            return;
        }
        if let Some(lower) = level.checked_sub(1)
            && old == 0
        {
            // What is written below did not count, and now would.
            for cell in below(cell_of(slot, level), levels.cells(lower)) {
                page.put_u64(levels.at(lower, cell), 0);
            }
        }
    }
}

/// Makes the units of all slots of a range 0.
pub(super) fn clear(page: &mut Page<'_>, shape: Shape, slots: Range<usize>) {
    let levels = shape.levels();
    if let Some(top) = levels.count().checked_sub(1)
        && !slots.is_empty()
    {
        clear_level(page, &levels, top, 0..levels.cells(top), &slots);
    }
}

/// Clears those of `cells` that lie in the range of slots, and of those that lie in it by a part what is below. Returns the units
/// that there were.
fn clear_level(page: &mut Page<'_>, levels: &Levels, level: usize, cells: Range<usize>, slots: &Range<usize>) -> u64 {
    let (first, last) = (cell_of(slots.start, level), cell_of(slots.end.saturating_sub(1), level));
    let mut cleared = 0_u64;
    for cell in cells.start.max(first)..cells.end.min(last.saturating_add(1)) {
        let at = levels.at(level, cell);
        let units = u64_at(page.bytes(), at);
        if units == 0 {
            continue;
        }
        let whole = cell_of(slots.start, level) << (level * Shape::FAN_OUT as usize) == slots.start || cell > first;
        let whole = whole && (cell < last || cell_of(slots.end, level) > cell);
        let gone = match level.checked_sub(1) {
            Some(lower) if !whole => clear_level(page, levels, lower, below(cell, levels.cells(lower)), slots),
            _ => units,
        };
        page.put_u64(at, units.wrapping_sub(gone));
        cleared = cleared.wrapping_add(gone);
    }
    cleared
}

#[cfg(test)]
mod tests {
    use super::{Sums, add, clear};
    use crate::page::Page;
    use crate::sliding_log::shape::Shape;

    /// Numbers that look random: an LCG's high bits.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*state >> 33).unwrap_or(0)
    }

    fn check(shape: Shape, bytes: &[u8], units: &[u64]) {
        let sums = Sums::new(shape, bytes);
        let mut before = 0;
        for (slot, &units) in units.iter().enumerate() {
            assert_eq!((sums.of(slot), sums.before(slot)), (units, before), "slot {slot}");
            if units > 0 {
                assert_eq!(sums.find(before + 1), (slot, 1));
                assert_eq!(sums.find(before + units), (slot, units));
            }
            before += units;
        }
        assert_eq!(sums.before(units.len()), before);
    }

    #[test]
    fn sums_are_those_of_the_slots_whatever_was_cleared() {
        let mut state = 1;
        for blocks in [2, 33, 1_000, 1_100, 3_000] {
            let shape = Shape::ring(blocks);
            let (slots, mut bytes) = (shape.slots(), vec![0; shape.length()]);
            let mut units = vec![0_u64; slots];
            for round in 0..60 {
                for _ in 0..slots / 2 {
                    let (slot, more) = (next(&mut state) % slots, next(&mut state) as u64 % 1_000);
                    let mut page = Page::new(&mut bytes);
                    if next(&mut state).is_multiple_of(4) {
                        add(&mut page, shape, slot, units[slot].wrapping_neg());
                        units[slot] = 0;
                    } else {
                        add(&mut page, shape, slot, more);
                        units[slot] += more;
                    }
                }
                check(shape, &bytes, &units);
                let (from, to) = (next(&mut state) % slots, next(&mut state) % (slots + 1));
                let range = if round % 7 == 0 { 0..slots } else { from..to.max(from) };
                let mut page = Page::new(&mut bytes);
                clear(&mut page, shape, range.clone());
                let touched: usize = page.touched().ranges().iter().map(|range| range.len()).sum();
                assert!(touched <= 3 * 64 * 8 + 16 * 40, "{touched} bytes");
                units[range].fill(0);
                check(shape, &bytes, &units);
            }
        }
    }
}
