//! A wall clock that a test sets, for a server to live by.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::preload;

/// 2027-07-01 12:00:00 UTC and half a second, in microseconds.
pub const NOON: i64 = 1_814_443_200_500_000;

/// In microseconds.
pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3_600 * SECOND;

/// A wall clock that stands still until it is set.
pub struct Clock {
    file: File,
    path: PathBuf,
    now: i64,
}

impl Clock {
    pub fn new(folder: &Path) -> Self {
        let path = folder.join("clock");
        let file = File::options().create(true).truncate(true).write(true).open(&path).unwrap();
        let mut clock = Self { file, path, now: 0 };
        clock.set(NOON);
        clock
    }

    /// What makes a server live by this clock.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", library().to_owned()), ("RL_TEST_CLOCK", self.path.clone())]
    }

    pub fn set(&mut self, micros: i64) {
        self.file.write_all_at(&micros.to_le_bytes(), 0).unwrap();
        self.now = micros;
    }

    pub fn now(&self) -> i64 {
        self.now
    }

    pub fn advance(&mut self, micros: i64) {
        self.set(self.now + micros);
    }
}

/// The library that replaces the wall clock, compiled once a test run.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| preload::library("clock", include_str!("clock.c")))
}
