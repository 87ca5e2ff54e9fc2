//! Bytes that are read and written in place, and which of them were touched.
//!
//! Reading outside gives 0 and writing outside does nothing: what the bytes say about themselves may be a lie.

use std::ops::Range;

/// The eight bytes at `at` as an integer; 0 if they are not all there.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    at.checked_add(8).and_then(|end| bytes.get(at..end)?.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The four bytes at `at` as an integer; 0 if they are not all there.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    at.checked_add(4).and_then(|end| bytes.get(at..end)?.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The ranges of bytes that were changed, few and apart from each other. Whoever keeps a copy brings it up to date by these.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    ranges: [Range<usize>; Touched::MOST],
    count: usize,
}

impl Touched {
    /// The most ranges that are told apart.
    pub const MOST: usize = 16;
    /// Ranges with a gap of at most so many bytes are told as one: to name a range costs more than that.
    const GAP: usize = 40;

    /// The ranges, in no order.
    pub fn ranges(&self) -> &[Range<usize>] {
        self.ranges.get(..self.count).unwrap_or(&[])
    }

    fn add(&mut self, mut range: Range<usize>) {
        loop {
            let told = self.ranges.get(..self.count).unwrap_or(&[]);
            let gaps = told
                .iter()
                .map(|other| other.start.saturating_sub(range.end).max(range.start.saturating_sub(other.end)));
            let Some((nearest, gap)) = gaps.enumerate().min_by_key(|&(_, gap)| gap) else { break };
            if gap > Self::GAP && self.count < Self::MOST {
                break;
            }
            // Joined, it may reach others: it is taken out and added anew.
            let Some(other) = self.ranges.get(nearest).cloned() else { break };
            range = range.start.min(other.start)..range.end.max(other.end);
            self.count -= 1;
            self.ranges.swap(nearest, self.count);
        }
        if let Some(free) = self.ranges.get_mut(self.count) {
            *free = range;
            self.count += 1;
        }
    }
}

/// Bytes to write to.
pub(crate) struct Page<'a> {
    bytes: &'a mut [u8],
    touched: Touched,
}

impl<'a> Page<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, touched: Touched::default() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes
    }

    pub(crate) fn touched(self) -> Touched {
        self.touched
    }

    /// Puts `new` at `at`. What is there already isn't touched.
    pub(crate) fn put(&mut self, at: usize, new: &[u8]) {
        let Some(end) = at.checked_add(new.len()) else { return };
        if let Some(old) = self.bytes.get_mut(at..end)
            && old != new
        {
            old.copy_from_slice(new);
            self.touched.add(at..end);
        }
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::Touched;

    #[test]
    fn near_ranges_are_one_and_far_ones_apart() {
        let mut touched = Touched::default();
        for range in [0..10, 1_000..1_010, 60..70, 50..55, 20..30] {
            touched.add(range);
        }
        assert_eq!(touched.ranges(), [1_000..1_010, 0..70]);
    }

    #[test]
    fn there_are_never_more_than_told() {
        let mut touched = Touched::default();
        for start in (0..100).map(|i| (i * 37 % 100) * 1_000) {
            touched.add(start..start + 1);
        }
        assert_eq!(touched.ranges().len(), Touched::MOST);
        for start in (0..100).map(|i| i * 1_000) {
            assert!(touched.ranges().iter().any(|range| range.contains(&start)));
        }
    }
}
