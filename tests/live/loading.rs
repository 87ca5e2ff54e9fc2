//! Loading and unloading the module.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::{Connection, Value};

use crate::support::{Options, Server, ask, decide, error, info, module, send, skip};

/// Later servers may call commands of a module that is gone, which would end them; there the module stays.
fn can_be_unloaded(operator: &mut Connection) -> bool {
    info(operator, "server", "redis_version").unwrap().starts_with("7.0.")
}

#[test]
fn unloading_is_refused_where_it_would_end_the_server() {
    let server = Server::new();
    let mut operator = server.connect();
    if can_be_unloaded(&mut operator) {
        return skip("modules can be unloaded from this one");
    }
    decide(&mut operator, "RL.FIXED k 5 36500d");
    assert!(send::<()>(&mut operator, "MODULE UNLOAD rl").is_err());
    assert!(server.log().contains("redis-rl stays loaded"), "{}", server.log());
    assert_eq!(decide(&mut operator, "RL.FIXED k 5 36500d")[2], 3);
}

/// Tells the clients to end when it is dropped.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn unloading_and_loading_under_load_loses_nothing() {
    let server = Server::new();
    let mut operator = server.connect();
    if !can_be_unloaded(&mut operator) {
        return skip("unloading is refused, which another test shows");
    }
    let path = module("redis_rl");
    let stop = AtomicBool::new(false);
    let admitted: i64 = thread::scope(|scope| {
        let client = || {
            let mut redis = server.connect();
            let mut admitted = 0;
            while !stop.load(Ordering::Relaxed) {
                match send::<Vec<i64>>(&mut redis, "RL.FIXED k 9007199254740991 36500d") {
                    Ok(reply) => admitted += reply[0],
                    Err(error) => assert!(error.to_string().contains("unknown command"), "{error}"),
                }
            }
            admitted
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        // Should an assertion fail, the clients must end all the same, or the test never does.
        let ended = Ended(&stop);
        for _ in 0..20 {
            ask::<()>(&mut operator, "MODULE UNLOAD rl");
            assert!(error(&mut operator, "RL.PEEK k").starts_with("ERR unknown command"));
            ask::<()>(&mut operator, &format!("MODULE LOAD {}", path.display()));
            // So that the clients get calls through before the next round.
            let before = decide(&mut operator, "RL.FIXED progress 9007199254740991 36500d")[2];
            while decide(&mut operator, "RL.FIXED progress 9007199254740991 36500d")[2] > before - 20 {}
        }
        drop(ended);
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert!(admitted > 0);
    let [_, limit, remaining, ..] = decide(&mut operator, "RL.PEEK k");
    assert_eq!(limit - remaining, admitted);

    ask::<()>(&mut operator, "MODULE UNLOAD rl");
    let modules: Vec<Value> = ask(&mut operator, "MODULE LIST");
    assert!(!format!("{modules:?}").contains("redis_rl"), "{modules:?}");
    for command in ["rl.fixed", "rl.tokenbucket", "rl.peek"] {
        assert_eq!(ask::<Vec<Value>>(&mut operator, &format!("COMMAND INFO {command}")), [Value::Nil]);
    }
}

#[test]
fn a_server_that_is_too_old_is_refused_before_anything_is_registered() {
    let servers = std::env::var_os("REDIS_RL_SERVERS").map(PathBuf::from).unwrap_or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache
            .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"))
            .join("redis-rl/servers")
    });
    let old = servers.join("redis-6.2/server");
    assert!(old.exists(), "{} is missing: run scripts/servers redis-6.2", old.display());
    let log = Options::new().binary(old.clone()).bare().set("save", "").start_refused();
    assert!(log.contains("redis-rl needs Redis 7.0 or later, or Valkey 8.0 or later; this server is 6.2."), "{log}");
    assert!(!log.contains("crashed") && !log.contains("panicked"), "{log}");

    // Refused on demand, it leaves the old server as it was.
    let server = Options::new().binary(old).bare().set("save", "").module(None).start();
    let mut redis = server.connect();
    assert!(send::<()>(&mut redis, &format!("MODULE LOAD {}", module("redis_rl").display())).is_err());
    assert_eq!(ask::<Vec<Value>>(&mut redis, "MODULE LIST"), []);
    assert_eq!(ask::<String>(&mut redis, "PING"), "PONG");
}

#[test]
fn arguments_on_loading_are_refused() {
    let server = Options::new().module(None).start();
    let mut redis = server.connect();
    let path = module("redis_rl");
    assert!(send::<()>(&mut redis, &format!("MODULE LOAD {} surprise", path.display())).is_err());
    assert!(server.log().contains("redis-rl takes no arguments on loading"), "{}", server.log());
    ask::<()>(&mut redis, &format!("MODULE LOAD {}", path.display()));
}

/// Without `SET` a replica would build on what it never got.
#[test]
fn a_server_that_has_renamed_what_results_are_replicated_by_is_refused() {
    for renamed in ["SET", "SETRANGE", "DEL"] {
        let log = Options::new().set("rename-command", &format!("{renamed} OTHER")).start_refused();
        assert!(log.contains(&format!("redis-rl replicates what it changes by {renamed}")), "{log}");
    }
}

#[test]
fn a_panic_in_a_handler_is_an_error_and_a_line_in_the_log() {
    let server = Options::new().module(Some(module("noop"))).start();
    let mut redis = server.connect();
    for _ in 0..3 {
        let error = error(&mut redis, "NOOP.PANIC k");
        assert!(error.starts_with("ERR internal error in redis-rl"), "{error}");
    }
    assert_eq!(decide(&mut redis, "NOOP.INTEGERS k 1 1"), [1, 100, 99, 0, 60_000]);
    let log = server.log();
    let told = "redis-rl: a defect, panicked at examples/noop.rs";
    let line = log.lines().find(|line| line.contains(told)).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("on demand, with %s and %n. The call got an error, the server goes on."), "{line}");
    // Each is counted; a client that does it again and again fills no disk.
    assert_eq!(log.matches(told).count(), 1, "{log}");
    for field in ["noop_panics_caught", "noop_errors"] {
        assert_eq!(info(&mut redis, "noop", field).as_deref(), Some("3"), "{field}");
    }
}

#[test]
fn a_panic_is_told_to_the_log_of_a_server_in_the_background() {
    let server = Options::new().module(Some(crate::support::module("noop"))).set("logfile", "of-its-own").start();
    error(&mut server.connect(), "NOOP.PANIC k");
    let log = std::fs::read_to_string(server.folder().join("of-its-own")).unwrap();
    assert!(log.contains("panicked at examples/noop.rs"), "{log}");
}
