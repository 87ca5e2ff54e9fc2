//! Rows: a name and a few numbers each, at the end of a state.
//!
//! | bytes | field |
//! | --- | --- |
//! | 2 | rows in use |
//! | 1 | words of a name's slot, from 1 to 8 |
//! | 1 | numbers of a row |
//! | … | rows: the slot, then the numbers, 8 bytes each |
//! | … | room for more rows; it holds zeros that nobody reads |
//!
//! A row has one size in all of a state, and a slot as many words of 8 bytes as the longest name needs: short names make short rows. A name is
//! filled up with zeros; its length is in the high 8 bits of the row's first number, which has 56.
//!
//! Rows are in no order. A row that is removed is overwritten by the last one, so a change writes few bytes whatever the number of
//! rows. There is room for as many as the allocation takes, which is a quarter more at most; when less than a quarter is in use the
//! state is made anew. To find a name takes a look at every row, but mostly at a word and a length: the last word, for names
//! often begin alike.
//!
//! Nothing here is believed: numbers of a row may be any, names may be there twice, and what is outside is not touched.

use crate::allocation::{allocated, around};
use crate::page::Page;
use crate::quantity::Name;

/// The most rows.
pub(crate) const MOST: usize = 10_000;
/// Bytes before the rows.
pub(crate) const HEAD: usize = 4;
const WORD: usize = 8;
/// Where the length of a name is in the first number of its row.
const LENGTH_AT: u32 = 56;
const FIRST_NUMBER: u64 = (1 << LENGTH_AT) - 1;

/// The size of rows with `N` numbers, and for how many there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape<const N: usize> {
    /// Bytes of a name's slot.
    slot: usize,
    capacity: usize,
}

impl<const N: usize> Shape<N> {
    /// For so many rows with names of at most `longest` bytes, behind `before` bytes of the same string, and with what room its
    /// allocation has.
    pub(crate) fn of(before: usize, rows: usize, longest: usize) -> Self {
        let slot = longest.clamp(1, Name::LONGEST).next_multiple_of(WORD);
        let least = Self { slot, capacity: rows.clamp(1, MOST) };
        let bytes = before.saturating_add(least.length());
        let room = allocated(bytes.saturating_add(around(bytes))).saturating_sub(around(bytes)).saturating_sub(bytes);
        Self { slot, capacity: least.capacity.saturating_add(room / least.row()) }
    }

    /// Whether some rows have this length.
    pub(crate) fn has_length(length: usize) -> bool {
        let rows = length.saturating_sub(HEAD);
        // Says "no" at once to most strings that are something else.
        if !rows.is_multiple_of(WORD) {
            return false;
        }
        let has = |words: usize| {
            let shape = Self { slot: words * WORD, capacity: 1 };
            rows > 0 && rows.is_multiple_of(shape.row()) && rows / shape.row() <= Self::MOST_CAPACITY
        };
        (1..=Name::LONGEST / WORD).any(has)
    }

    /// With what room an allocation has.
    const MOST_CAPACITY: usize = MOST + MOST / 4;

    /// Whether so many rows can be kept in it, one of a name of `longest` bytes, without wasting room.
    pub(crate) fn suits(self, rows: usize, longest: usize) -> bool {
        longest <= self.slot && rows <= self.capacity && rows.saturating_mul(4) >= self.capacity
    }

    /// Bytes of a row.
    fn row(self) -> usize {
        self.slot + N * WORD
    }

    /// Bytes of rows of this shape, head and room included.
    pub(crate) fn length(self) -> usize {
        HEAD.saturating_add(self.capacity.saturating_mul(self.row()))
    }

    /// The head of so many rows.
    fn head(self, count: usize) -> [u8; HEAD] {
        let small = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
        let [low, high] = u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes();
        [low, high, small(self.slot / WORD), small(N)]
    }
}

/// Eight bytes of a row.
type Word = [u8; WORD];

/// A name to look for.
#[derive(Clone, Copy)]
pub(crate) struct Sought<'a> {
    name: &'a [u8],
    /// Which word of a slot is its last one, and that word as it is there.
    last_at: usize,
    last: Word,
}

impl<'a> Sought<'a> {
    pub(crate) fn new(name: Name<'a>) -> Self {
        let name = name.get();
        let last_at = name.len().saturating_sub(1) / WORD;
        let mut last = [0; WORD];
        last.iter_mut().zip(name.iter().skip(last_at * WORD)).for_each(|(byte, of)| *byte = *of);
        Self { name, last_at, last }
    }
}

/// A name of its own, for what outlives the call's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnName {
    bytes: [u8; Name::LONGEST],
    length: usize,
}

impl OwnName {
    pub(crate) fn of(name: Name<'_>) -> Self {
        let mut bytes = [0; Name::LONGEST];
        bytes.iter_mut().zip(name.get()).for_each(|(byte, of)| *byte = *of);
        Self { bytes, length: name.get().len() }
    }

    pub(crate) fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// A row to read.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, const N: usize> {
    slot: &'a [Word],
    numbers: &'a [Word; N],
}

impl<'a, const N: usize> Row<'a, N> {
    /// `None` if there are too few words.
    fn of(words: &'a [Word]) -> Option<Self> {
        let (slot, numbers) = words.split_last_chunk()?;
        Some(Self { slot, numbers })
    }

    /// The numbers of the row. The first has at most 56 bits.
    pub(crate) fn numbers(self) -> [u64; N] {
        let mut numbers = self.numbers.map(u64::from_le_bytes);
        if let Some(first) = numbers.first_mut() {
            *first &= FIRST_NUMBER;
        }
        numbers
    }

    /// Whose row it is. Of a row that somebody planted it may be empty.
    pub(crate) fn name(self) -> &'a [u8] {
        let slot = self.slot.as_flattened();
        slot.get(..self.length()).unwrap_or(slot)
    }

    /// Whether it is the row of this name.
    pub(crate) fn is(self, sought: Sought<'_>) -> bool {
        self.slot.get(sought.last_at) == Some(&sought.last)
            && self.length() == sought.name.len()
            && self.name() == sought.name
    }

    /// Bytes of the name.
    fn length(self) -> usize {
        self.numbers.first().map_or(0, |first| (u64::from_le_bytes(*first) >> LENGTH_AT) as usize)
    }
}

/// Rows to read.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, const N: usize> {
    shape: Shape<N>,
    count: usize,
    /// Those in use.
    words: &'a [Word],
}

impl<'a, const N: usize> Rows<'a, N> {
    /// The rows in these bytes; `None` if they have not the length that the head demands, or more rows than they have room for or
    /// than there may be.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&[low, high, words, numbers], rows) = bytes.split_first_chunk()?;
        let (count, words) = (usize::from(u16::from_le_bytes([low, high])), usize::from(words));
        if !(1..=Name::LONGEST / WORD).contains(&words) || usize::from(numbers) != N {
            return None;
        }
        let one = Shape { slot: words * WORD, capacity: 1 };
        let shape = Shape { capacity: rows.len() / one.row(), ..one };
        let plausible = bytes.len() == shape.length()
            && (1..=Shape::<N>::MOST_CAPACITY).contains(&shape.capacity)
            && count <= shape.capacity.min(MOST);
        let words = rows.get(..count * shape.row())?.as_chunks().0;
        plausible.then_some(Self { shape, count, words })
    }

    /// None.
    pub(crate) const NONE: Self = Self { shape: Shape { slot: WORD, capacity: 0 }, count: 0, words: &[] };

    pub(crate) fn shape(self) -> Shape<N> {
        self.shape
    }

    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// The row of this index.
    pub(crate) fn get(self, index: usize) -> Option<Row<'a, N>> {
        let words = self.shape.row() / WORD;
        Row::of(self.words.get(index * words..)?.get(..words)?)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Row<'a, N>> + Clone {
        self.words.chunks_exact(self.shape.row() / WORD).filter_map(Row::of)
    }
}

/// Rows to change.
pub(crate) struct Writer<'p, 'a, const N: usize> {
    page: &'p mut Page<'a>,
    /// Where the head is.
    at: usize,
    shape: Shape<N>,
    count: usize,
}

impl<'p, 'a, const N: usize> Writer<'p, 'a, N> {
    /// The rows whose head is at `at`; `None` if there are none.
    pub(crate) fn open(page: &'p mut Page<'a>, at: usize) -> Option<Self> {
        let rows = Rows::read(page.bytes().get(at..)?)?;
        let (shape, count) = (rows.shape(), rows.count());
        Some(Self { page, at, shape, count })
    }

    /// No rows yet, in bytes that are all zero from `at` on.
    pub(crate) fn empty(page: &'p mut Page<'a>, at: usize, shape: Shape<N>) -> Self {
        Self { page, at, shape, count: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The row of this index.
    pub(crate) fn row(&self, index: usize) -> Option<Row<'_, N>> {
        Row::of(self.page.bytes().get(self.row_at(index)..self.row_at(index + 1))?.as_chunks().0)
    }

    /// Gives a row other numbers.
    pub(crate) fn set(&mut self, index: usize, numbers: [u64; N]) {
        if index < self.count {
            let length = self.row(index).map_or(0, Row::length);
            self.put_numbers(index, length, numbers);
        }
    }

    /// Adds a row, for which there must be room and in whose slot the name must fit.
    pub(crate) fn push(&mut self, name: &[u8], numbers: [u64; N]) {
        if self.count >= self.shape.capacity || name.len() > self.shape.slot {
            return;
        }
        let mut slot = [0; Name::LONGEST];
        slot.iter_mut().zip(name).for_each(|(byte, of)| *byte = *of);
        let index = self.count;
        self.count += 1;
        self.page.put(self.row_at(index), slot.get(..self.shape.slot).unwrap_or_default());
        self.put_numbers(index, name.len(), numbers);
    }

    /// Removes a row; the last one takes its place.
    pub(crate) fn remove(&mut self, index: usize) {
        let Some(last) = self.count.checked_sub(1).filter(|&last| index <= last) else { return };
        let mut row = [0; Name::LONGEST + 8 * WORD];
        let Some(row) = row.get_mut(..self.shape.row()) else { return };
        if index < last
            && let Some(bytes) = self.page.bytes().get(self.row_at(last)..self.row_at(self.count))
        {
            row.copy_from_slice(bytes);
            self.page.put(self.row_at(index), row);
            row.fill(0);
        }
        self.page.put(self.row_at(last), row);
        self.count = last;
    }

    /// Writes the head.
    pub(crate) fn finish(self) {
        self.page.put(self.at, &self.shape.head(self.count));
    }

    fn put_numbers(&mut self, index: usize, length: usize, numbers: [u64; N]) {
        let at = self.row_at(index) + self.shape.slot;
        for (place, number) in numbers.into_iter().enumerate() {
            let number = if place == 0 { number & FIRST_NUMBER | (length as u64) << LENGTH_AT } else { number };
            self.page.put_u64(at + place * WORD, number);
        }
    }

    fn row_at(&self, index: usize) -> usize {
        self.at + HEAD + index * self.shape.row()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{HEAD, MOST, Rows, Shape, Sought, Writer};
    use crate::page::Page;
    use crate::quantity::Name;

    const BEFORE: usize = 12;

    fn name(of: u64) -> Vec<u8> {
        // Short and long ones, some of which differ at one end only.
        let bytes = format!("{of:04}-the-same-in-the-middle-{of:0width$}", width = (of % 37) as usize);
        let start = if of.is_multiple_of(2) { bytes.len() - 4 } else { 0 };
        bytes.into_bytes()[start..].iter().copied().take(Name::LONGEST).collect()
    }

    fn sought(name: &[u8]) -> Sought<'_> {
        Sought::new(Name::new(name).unwrap())
    }

    fn bytes_of<const N: usize>(rows: &[(Vec<u8>, [u64; N])], shape: Shape<N>) -> Vec<u8> {
        let mut bytes = vec![0; BEFORE + shape.length()];
        let mut page = Page::new(&mut bytes);
        let mut writer = Writer::empty(&mut page, BEFORE, shape);
        rows.iter().for_each(|(name, numbers)| writer.push(name, *numbers));
        writer.finish();
        bytes
    }

    fn told<const N: usize>(bytes: &[u8]) -> Vec<(Vec<u8>, [u64; N])> {
        let rows = Rows::<N>::read(&bytes[BEFORE..]).unwrap();
        rows.iter().map(|row| (row.name().to_vec(), row.numbers())).collect()
    }

    /// Numbers that look random: an LCG's high bits.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*state >> 33).unwrap()
    }

    #[test]
    fn rows_are_those_that_were_put_there_whatever_was_removed() {
        let mut state = 7;
        let shape = Shape::<4>::of(BEFORE, 60, Name::LONGEST);
        let mut list: Vec<(Vec<u8>, [u64; 4])> = Vec::new();
        let mut bytes = bytes_of(&list, shape);
        let mut copy = bytes.clone();
        for step in 0..20_000 {
            let mut page = Page::new(&mut bytes);
            let mut writer = Writer::<4>::open(&mut page, BEFORE).unwrap();
            let numbers = std::array::from_fn(|_| next(&mut state) as u64);
            match next(&mut state) % 5 {
                0..=1 if list.len() < 60 && (step / 500) % 2 == 0 => {
                    let name = name(step);
                    writer.push(&name, numbers);
                    list.push((name, numbers));
                }
                2..=3 if !list.is_empty() => {
                    let index = next(&mut state) % list.len();
                    writer.remove(index);
                    list.swap_remove(index);
                }
                _ if !list.is_empty() => {
                    let index = next(&mut state) % list.len();
                    writer.set(index, numbers);
                    list[index].1 = numbers;
                }
                _ => {}
            }
            assert_eq!(writer.count(), list.len());
            writer.finish();
            let touched = page.touched();
            for range in touched.ranges() {
                copy[range.clone()].copy_from_slice(&bytes[range.clone()]);
            }
            assert!(bytes == copy, "what was touched is not all that changed");
            let most = HEAD + 2 * (shape.length() / 60) + 40;
            assert!(touched.ranges().iter().map(|range| range.len()).sum::<usize>() <= most);
            assert_eq!(told::<4>(&bytes), list);
            let rows = Rows::<4>::read(&bytes[BEFORE..]).unwrap();
            for (index, (name, _)) in list.iter().enumerate() {
                assert_eq!(rows.iter().position(|row| row.is(sought(name))), Some(index));
            }
            let used = BEFORE + HEAD + list.len() * 96;
            assert!(bytes[used..].iter().all(|&byte| byte == 0), "the room is not zero");
        }
    }

    #[test]
    fn a_name_is_found_whatever_is_alike() {
        let names = ["a", "b", "aa", "a\0", "12345678", "123456789", "x2345678x", "12345678\0", "02345678x"];
        for missing in 0..names.len() {
            let rows: Vec<_> = names.iter().map(|name| (name.as_bytes().to_vec(), [1; 3])).collect();
            let bytes = bytes_of(&rows, Shape::<3>::of(BEFORE, 9, 9));
            let rows = Rows::<3>::read(&bytes[BEFORE..]).unwrap();
            let found: Vec<_> = rows.iter().map(|row| row.is(sought(names[missing].as_bytes()))).collect();
            assert_eq!(found.iter().filter(|&&found| found).count(), 1);
            assert!(found[missing]);
            let long = [b'1'; Name::LONGEST];
            assert!(!rows.iter().any(|row| row.is(sought(&long))), "longer than a slot");
        }
    }

    #[test]
    fn a_shape_fills_its_allocation_and_grows_by_a_quarter_at_most() {
        for longest in [1, 8, 9, 36, 64] {
            let mut last = Shape::<3>::of(BEFORE, 1, longest);
            assert_eq!(last.capacity, 1);
            for rows in 1..=MOST {
                let shape = Shape::<3>::of(BEFORE, rows, longest);
                assert!(shape.capacity >= rows && shape.suits(rows, longest));
                assert!(shape.capacity - rows <= rows / 4, "{rows} rows have room for {}", shape.capacity);
                if rows <= last.capacity {
                    assert_eq!(shape, last);
                }
                assert!(Shape::<3>::has_length(shape.length()));
                assert!(Rows::<3>::read(&bytes_of(&[], shape)[BEFORE..]).is_some());
                last = shape;
            }
        }
    }

    #[test]
    fn a_shape_no_longer_suits_below_a_quarter() {
        let shape = Shape::<3>::of(BEFORE, 100, 8);
        let least = shape.capacity.div_ceil(4);
        assert!(shape.suits(least, 8) && !shape.suits(least - 1, 8));
        assert!(!shape.suits(shape.capacity + 1, 8) && !shape.suits(100, 9));
    }

    #[test]
    fn what_lies_about_its_size_is_refused() {
        let rows: Vec<_> = (0..5).map(|of| (name(of), [of; 3])).collect();
        let shape = Shape::<3>::of(BEFORE, 5, Name::LONGEST);
        let good = bytes_of(&rows, shape)[BEFORE..].to_vec();
        assert!(Rows::<3>::read(&good).is_some());
        assert!(Rows::<4>::read(&good).is_none(), "other numbers");
        for length in 0..good.len() {
            let cut = &good[..length];
            assert!(Rows::<3>::read(cut).is_none_or(|rows| rows.count() == 5 && cut.len() > 5 * 88));
        }
        for (at, value) in [(0, u8::MAX), (1, 1), (2, 0), (2, 9), (2, 7), (2, u8::MAX), (3, 0)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(Rows::<3>::read(&bad).is_none(), "byte {at} is {value}");
        }
        let most = Shape::<3> { slot: 64, capacity: MOST + MOST / 4 };
        let too_long = vec![0; most.length() + 88];
        assert!(!Shape::<3>::has_length(too_long.len()) && Shape::<3>::has_length(most.length()));
    }

    /// Any bytes behind a head that is right.
    #[test]
    fn rows_that_lie_do_no_harm() {
        let mut state = 3;
        for round in 0..2_000 {
            let shape = Shape::<3>::of(BEFORE, 1 + round % 9, 1 + round % 64);
            let mut bytes = bytes_of(&[], shape);
            bytes.iter_mut().for_each(|byte| *byte = next(&mut state).to_le_bytes()[0]);
            let count = next(&mut state) % (shape.capacity + 1);
            bytes[BEFORE..BEFORE + HEAD].copy_from_slice(&shape.head(count));
            let rows = Rows::<3>::read(&bytes[BEFORE..]).unwrap();
            for row in rows.iter() {
                assert!(row.name().len() <= 64 && row.numbers()[0] < 1 << 56);
                let _ = row.is(sought(&name(round as u64)));
            }
            let mut page = Page::new(&mut bytes);
            let mut writer = Writer::<3>::open(&mut page, BEFORE).unwrap();
            writer.remove(next(&mut state) % 12);
            writer.set(next(&mut state) % 12, [u64::MAX; 3]);
            writer.push(&[b'x'; 64], [u64::MAX; 3]);
            writer.push(b"x", [u64::MAX; 3]);
            writer.finish();
            assert!(Rows::<3>::read(&bytes[BEFORE..]).is_some());
        }
    }
}
