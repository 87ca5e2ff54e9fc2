//! What callers know: what was answered must count, what was not may.

use std::collections::BTreeSet;

use super::call::Call;

/// What one caller, or all of them, know of each limiter since a moment at which all was known.
#[derive(Clone)]
pub struct Ledger {
    /// What is used by the replies that came.
    answered: Vec<i64>,
    /// What each call may have added whose reply did not come.
    unanswered: Vec<Vec<Vec<i64>>>,
    /// Calls that were answered and changed something.
    pub changes: u64,
    /// Calls that were not answered.
    pub in_flight: u64,
}

impl Ledger {
    pub fn new(limiters: usize) -> Self {
        Self { answered: vec![0; limiters], unanswered: vec![vec![]; limiters], changes: 0, in_flight: 0 }
    }

    pub fn answered(&mut self, call: &Call, change: i64) {
        self.answered[call.limiter] += change;
        self.changes += u64::from(change != 0);
    }

    pub fn unanswered(&mut self, call: &Call) {
        self.unanswered[call.limiter].push(call.possible());
        self.in_flight += 1;
    }

    pub fn add(&mut self, other: Self) {
        self.answered.iter_mut().zip(other.answered).for_each(|(sum, more)| *sum += more);
        self.unanswered.iter_mut().zip(other.unanswered).for_each(|(all, more)| all.extend(more));
        self.changes += other.changes;
        self.in_flight += other.in_flight;
    }

    /// What has been added to a limiter by what was answered.
    pub fn certain(&self, limiter: usize) -> i64 {
        self.answered[limiter]
    }

    /// The units of all limiters that were admitted and not given back.
    pub fn admitted(&self) -> i64 {
        self.answered.iter().map(|added| added.max(&0)).sum()
    }

    /// All that can have been added to a limiter: each unanswered call counts wholly or not at all.
    pub fn possible(&self, limiter: usize) -> BTreeSet<i64> {
        let certain = BTreeSet::from([self.answered[limiter]]);
        self.unanswered[limiter].iter().fold(certain, |sums, choices| {
            sums.iter().flat_map(|sum| choices.iter().map(move |choice| sum + choice)).collect()
        })
    }
}
