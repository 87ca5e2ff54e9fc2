//! Data of each layout that was ever released, as files of Redis 7.0, and what was answered from it: every later
//! version must answer the same.
//!
//! `tests/golden/layout-N/` holds one data set three times, as a snapshot, as an append-only file that begins with a
//! snapshot, and as one that holds nothing but commands; and `answers.txt`, which is a time (`@`, in microseconds) and
//! calls with their replies. These files never change. When a new layout is written for the first time,
//!
//! ```sh
//! RL_BLESS=1 cargo test -p redis-rl --test live golden
//! ```
//!
//! on Redis 7.0 makes those of the new one, and leaves the others alone.

mod answers;
mod making;

use std::fs;
use std::path::{Path, PathBuf};

use rl_limiter::layout::WRITES;

use self::answers::replay;
use crate::support::{Options, Server};

/// The append-only files of a server, in its folder.
const APPEND_ONLY: &str = "appendonlydir";

fn folder(layout: u8) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/layout-{layout}"))
}

/// A server that has loaded one of the golden files, at the time of the first answers.
fn loaded(layout: u8, name: &str) -> Server {
    let source = folder(layout).join(name);
    let mut server = Options::new().with_clock().start();
    server.kill();
    server.clock().set(answers::first_moment(&folder(layout)));
    if source.is_dir() {
        copy_all(&source, &server.folder().join(APPEND_ONLY));
        server.start_again(|options| options.set("appendonly", "yes"));
    } else {
        fs::copy(source, server.folder().join("dump.rdb")).unwrap();
        server.start_again(|options| options);
    }
    server
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn golden_data_of_every_layout_is_answered_as_it_was_when_it_was_new() {
    for layout in 1..=WRITES {
        if std::env::var_os("RL_BLESS").is_some() && !folder(layout).exists() {
            making::make(&folder(layout));
        }
        assert!(folder(layout).exists(), "there is no golden data of layout {layout}: see tests/live/golden/mod.rs");
        for name in making::FILES {
            let answers = replay(&mut loaded(layout, name), &folder(layout));
            assert!(answers > 300, "{name}: {answers} answers");
        }
    }
}
