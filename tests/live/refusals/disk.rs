//! `MISCONF`: the server can't write to its disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use redis::{Connection, Value};

use super::{CALL, Witness};
use crate::support::{Options, Server, ask, error, info, send, send_words, wait_until};

fn persistence(redis: &mut Connection, field: &str) -> String {
    info(redis, "persistence", field).unwrap()
}

fn assert_refused(witness: &Witness, redis: &mut Connection) {
    witness.assert_no_decisions(redis, "MISCONF");
    witness.assert_looks(redis);
    witness.assert_no_transactions(redis, "MISCONF");
    assert!(
        error(redis, "PING").starts_with("MISCONF "),
        "whoever asks by PING whether the server is well is told, too"
    );
}

#[test]
fn a_snapshot_that_fails() {
    let server = Options::new().set("save", "3600 1").start();
    let witness = Witness::of(&server);
    let mut redis = server.connect();
    // A folder is in its place.
    let snapshot = server.folder().join("dump.rdb");
    fs::create_dir(&snapshot).unwrap();
    ask::<()>(&mut redis, "BGSAVE");
    wait_until("the save has failed", || persistence(&mut redis, "rdb_last_bgsave_status") == "err");
    assert_refused(&witness, &mut redis);
    fs::remove_dir(&snapshot).unwrap();
    ask::<()>(&mut redis, "BGSAVE");
    wait_until("the save has succeeded", || persistence(&mut redis, "rdb_last_bgsave_status") == "ok");
    witness.assert_goes_on(&mut redis);
}

#[test]
fn a_snapshot_that_fails_where_that_is_not_to_matter() {
    let server = Options::new().set("save", "3600 1").set("stop-writes-on-bgsave-error", "no").start();
    let witness = Witness::of(&server);
    let mut redis = server.connect();
    fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    ask::<()>(&mut redis, "BGSAVE");
    wait_until("the save has failed", || persistence(&mut redis, "rdb_last_bgsave_status") == "err");
    witness.assert_goes_on(&mut redis);
}

/// A server that outlives a write to a file that may not grow: such a write is an error, as on a full disk.
fn ignoring_full_files(folder: &Path) -> PathBuf {
    let server = std::env::var("RL_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    let script = folder.join("server");
    fs::write(&script, format!("#!/bin/sh\ntrap '' XFSZ\nexec '{server}' \"$@\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// So large may the files of the server become.
fn limit_files(redis: &mut Connection, bytes: &str) {
    let process = info(redis, "server", "process_id").unwrap();
    let limited = Command::new("prlimit").args(["--pid", &process, &format!("--fsize={bytes}:")]).status();
    assert!(limited.is_ok_and(|status| status.success()), "prlimit --pid {process} --fsize={bytes}:");
}

/// A server whose append-only file is as large as it may become, after a megabyte of other data: the server's log must stay below.
fn with_full_file(folder: &Path, fsync: &str) -> (Server, Witness) {
    let options = Options::new().binary(ignoring_full_files(folder)).set("appendonly", "yes");
    let server = options.set("appendfsync", fsync).start();
    let mut redis = server.connect();
    send_words::<()>(&mut redis, &[b"SET", b"filler", &[b'x'; 1 << 20]]).unwrap();
    let witness = Witness::of(&server);
    wait_until("all is written", || persistence(&mut redis, "aof_buffer_length") == "0");
    limit_files(&mut redis, &(1 << 20).to_string());
    (server, witness)
}

#[test]
fn an_append_only_file_that_can_not_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (server, witness) = with_full_file(folder.path(), "everysec");
    let mut redis = server.connect();
    // This one is answered before it is written, and what follows is refused.
    ask::<()>(&mut redis, "SET filler x");
    wait_until("the write has failed", || persistence(&mut redis, "aof_last_write_status") == "err");
    assert_refused(&witness, &mut redis);
    limit_files(&mut redis, "unlimited");
    wait_until("writes succeed", || persistence(&mut redis, "aof_last_write_status") == "ok");
    send_words::<()>(&mut redis, &[b"SET", b"filler", &[b'x'; 1 << 20]]).unwrap();
    witness.assert_goes_on(&mut redis);
}

/// Where nothing may be answered that is not on the disk, the server ends, which is Redis' own choice.
#[test]
fn an_append_only_file_that_must_be_written_and_can_not() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, witness) = with_full_file(folder.path(), "always");
    let mut redis = server.connect();
    assert!(send::<Value>(&mut redis, CALL).is_err_and(|error| error.code().is_none()), "no answer");
    assert!(server.log().contains("Can't recover from AOF write error"), "{}", server.log());
    server.kill();
    server.revive();
    let mut redis = server.connect();
    send_words::<()>(&mut redis, &[b"SET", b"filler", &[b'x'; 1 << 20]]).unwrap();
    witness.assert_goes_on(&mut redis);
}
