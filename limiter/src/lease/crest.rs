//! What rows that expire one after the other do to what is spent.
//!
//! While no row expires, what is spent falls by what is refilled, and not below what is in rows. Hence at a moment `t` it is the most
//! of: what was spent at first, less all that was refilled; what is in rows at `t`; and for every row that has expired, at `e`, what was
//! in rows just before `e`, less what was refilled since. So the most over the rows of `refilled until e + in rows just before e` is all
//! that they mean for later: the *crest*.
//!
//! Rows are in no order. Many are put in parts by when they expire: bounds of each part rule out most of them, and only the rows of
//! the others are looked at again and sorted. Nothing is allocated unless somebody planted more rows than there may be.

use std::cell::OnceCell;
use std::iter;

use super::refill::Level;
use super::row::{Held, MAX_ROWS, NUMBERS, Stamp};
use crate::rows::Rows;

/// So few rows are sorted at once.
const FEW: usize = 32;
/// Into so many parts time is cut in which more rows expire.
const PARTS: usize = 256;
/// The most rows, and one more.
const MOST: usize = MAX_ROWS + 1;

/// Rows that expire.
pub(crate) struct Expiries<'a> {
    rows: Rows<'a, NUMBERS>,
    stamp: Stamp,
    /// Those that expire after this moment.
    after: u64,
    /// And not after this one.
    until: u64,
    /// But not that at this index.
    except: usize,
    /// And this one.
    more: Option<Held>,
    /// None expires before this moment.
    first: u64,
    parts: OnceCell<Parts>,
}

/// Rows by the part of the time in which they expire.
struct Parts {
    tokens: [u64; PARTS],
    /// The number of the last row of each part, and to each row that of the one before it in its part. Numbers are from 1 on, 0 is none.
    last: [u16; PARTS],
    before: [u16; MOST + 1],
}

impl<'a> Expiries<'a> {
    /// The rows, seen from a stamp, that expire after `after` and not after `until`; none does before `first`.
    pub(crate) fn new(rows: Rows<'a, NUMBERS>, stamp: Stamp, after: u64, first: u64, until: u64) -> Self {
        let (except, more, parts) = (usize::MAX, None, OnceCell::new());
        Self { rows, stamp, after, until, except, more, first: first.min(until), parts }
    }

    /// With this one in place of that at an index.
    pub(crate) fn with(self, except: Option<usize>, more: Held) -> Self {
        let (first, until) = (self.first.min(more.until), self.until.max(more.until));
        Self { except: except.unwrap_or(usize::MAX), more: Some(more), first, until, ..self }
    }

    /// The most, over these rows, of what is refilled from the level until a row expires and what was in rows just before, as far as that
    /// is more than `most` parts; and at least what is spent at the level. The rows must be all that have tokens out.
    pub(crate) fn crest(&self, level: &Level, most: u128) -> u128 {
        let (begin, outstanding) = (level.spent(), level.outstanding());
        let climb = Climb { level, most, crest: begin };
        // Mostly no row is in the way.
        if !climb.is_exceeded(self.until, outstanding) {
            return begin;
        }
        let over_all = |rows: &[Held]| climb.over(rows, outstanding);
        if let Some(crest) = sorted::<FEW>(self.held(), over_all) {
            return crest;
        }
        if self.rows.count() <= MAX_ROWS {
            return self.over_parts(self.parts.get_or_init(|| self.parts()), climb);
        }
        sorted::<MOST>(self.held(), over_all).unwrap_or_else(|| {
            let mut planted: Vec<Held> = self.held().collect();
            planted.sort_unstable_by_key(|held| held.until);
            over_all(&planted)
        })
    }

    /// These rows and their indices. A row without tokens changes nothing.
    fn indexed(&self) -> impl Iterator<Item = (usize, Held)> {
        let rows = self.rows.iter().map(|row| Held::seen(row, self.stamp)).enumerate();
        let these = rows.filter(|(index, held)| {
            self.after < held.until && held.until <= self.until && *index != self.except && held.tokens > 0
        });
        these.chain(self.more.filter(|more| more.tokens > 0).map(|more| (self.rows.count(), more)))
    }

    fn held(&self) -> impl Iterator<Item = Held> {
        self.indexed().map(|(_, held)| held)
    }

    fn parts(&self) -> Parts {
        let mut parts = Parts { tokens: [0; PARTS], last: [0; PARTS], before: [0; MOST + 1] };
        let span = self.span();
        self.indexed().for_each(|(index, held)| {
            let part = span.part_of(held.until);
            parts.tokens[part] = parts.tokens[part].saturating_add(held.tokens);
            if let Some(before) = parts.before.get_mut(index + 1) {
                *before = parts.last[part];
                parts.last[part] = index as u16 + 1;
            }
        });
        parts
    }

    /// The rows of a part.
    fn of_part(&self, parts: &Parts, part: usize) -> impl Iterator<Item = Held> {
        let number = |number: &u16| Some(usize::from(*number)).filter(|&number| number > 0);
        let last = parts.last.get(part).and_then(number);
        let numbers = iter::successors(last, move |&at| parts.before.get(at).and_then(number));
        numbers.filter_map(|number| {
            let row = self.rows.get(number - 1).map(|row| Held::seen(row, self.stamp));
            row.or(self.more)
        })
    }

    fn span(&self) -> Span {
        let shift = (u64::BITS - (self.until - self.first).leading_zeros()).saturating_sub(PARTS.ilog2());
        Span { first: self.first, shift }
    }

    fn over_parts(&self, parts: &Parts, mut climb: Climb<'_>) -> u128 {
        let span = self.span();
        // The first row of a part comes to at least this.
        let mut outstanding = climb.level.outstanding();
        for (part, &tokens) in parts.tokens.iter().enumerate().filter(|(_, tokens)| **tokens > 0) {
            climb.meet(span.begin(part), outstanding);
            outstanding = outstanding.saturating_sub(tokens);
        }
        // And none to more than if it were the last one and all were still there.
        let mut outstanding = climb.level.outstanding();
        for (part, &tokens) in parts.tokens.iter().enumerate().filter(|(_, tokens)| **tokens > 0) {
            if climb.is_exceeded(span.end(part).min(self.until), outstanding) {
                let over_part = |rows: &[Held]| climb.over(rows, outstanding);
                let crest = sorted::<FEW>(self.of_part(parts, part), over_part);
                let crest = crest.or_else(|| sorted::<MOST>(self.of_part(parts, part), over_part));
                climb.crest = crest.unwrap_or(climb.crest);
            }
            outstanding = outstanding.saturating_sub(tokens);
        }
        climb.crest
    }
}

/// How time is cut into parts: from the first moment on, each as long as a power of two.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    shift: u32,
}

impl Span {
    fn part_of(self, until: u64) -> usize {
        (until.wrapping_sub(self.first) >> self.shift) as usize % PARTS
    }

    /// The first and the last moment of a part.
    fn begin(self, part: usize) -> u64 {
        self.first.saturating_add((part as u64) << self.shift)
    }

    fn end(self, part: usize) -> u64 {
        self.begin(part).saturating_add((1 << self.shift) - 1)
    }
}

/// The crest as far as rows have been met.
#[derive(Clone, Copy)]
struct Climb<'l> {
    level: &'l Level,
    most: u128,
    crest: u128,
}

impl Climb<'_> {
    /// What a row comes to that expires at a moment, with so many tokens in rows just before; `None` if it doesn't count.
    fn height(&self, until: u64, outstanding: u64) -> Option<u128> {
        let kept = self.level.kept(outstanding);
        (kept > self.most).then(|| kept + self.level.refilled_until(until))
    }

    fn is_exceeded(&self, until: u64, outstanding: u64) -> bool {
        self.height(until, outstanding).is_some_and(|height| height > self.crest)
    }

    fn meet(&mut self, until: u64, outstanding: u64) {
        if let Some(height) = self.height(until, outstanding) {
            self.crest = self.crest.max(height);
        }
    }

    /// Over rows in the order of their expiry, with so many tokens in rows before the first expires.
    fn over(mut self, rows: &[Held], mut outstanding: u64) -> u128 {
        for held in rows {
            self.meet(held.until, outstanding);
            outstanding = outstanding.saturating_sub(held.tokens);
        }
        self.crest
    }
}

/// What is made of up to `N` rows in the order of their expiry; `None` if there are more.
fn sorted<const N: usize>(mut rows: impl Iterator<Item = Held>, then: impl FnOnce(&[Held]) -> u128) -> Option<u128> {
    let mut sorted = [Held::NONE; N];
    let mut count = 0;
    for (slot, held) in sorted.iter_mut().zip(rows.by_ref()) {
        *slot = held;
        count += 1;
    }
    if count == N && rows.next().is_some() {
        return None;
    }
    let sorted = sorted.get_mut(..count)?;
    sorted.sort_unstable_by_key(|held| held.until);
    Some(then(sorted))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Expiries, Held, NUMBERS, Stamp};
    use crate::lease::refill::Level;
    use crate::page::Page;
    use crate::quantity::{Capacity, Micros, Rate};
    use crate::rows::{Rows, Shape, Writer};
    use crate::token_bucket::TokenBucket;

    const NOW: u64 = 1_796_040_000_000_000;

    /// Numbers that look random: an LCG's high bits.
    fn next(state: &mut u64, end: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 20) % end.max(1)
    }

    fn bytes_of(rows: &[(u64, u64)]) -> Vec<u8> {
        let shape = Shape::<NUMBERS>::of(0, rows.len(), 8);
        let mut bytes = vec![0; shape.length()];
        let mut page = Page::new(&mut bytes);
        let mut writer = Writer::empty(&mut page, 0, shape);
        rows.iter().for_each(|&(until, tokens)| writer.push(b"node", [tokens, until, 1, 0]));
        writer.finish();
        bytes
    }

    /// A bucket, by the definition: row after row, in tokens' parts, each moment at which something changes.
    struct Slow {
        capacity: u128,
        units: u128,
        micros: u128,
        at: u128,
        spent: u128,
        outstanding: u128,
    }

    impl Slow {
        fn kept(&self) -> u128 {
            self.outstanding.min(self.capacity) * self.micros
        }

        fn passes_to(&mut self, at: u128) {
            if self.outstanding <= self.capacity {
                self.spent = self.spent.saturating_sub((at - self.at) * self.units).max(self.kept());
            }
            self.at = at;
        }

        /// Until at most so many parts are spent, in microseconds from the moment where it is.
        fn waits(mut self, most: u128, rows: &[(u64, u64)]) -> u128 {
            let begin = self.at;
            for &(until, tokens) in rows {
                let flows = self.spent.saturating_sub(most).div_ceil(self.units);
                if self.outstanding <= self.capacity && self.kept() <= most && self.at + flows <= until.into() {
                    return self.at + flows - begin;
                }
                if self.spent <= most {
                    return self.at - begin;
                }
                self.passes_to(until.into());
                self.outstanding -= u128::from(tokens);
            }
            self.at + self.spent.saturating_sub(most).div_ceil(self.units) - begin
        }
    }

    #[test]
    fn it_is_what_comes_of_letting_row_after_row_expire() {
        let mut state = 3;
        for round in 0..2_000 {
            let count = [1, 2, 31, 32, 33, 34, 100, 600, 1_024, 1_100][(round % 10) as usize];
            let count = if round % 50 > 9 { count.min(100) } else { count };
            // All at once, or over any time; at random, as dense as refill is quick, or most of them close together.
            let spread = 1_u64 << next(&mut state, 34);
            let (units, micros) = (1 + next(&mut state, 50), 1 + next(&mut state, 100_000));
            let shape = next(&mut state, 3);
            let mut rows: Vec<(u64, u64)> = (0..count)
                .map(|row| {
                    let tokens = next(&mut state, 6);
                    let after = match shape {
                        0 => next(&mut state, spread),
                        1 => row * 5 * micros / units / 2 + next(&mut state, micros),
                        _ if row == 0 => spread,
                        _ => next(&mut state, 300),
                    };
                    (NOW + 1 + after, tokens)
                })
                .collect();
            let bytes = bytes_of(&rows);
            let given = Rows::read(&bytes).unwrap();
            // One says something else, and is told beside them.
            let other = next(&mut state, count) as usize;
            let (until, tokens) = std::mem::replace(&mut rows[other], (NOW + 1, 77));
            let other_bytes = bytes_of(&rows);
            let others = Rows::read(&other_bytes).unwrap();
            let told = Held { until, tokens };
            rows[other] = (until, tokens);
            rows.sort_unstable();
            let outstanding: u64 = rows.iter().map(|row| row.1).sum();
            let capacity = match next(&mut state, 3) {
                0 => outstanding + next(&mut state, 100),
                1 => outstanding / 2,
                _ => next(&mut state, 2 * outstanding + 2),
            };
            let rate = Rate::new(units, micros).unwrap();
            let limiter = TokenBucket::new(Capacity::new(capacity).unwrap(), rate);
            let (units, micros) = (rate.units(), rate.micros());
            let spent = limiter.parts(next(&mut state, 2 * capacity + 1));
            let level = Level::new(limiter, Micros::new(NOW).unwrap(), spent, outstanding);
            let slow = || Slow {
                capacity: capacity.into(),
                units: units.into(),
                micros: micros.into(),
                at: NOW.into(),
                spent: level.spent(),
                outstanding: outstanding.into(),
            };
            let (first, last) = (rows.first().unwrap().0, rows.last().unwrap().0);
            // The first may be told too early.
            let first = [first, NOW + 1][(round % 2) as usize];
            // From here they are seen as they are stored.
            let stamp = Stamp::new(Micros::MAX);
            let of_all = Expiries::new(given, stamp, NOW, first, last);
            let of_others = Expiries::new(others, stamp, NOW, first, last).with(Some(other), told);
            for most in [0, limiter.parts(capacity / 2), limiter.parts(capacity.saturating_sub(1)), level.spent()] {
                let context = format!("round {round}, {count} rows, {most}");
                assert_eq!(level.micros_until(most, &of_all), slow().waits(most, &rows), "{context}");
                assert_eq!(level.micros_until(most, &of_others), slow().waits(most, &rows), "{context}");
            }

            // Some have expired.
            let now = rows[next(&mut state, count) as usize].0 + next(&mut state, 1_000);
            let gone = rows.iter().filter(|row| row.0 <= now);
            let mut passed = level;
            let expired = Expiries::new(given, stamp, NOW, first, now.min(last));
            passed.pass(&expired, gone.map(|row| row.1).sum(), Micros::new(now).unwrap());
            let mut slow = slow();
            for &(until, tokens) in rows.iter().filter(|row| row.0 <= now) {
                slow.passes_to(until.into());
                slow.outstanding -= u128::from(tokens);
            }
            slow.passes_to(now.into());
            assert_eq!((passed.spent(), u128::from(passed.outstanding())), (slow.spent, slow.outstanding), "{round}");
        }
    }
}
