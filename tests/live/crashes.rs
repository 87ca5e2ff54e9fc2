//! A server that is killed, or loses its power, under load, again and again: no admitted request is forgotten, none
//! made up, and what is left can be had to the unit.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::{Disk, Options, Server, ask, digest, send};
use crate::traffic::{Random, Traffic, kill};

#[derive(Clone, Copy)]
enum Crash {
    /// What the process has written is in the kernel's hands and stays.
    Kill,
    /// What was not synced is gone too.
    PowerFailure,
}

fn appending_always() -> Server {
    let options = Options::new().set("appendonly", "yes").set("appendfsync", "always").with_disk(Disk::new());
    // Saving takes a fifth of a second, so that a crash can come in the middle.
    options.set("rdb-key-save-delay", "4000").start()
}

/// Crashes the server under load so many times, and compares what is used with what the callers know each time.
fn survive(crash: Crash, times: u64) {
    let mut server = appending_always();
    let mut traffic = Traffic::new();
    let mut random = Random::new();
    let (mut changes, mut in_flight, mut cut_saves, mut lost) = (0, 0, 0, 0);
    let started = Instant::now();
    for time in 0..times {
        let mut operator = server.connect();
        let preamble = if time % 2 == 0 { "yes" } else { "no" };
        ask::<()>(&mut operator, &format!("CONFIG SET aof-use-rdb-preamble {preamble}"));
        let known = traffic.run(&server, || {
            save_now_and_then(&mut operator, &mut random);
            kill(&server);
        });
        server.kill();
        cut_saves += unfinished_saves(server.folder());
        if let Crash::PowerFailure = crash {
            lost += Disk::lose_power(server.folder());
        }
        changes += known.changes;
        in_flight += known.in_flight;
        server.start_again(|options| options);
        traffic.assert_as_known(&mut server.connect(), &known);
    }
    let seconds = started.elapsed().as_secs_f32();
    println!(
        "{times} crashes in {seconds:.1} s: {changes} answered changes, {in_flight} calls in flight, \
         {cut_saves} saves cut short, {lost} unsynced bytes lost"
    );
    assert!(changes > 100 * times && in_flight >= times, "too little load to show anything");
    assert!(cut_saves > 0 || times < 20, "no crash came in the middle of a save");
    let before = digest(&mut server.connect());
    server.shut_down();
    server.start_again(|options| options);
    assert_eq!(digest(&mut server.connect()), before, "an orderly restart changes nothing");
    traffic.assert_only_the_rest_can_be_had(&mut server.connect());
}

/// Snapshots and rewrites of the append-only file begin at random moments, the last one mostly shortly before the end.
fn save_now_and_then(operator: &mut Connection, random: &mut Random) {
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(random.below(200)));
        // Where one is running already the other is refused, or put off.
        let _ = send::<String>(operator, random.pick(&["BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE"]));
    }
    thread::sleep(Duration::from_millis(random.below(100)));
}

/// How many files of saves the crash has left behind.
fn unfinished_saves(folder: &Path) -> usize {
    let is_left = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("temp-");
    let left = fs::read_dir(folder).unwrap().map(Result::unwrap).filter(is_left);
    // So that the next crash counts its own.
    left.filter(|entry| fs::remove_file(entry.path()).is_ok()).count()
}

#[test]
fn three_times_kill_9_under_load_loses_nothing() {
    survive(Crash::Kill, 3);
}

#[test]
fn three_power_failures_under_load_lose_nothing() {
    survive(Crash::PowerFailure, 3);
}

#[test]
#[ignore = "long: twenty crashes"]
fn twenty_times_kill_9_under_load_loses_nothing() {
    survive(Crash::Kill, 20);
}

#[test]
#[ignore = "long: twenty crashes"]
fn twenty_power_failures_under_load_lose_nothing() {
    survive(Crash::PowerFailure, 20);
}
