//! The bounds, against a model that keeps the whole stream.

use std::collections::{BTreeMap, BTreeSet};

use super::space_saving::{Name, SpaceSaving};
use super::{MINUTE, Row, Top};

/// A small generator of numbers; the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Small numbers come much more often than large ones.
    fn skewed(&mut self, bound: u64) -> u64 {
        let below = self.below(bound) + 1;
        self.below(below)
    }
}

fn name(number: u64) -> Vec<u8> {
    format!("user:{number}").into_bytes()
}

/// Streams that are even, skewed, one name after the other, and made to evict what just came.
fn streams(random: &mut Random) -> Vec<Vec<u64>> {
    let length = 3_000;
    let heavy = |random: &mut Random| if random.below(3) == 0 { 7 } else { 1_000 + random.below(100_000) };
    vec![
        (0..length).map(|_| random.below(50)).collect(),
        (0..length).map(|_| random.skewed(500)).collect(),
        (0..length).collect(),
        (0..length).map(|at| at % 11).collect(),
        (0..length).map(|_| heavy(random)).collect(),
    ]
}

#[test]
fn no_count_is_too_low_or_too_high_by_more_than_it_says_and_no_frequent_name_is_missing() {
    let mut random = Random(42);
    for size in [1, 2, 3, 10, 64] {
        for stream in streams(&mut random) {
            let mut sketch = SpaceSaving::new(size);
            let mut exact = BTreeMap::<u64, u64>::new();
            for (at, &number) in stream.iter().enumerate() {
                sketch.count(number, &name(number));
                *exact.entry(number).or_default() += 1;
                if at % 97 > 0 && at + 1 < stream.len() {
                    continue;
                }
                let counted = at as u64 + 1;
                for entry in sketch.entries() {
                    let truth = exact[&entry.hash];
                    assert_eq!(entry.name.kept(), name(entry.hash));
                    assert_eq!(sketch.of(entry.hash), Some((entry.count, entry.too_high)));
                    assert!(truth <= entry.count && entry.count - entry.too_high <= truth, "size {size}, at {at}");
                    assert!(entry.too_high <= counted / size as u64, "size {size}, at {at}");
                }
                let there: BTreeSet<u64> = sketch.entries().iter().map(|entry| entry.hash).collect();
                assert_eq!(there.len(), exact.len().min(size));
                assert_eq!(sketch.entries().iter().map(|entry| entry.count).sum::<u64>(), counted);
                for (number, &truth) in exact.iter().filter(|(number, _)| !there.contains(number)) {
                    assert!(truth <= counted / size as u64, "{number} is missing: size {size}, at {at}");
                    assert!(truth <= sketch.rarest(), "{number}: size {size}, at {at}");
                }
            }
        }
    }
}

/// The counts of the minute of `now` and the one before, from the whole stream.
fn exact(stream: &[(i64, u64)], now: i64) -> (BTreeMap<Vec<u8>, u64>, [u64; 2]) {
    let (mut counts, mut totals) = (BTreeMap::new(), [0; 2]);
    for &(time, number) in stream {
        let ago = now / MINUTE - time / MINUTE;
        if ago <= 1 {
            *counts.entry(name(number)).or_default() += 1;
            totals[ago as usize] += 1;
        }
    }
    (counts, totals)
}

#[test]
fn over_time_the_bounds_hold_for_this_minute_and_the_one_before() {
    let mut random = Random(7);
    for size in [1, 3, 20] {
        let mut top = Top::new(size);
        let (mut stream, mut now) = (vec![], 1_800_000_000_000_000);
        for step in 0..4_000 {
            now += match random.below(400) {
                0 => 3 * MINUTE,
                1 => MINUTE,
                _ => random.below(400_000) as i64,
            };
            let number = random.skewed(60) + step / 1_000 * 10;
            top.count(&name(number), now);
            stream.push((now, number));
            if step % 53 > 0 {
                continue;
            }
            let (exact, totals) = exact(&stream, now);
            let bound: u64 = totals.iter().map(|total| total / size as u64).sum();
            let rows = top.rows(usize::MAX, now);
            assert!(rows.is_sorted_by(|a, b| a.count >= b.count) && rows.len() <= 2 * size);
            for Row { name, length, count, too_high } in &rows {
                assert_eq!(name.len(), *length);
                let truth = exact[name];
                assert!(truth <= *count && count - too_high <= truth && *too_high <= bound, "size {size}, step {step}");
            }
            for (name, truth) in &exact {
                assert!(*truth <= bound || rows.iter().any(|row| row.name == *name), "size {size}, step {step}");
            }
        }
    }
}

fn told(top: &mut Top, now: i64) -> Vec<(String, u64, u64)> {
    let rows = top.rows(usize::MAX, now).into_iter();
    rows.map(|row| (String::from_utf8(row.name).unwrap(), row.count, row.too_high)).collect()
}

#[test]
fn what_is_long_past_does_not_hide_what_is_going_on() {
    let mut top = Top::new(2);
    (0..1_000).for_each(|_| top.count(b"yesterday", 30 * MINUTE));
    top.count(b"now", 31 * MINUTE);
    assert_eq!(told(&mut top, 31 * MINUTE), [("yesterday".into(), 1_000, 0), ("now".into(), 1, 0)]);
    top.count(b"now", 32 * MINUTE - 1);
    top.count(b"now", 32 * MINUTE);
    assert_eq!(told(&mut top, 32 * MINUTE), [("now".into(), 3, 0)]);
    assert_eq!(told(&mut top, 33 * MINUTE), [("now".into(), 1, 0)]);
    assert_eq!(told(&mut top, 34 * MINUTE), []);
    top.count(b"now", 34 * MINUTE);
    assert_eq!(told(&mut top, 36 * MINUTE), []);
}

#[test]
fn a_clock_that_went_back_keeps_the_counts_and_forgets_them_as_if_they_were_of_now() {
    let mut top = Top::new(2);
    top.count(b"a", 100 * MINUTE);
    top.count(b"b", 101 * MINUTE);
    assert_eq!(told(&mut top, 7 * MINUTE), [("a".into(), 1, 0), ("b".into(), 1, 0)]);
    assert_eq!(told(&mut top, 8 * MINUTE), [("b".into(), 1, 0)]);
    assert_eq!(told(&mut top, 9 * MINUTE), []);
}

#[test]
fn long_names_are_cut_and_still_told_apart() {
    let mut top = Top::new(5);
    let long = |end: u8| [vec![b'x'; 500], vec![end]].concat();
    for (end, times) in [(b'a', 3), (b'b', 2)] {
        (0..times).for_each(|_| top.count(&long(end), 0));
    }
    top.count(&[b'x'; Name::KEPT], 0);
    let rows = top.rows(10, 0);
    let lengths: Vec<_> = rows.iter().map(|row| (row.name.len(), row.length, row.count)).collect();
    assert_eq!(lengths, [(Name::KEPT, 501, 3), (Name::KEPT, 501, 2), (Name::KEPT, Name::KEPT, 1)]);
}

#[test]
fn the_first_are_those_that_came_most_often() {
    let mut top = Top::new(10);
    for number in 1..=5 {
        (0..number).for_each(|_| top.count(&name(number), 0));
    }
    let first: Vec<_> = top.rows(2, 0).into_iter().map(|row| row.name).collect();
    assert_eq!(first, [name(5), name(4)]);
    assert_eq!(top.rows(0, 0), []);
}
