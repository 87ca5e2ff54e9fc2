//! A block: entries that follow each other, packed.
//!
//! | bytes | field |
//! | --- | --- |
//! | 8 | base: the time of the first entry, in µs |
//! | 4 | number of the first entry |
//! | 1 | format: how many bits of a narrow entry are time, from 56 on: wide |
//! | … | entries |
//!
//! A narrow entry has 7 bytes: microseconds since the base in its low bits, the cost in the rest of the 56. A wide one has 8 bytes for
//! each. Every byte is a possible format and every entry a possible entry, so a block can lie but not be malformed.

use std::ops::Range;

use crate::page::{Page, u32_at, u64_at};
use crate::quantity::{MAX_EXACT, Micros};

/// Bytes before the entries.
pub(super) const HEAD: usize = 13;
/// Bytes of a narrow entry.
pub(super) const NARROW: usize = 7;
const WIDE: usize = 16;
const NARROW_BITS: u32 = 56;
/// Bits for costs that a block starts with if times leave them: most are at most 1000, and to split anew costs a little.
const EVERYDAY_COST_BITS: u32 = 10;

/// What was taken at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Microseconds since the Unix epoch.
    pub(super) time: u64,
    /// Units.
    pub(super) cost: u64,
}

/// How the entries of a block are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format(u8);

impl Format {
    const WIDE: Self = Self(NARROW_BITS as u8);

    /// The one in which entries of a cost of up to so many bits fit whose time, since the base, has up to so many.
    fn holding(time_bits: u32, cost_bits: u32) -> Self {
        match NARROW_BITS.checked_sub(time_bits) {
            Some(left) if cost_bits <= left => {
                let cost_bits = cost_bits.max(EVERYDAY_COST_BITS.min(left));
                // At least one bit goes to the cost, for what fits has one.
                Self(u8::try_from(NARROW_BITS - cost_bits.max(1)).unwrap_or(0))
            }
            _ => Self::WIDE,
        }
    }

    /// Bytes of an entry.
    pub(super) fn width(self) -> usize {
        if self.is_wide() { WIDE } else { NARROW }
    }

    fn is_wide(self) -> bool {
        u32::from(self.0) >= NARROW_BITS
    }

    fn holds(self, time_bits: u32, cost_bits: u32) -> bool {
        self.is_wide() || time_bits <= u32::from(self.0) && cost_bits <= NARROW_BITS - u32::from(self.0)
    }
}

fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// A block to read.
#[derive(Clone, Copy)]
pub(super) struct Block<'a>(&'a [u8]);

impl<'a> Block<'a> {
    /// The block in these bytes of a slot.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The time of the first entry.
    pub(super) fn base(self) -> u64 {
        u64_at(self.0, 0)
    }

    /// The number of the first entry.
    pub(super) fn number(self) -> u32 {
        u32_at(self.0, 8)
    }

    pub(super) fn format(self) -> Format {
        Format(self.0.get(12).copied().unwrap_or(0))
    }

    /// How many entries of the block's format it has room for.
    pub(super) fn capacity(self) -> usize {
        self.0.len().saturating_sub(HEAD) / self.format().width()
    }

    /// Whoever needs only one part of an entry does not pay for the other.
    #[inline(always)]
    pub(super) fn entry(self, index: usize) -> Entry {
        let (since, cost) = match self.format() {
            format if format.is_wide() => {
                let at = HEAD.saturating_add(index.saturating_mul(WIDE));
                (u64_at(self.0, at), u64_at(self.0, at.saturating_add(8)))
            }
            Format(time_bits) => {
                // With the byte before it, which is always there, an entry is eight bytes.
                let packed = u64_at(self.0, (HEAD - 1).saturating_add(index.saturating_mul(NARROW))) >> 8;
                (packed & ((1 << time_bits) - 1), packed >> time_bits)
            }
        };
        Entry { time: self.base().saturating_add(since).min(Micros::MAX.get()), cost: cost.min(MAX_EXACT) }
    }

    /// The units of some entries.
    pub(super) fn costs(self, entries: Range<usize>) -> impl Iterator<Item = u64> {
        let (at, width, shift) = match self.format() {
            format if format.is_wide() => (HEAD + 8, WIDE, 0),
            // As in `entry`.
            Format(time_bits) => (HEAD - 1, NARROW, 8 + u32::from(time_bits)),
        };
        let first = at.saturating_add(entries.start.saturating_mul(width));
        let mut rest = self.0.get(first..).unwrap_or_default();
        entries.map(move |_| {
            let entry = rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            rest = rest.get(width..).unwrap_or_default();
            (entry >> shift).min(MAX_EXACT)
        })
    }

    /// The format in which `new` fits behind the entries of the range, in a block of this base: the present one if it does, so that
    /// nothing has to be written anew.
    pub(super) fn format_with(self, entries: Range<usize>, base: u64, new: Entry) -> Format {
        let time_bits = bits(new.time.saturating_sub(base));
        if self.format().holds(time_bits, bits(new.cost)) && base == self.base() {
            return self.format();
        }
        let widest = |widest: (u32, u32), entry: Entry| {
            (widest.0.max(bits(entry.time.saturating_sub(base))), widest.1.max(bits(entry.cost)))
        };
        let (time_bits, cost_bits) = entries.map(|index| self.entry(index)).chain([new]).fold((0, 0), widest);
        Format::holding(time_bits, cost_bits)
    }
}

/// The format of a block that begins with an entry of this cost.
pub(super) fn first_format(cost: u64) -> Format {
    Format::holding(0, bits(cost))
}

/// Writes the fields before the entries, at the start `at` of a slot.
pub(super) fn write_head(page: &mut Page<'_>, at: usize, base: u64, number: u32, format: Format) {
    page.put_u64(at, base);
    page.put(at.saturating_add(8), &number.to_le_bytes());
    page.put(at.saturating_add(12), &[format.0]);
}

/// Changes the format.
pub(super) fn write_format(page: &mut Page<'_>, at: usize, format: Format) {
    page.put(at.saturating_add(12), &[format.0]);
}

/// Writes an entry of a block with this base and format, which must be able to hold it.
pub(super) fn write_entry(page: &mut Page<'_>, at: usize, base: u64, format: Format, index: usize, entry: Entry) {
    let since = entry.time.saturating_sub(base);
    let at = at.saturating_add(HEAD).saturating_add(index.saturating_mul(format.width()));
    if format.is_wide() {
        page.put_u64(at, since);
        page.put_u64(at.saturating_add(8), entry.cost);
    } else {
        let packed = since & ((1 << format.0) - 1) | entry.cost << format.0;
        let [low @ .., _] = packed.to_le_bytes();
        page.put(at, &low);
    }
}
