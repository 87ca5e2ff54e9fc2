//! Counters for people who watch the server.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the module was loaded.
///
/// Commands run one at a time, so to read and then write is enough: no instruction that locks, a nanosecond less.
/// Whoever reads at the same time, from wherever, reads a count that was right a moment ago.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// 0.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one more.
    pub fn add_one(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The same, and begins anew.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}
