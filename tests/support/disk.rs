//! A disk that may lose its power, for a server to write to.
//!
//! A killed process loses nothing that it wrote: the kernel has it. A machine that loses power loses what was not
//! synced, and that is what is taken away here. Names of files are kept: what a lost rename does is not tried.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

use super::preload;

/// The file in a server's folder that tells how far its files have reached the disk.
const JOURNAL: &str = "synced";

/// Files of the test itself.
const OURS: [&str; 3] = [JOURNAL, "log", "clock"];

pub struct Disk {
    delay: Duration,
}

impl Disk {
    /// As fast as the real one.
    pub fn new() -> Self {
        Self::slow(Duration::ZERO)
    }

    /// Each sync takes so much longer.
    pub fn slow(delay: Duration) -> Self {
        Self { delay }
    }

    pub(super) fn environment(&self) -> [(&'static str, OsString); 3] {
        static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| preload::library("disk", include_str!("disk.c")));
        let delay = self.delay.as_millis().to_string();
        [("LD_PRELOAD", library.into()), ("RL_TEST_DISK", JOURNAL.into()), ("RL_TEST_DISK_DELAY", delay.into())]
    }

    /// Takes from the files of a server that was killed what had not reached the disk. Returns how many bytes that
    /// were.
    pub fn lose_power(folder: &Path) -> u64 {
        let mut synced = HashMap::new();
        let journal = fs::read(folder.join(JOURNAL)).unwrap();
        assert!(!journal.is_empty(), "the server never synced: it was not started with a disk");
        for record in journal.chunks_exact(24) {
            let field = |at: usize| u64::from_ne_bytes(record[at..at + 8].try_into().unwrap());
            synced.insert((field(0), field(8)), field(16));
        }
        cut(folder, &synced)
    }
}

/// Cuts the files of a folder, and of those in it, to what was synced.
fn cut(folder: &Path, synced: &HashMap<(u64, u64), u64>) -> u64 {
    let mut lost = 0;
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        // A save that goes on without its server may be renaming its file.
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            lost += cut(&entry.path(), synced);
        } else if !OURS.iter().any(|ours| entry.file_name() == *ours) {
            let birth = about.created().unwrap().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
            let kept = synced.get(&(about.ino(), birth)).map_or(0, |&length| length.min(about.len()));
            if File::options().write(true).open(entry.path()).and_then(|file| file.set_len(kept)).is_ok() {
                lost += about.len() - kept;
            }
        }
    }
    lost
}
