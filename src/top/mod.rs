//! Who is denied most, now: heavy hitters in fixed memory.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`space_saving`] | the algorithm: the most frequent names of a stream, with bounds of their counts |
//! | this one | two of them, for this minute and the one before: what is long past hides nothing |
//!
//! Nothing here knows a server or reads a clock.

pub mod space_saving;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use self::space_saving::SpaceSaving;

/// A minute, in microseconds.
pub const MINUTE: i64 = 60_000_000;

/// The names that came most often in this minute and the one before.
///
/// Each minute of the clock is counted by itself, in full; with the next one the minute before the last is forgotten.
/// So a count is of the last one to two minutes, and its bound is the sum of those of two [`SpaceSaving`]s: true ≤
/// [`Row::count`] ≤ true + [`Row::too_high`]. A name that came more than `(n + m) / size` times of `n` in this minute
/// and `m` in the one before is there.
pub struct Top {
    size: usize,
    minute: i64,
    now: SpaceSaving,
    before: SpaceSaving,
    hasher: RandomState,
}

/// A name and how often it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name, cut to [`Name::KEPT`](space_saving::Name::KEPT) bytes.
    pub name: Vec<u8>,
    /// How long it is uncut, in bytes.
    pub length: usize,
    /// At least as often as it came.
    pub count: u64,
    /// The most by which that may be too high.
    pub too_high: u64,
}

impl Top {
    /// Keeps `size` names a minute, at least one.
    pub fn new(size: usize) -> Self {
        let size = size.max(1);
        let (now, before) = (SpaceSaving::new(size), SpaceSaving::new(size));
        Self { size, minute: i64::MIN, now, before, hasher: RandomState::new() }
    }

    /// Counts a name at a time in microseconds since the Unix epoch.
    ///
    /// Names are told apart by a hash of 64 bits with a key of this process's own: of a billion names two are taken for
    /// one with a chance of 3 %, and nobody can choose names for which they are.
    pub fn count(&mut self, name: &[u8], now: i64) {
        self.advance(now);
        self.now.count(self.hasher.hash_one(name), name);
    }

    /// The `most` names that came most often, and first those that did. At equal counts the surer one is first.
    pub fn rows(&mut self, most: usize, now: i64) -> Vec<Row> {
        self.advance(now);
        let mut rows: HashMap<u64, Row> = HashMap::with_capacity(2 * self.size);
        for (here, there) in [(&self.now, &self.before), (&self.before, &self.now)] {
            for entry in here.entries() {
                rows.entry(entry.hash).or_insert_with(|| {
                    // What the other minute does not know may have come there as often as its rarest name.
                    let (count, too_high) = there.of(entry.hash).unwrap_or((there.rarest(), there.rarest()));
                    let (name, length) = (entry.name.kept().to_vec(), entry.name.length());
                    Row { name, length, count: entry.count + count, too_high: entry.too_high + too_high }
                });
            }
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_unstable_by(|a, b| {
            (b.count, a.too_high).cmp(&(a.count, b.too_high)).then_with(|| a.name.cmp(&b.name))
        });
        rows.truncate(most);
        rows
    }

    /// A clock that went back takes what was counted along: it is forgotten as if it had been counted now.
    fn advance(&mut self, now: i64) {
        let minute = now.div_euclid(MINUTE);
        if minute > self.minute {
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.clear();
            if minute > self.minute.saturating_add(1) {
                self.before.clear();
            }
        }
        self.minute = minute;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
