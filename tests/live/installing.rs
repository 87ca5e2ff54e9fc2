//! The ways in which the module gets into a server and stays there: a configuration file, `MODULE LOAD`, `CONFIG REWRITE`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use redis::Connection;

use crate::support::{Options, Server, ask, decide, error, module, send};

fn log_entries(redis: &mut Connection) -> String {
    ask::<Vec<String>>(redis, "CONFIG GET rl.max-log-entries")[1].clone()
}

fn line() -> String {
    format!("loadmodule {}\n", module("redis_rl").display())
}

/// With these lines in its file, and nothing of the module elsewhere.
fn configured(lines: &str) -> Options {
    Options::new().module(None).bare().file(&format!("save \"\"\n{lines}"))
}

/// How often the file says so.
fn said(server: &Server, begin: &str) -> usize {
    server.file().lines().filter(|line| line.starts_with(begin)).count()
}

#[test]
fn a_configuration_file_keeps_the_module_and_its_settings() {
    let mut server = configured(&format!("{}rl.max-log-entries 3\n", line())).start();
    let mut redis = server.connect();
    assert_eq!(log_entries(&mut redis), "3");
    for _ in 0..3 {
        assert_eq!(decide(&mut redis, "RL.SLIDINGLOG log 9 36500d")[0], 1);
    }
    assert_eq!(error(&mut redis, "RL.SLIDINGLOG log 9 36500d"), "ERR the log is full: rl.max-log-entries is 3");

    ask::<()>(&mut redis, "CONFIG SET rl.max-log-entries 4");
    ask::<()>(&mut redis, "CONFIG REWRITE");
    assert_eq!((said(&server, "loadmodule "), said(&server, "rl.")), (1, 1), "{}", server.file());
    server.kill();
    server.revive();
    assert_eq!(log_entries(&mut server.connect()), "4");
}

#[test]
fn a_module_that_was_loaded_by_command_is_kept_by_config_rewrite() {
    let mut server = configured("enable-module-command local\n").start();
    let mut redis = server.connect();
    assert!(error(&mut redis, "RL.FIXED k 9 36500d").starts_with("ERR unknown command"));
    ask::<()>(&mut redis, &format!("MODULE LOAD {}", module("redis_rl").display()));
    assert_eq!(decide(&mut redis, "RL.FIXED k 9 36500d")[2], 8, "from now on, without a restart");
    ask::<()>(&mut redis, "CONFIG REWRITE");
    assert_eq!((said(&server, "loadmodule "), said(&server, "rl.")), (1, 0), "what has its default need not be said");
    server.kill();
    server.revive();
    assert_eq!(decide(&mut server.connect(), "RL.FIXED k 9 36500d")[0], 1);
}

#[test]
fn settings_can_be_given_when_it_is_loaded_by_command() {
    let server = configured("enable-module-command yes\n").start();
    let mut redis = server.connect();
    ask::<()>(&mut redis, &format!("MODULE LOADEX {} CONFIG rl.max-log-entries 7", module("redis_rl").display()));
    assert_eq!(log_entries(&mut redis), "7");
}

#[test]
fn by_default_no_client_may_load_modules() {
    let server = configured("").start();
    let mut redis = server.connect();
    let refused = error(&mut redis, &format!("MODULE LOAD {}", module("redis_rl").display()));
    assert!(refused.starts_with("ERR MODULE command not allowed."), "{refused}");
    assert!(error(&mut redis, "RL.FIXED k 9 36500d").starts_with("ERR unknown command"));
}

#[test]
fn a_file_that_may_not_be_executed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libredis_rl.so");
    fs::copy(module("redis_rl"), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    let log = configured(&format!("loadmodule {}\n", copy.display())).start_refused();
    assert!(log.contains("It does not have execute permissions"), "{log}");
}

/// Whoever goes back to a server without the module, or to an older module, must take out what that one does not know.
#[test]
fn settings_that_nobody_knows_keep_a_server_from_starting() {
    for lines in ["rl.max-log-entries 3\n".to_owned(), format!("{}rl.of-a-later-version 3\n", line())] {
        let log = configured(&lines).start_refused();
        assert!(log.contains("Module Configuration detected without loadmodule directive"), "{lines}: {log}");
    }
    let mut redis = configured(&line()).start().connect();
    assert!(send::<()>(&mut redis, "CONFIG SET rl.of-a-later-version 3").is_err());
}
