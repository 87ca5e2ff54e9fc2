//! Append-only files and snapshots that begin under load.

use std::fs;
use std::ops::Range;
use std::path::Path;

use redis::Connection;

use super::load::{Form, Keys, rounds};
use super::{alone, counted, is_quiet, quiet};
use crate::image::Image;
use crate::support::{Options, Server, ask, decide, send_words, wait_until};

/// Where files are loaded: a server that is killed, given others, and started again.
struct Reader(Server);

impl Reader {
    fn new(name: &str, value: &str) -> Self {
        let mut server = alone().module(None).set(name, value).start();
        server.kill();
        Self(server)
    }

    /// What is in the files that `server` has written, as they are: what a server that is killed now leaves behind.
    fn load(&mut self, server: &Server) -> Image {
        for name in ["dump.rdb", "appendonlydir"] {
            replace(&server.folder().join(name), &self.0.folder().join(name));
        }
        self.0.start_again(|options| options);
        let image = Image::of(&mut self.0.connect());
        self.0.kill();
        image
    }
}

fn replace(from: &Path, to: &Path) {
    let _ = fs::remove_file(to);
    let _ = fs::remove_dir_all(to);
    if from.is_file() {
        fs::copy(from, to).unwrap();
    } else if from.is_dir() {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Waits until no child writes, and none is to. All is asked at once: between two questions one may end and another begin.
fn wait_for_children(redis: &mut Connection) {
    let none = ["rdb_bgsave_in_progress:0", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"];
    wait_until("no child writes", || {
        let told: String = ask(redis, "INFO persistence");
        none.iter().all(|none| told.contains(none))
    });
}

/// What comes before an append-only file is switched on, and with it.
const OPENINGS: [&[&str]; 4] = [
    // Within a transaction, and calls before and after it.
    &[
        "MULTI",
        "RL.TOKENBUCKET within 1000000 1/d 3",
        "RL.SLIDINGLOG within:log 1000000 1d 3",
        "CONFIG SET appendonly yes",
        "RL.TOKENBUCKET within 1000000 1/d 4",
        "RL.SLIDINGLOG within:log 1000000 1d 4",
        "EXEC",
    ],
    &["BGSAVE", "CONFIG SET appendonly yes"],
    &["CONFIG SET appendonly yes"],
    &["BGREWRITEAOF", "CONFIG SET appendonly yes"],
];

fn append_only_files_begin(times: Range<u32>) {
    let mut reader = Reader::new("appendonly", "yes");
    let options = |options: Options| options.set("appendfsync", "no");
    rounds(times, Keys::Lasting, options, |scene, time| {
        let mut pipe = redis::pipe();
        for line in OPENINGS[time as usize % OPENINGS.len()] {
            pipe.add_command(command(line));
        }
        pipe.query::<Vec<redis::Value>>(&mut scene.connect()).unwrap();
        scene.wait_for_answers(50);
        wait_for_children(&mut scene.redis);
        for more in [0, 50] {
            scene.wait_for_answers(more);
            let image = scene.pause();
            assert!(!is_quiet(&mut scene.redis));
            let theirs = reader.load(scene.server);
            scene.unpause();
            image.assert_equals(&theirs, "from the append-only file");
        }
        ask::<()>(&mut scene.redis, "CONFIG SET appendonly no");
    });
}

fn command(line: &str) -> redis::Cmd {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command
}

/// A snapshot that somebody asks for has all that was held back when it began: by a child, in a transaction, or without one.
fn snapshots_are_asked_for(times: Range<u32>) {
    let mut reader = Reader::new("appendonly", "no");
    rounds(
        times,
        Keys::Lasting,
        |options| options,
        |scene, time| {
            // While nothing is written, the snapshot's moment is known.
            let image = scene.pause();
            assert!(is_quiet(&mut scene.redis));
            match time % 3 {
                0 => ask::<()>(&mut scene.redis, "SAVE"),
                1 => ask::<()>(&mut scene.redis, "BGSAVE"),
                _ => ask::<()>(&mut scene.redis, "DEBUG RELOAD"),
            }
            wait_for_children(&mut scene.redis);
            image.assert_equals(&Image::of(&mut scene.redis), "after it");
            let theirs = reader.load(scene.server);
            image.assert_equals(&theirs, "from the snapshot");
            scene.unpause();
        },
    );
}

/// Save points that are set while effects are held back, and no call comes any more, or while calls go on: what a snapshot that begins by
/// itself lacks would be counted, and another one begin.
fn save_points_are_set(times: Range<u32>) {
    let mut reader = Reader::new("appendonly", "no");
    rounds(
        times,
        Keys::Lasting,
        |options| options,
        |scene, time| {
            let is_late = time % 2 == 0;
            let held = is_late.then(|| scene.pause());
            send_words::<()>(&mut scene.redis, &[b"CONFIG", b"SET", b"save", b"1 1"]).unwrap();
            let image = held.unwrap_or_else(|| {
                scene.wait_for_answers(50);
                scene.pause()
            });
            wait_until("a snapshot begins by itself and has all", || counted(&mut scene.redis) == 0);
            wait_for_children(&mut scene.redis);
            let theirs = reader.load(scene.server);
            scene.unpause();
            image.assert_equals(&theirs, "from the snapshot");
            send_words::<()>(&mut scene.redis, &[b"CONFIG", b"SET", b"save", b""]).unwrap();
        },
    );
}

#[test]
fn a_server_that_ends_in_order_saves_what_was_held_back() {
    let (mut server, mut redis) = quiet();
    for key in 0..50 {
        decide(&mut redis, &format!("RL.TOKENBUCKET k:{key} 1000000 1/d"));
    }
    assert!(is_quiet(&mut redis) && counted(&mut redis) < 50);
    let image = Image::of(&mut redis);
    send_words::<()>(&mut redis, &[b"CONFIG", b"SET", b"save", b"36000 1000000"]).unwrap();
    server.shut_down();
    server.start_again(|options| options);
    image.assert_equals(&Image::of(&mut server.connect()), "after the restart");
}

#[test]
fn an_append_only_file_that_begins_under_load_lacks_nothing() {
    Form::Short.run(append_only_files_begin);
}

#[test]
fn a_snapshot_that_is_asked_for_lacks_nothing() {
    Form::Short.run(snapshots_are_asked_for);
}

#[test]
fn a_snapshot_by_save_points_that_were_set_later_lacks_nothing() {
    Form::Short.run(save_points_are_set);
}

#[test]
#[ignore = "long: a hundred rounds"]
fn a_hundred_times_an_append_only_file_that_begins_under_load_lacks_nothing() {
    Form::Long.run(append_only_files_begin);
}

#[test]
#[ignore = "long: a hundred rounds"]
fn a_hundred_times_a_snapshot_that_is_asked_for_lacks_nothing() {
    Form::Long.run(snapshots_are_asked_for);
}

#[test]
#[ignore = "long: a hundred rounds"]
fn a_hundred_times_a_snapshot_by_save_points_that_were_set_later_lacks_nothing() {
    Form::Long.run(save_points_are_set);
}
