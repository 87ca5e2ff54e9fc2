//! What `INFO rl` and the server's log tell those who run it.

use std::collections::BTreeMap;

use redis::{Connection, Value};

use crate::support::{HOUR, NOON, Options, Server, ask, decide, error, info, send, send_words, wait_until};

/// The section `rl`, by the names of its fields without the prefix.
fn section(redis: &mut Connection) -> BTreeMap<String, u64> {
    let text: String = ask(redis, "INFO rl");
    let mut lines = text.lines().filter(|line| !line.is_empty());
    assert_eq!(lines.next(), Some("# rl"), "{text}");
    lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.strip_prefix("rl_").unwrap().to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// The fields that are not 0, but for the version and whether effects are propagated.
fn counted(redis: &mut Connection) -> String {
    let fields = section(redis)
        .into_iter()
        .filter(|(name, value)| *value > 0 && name != "version" && name != "effects_propagated");
    fields.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// The lines of the log with this in them.
fn lines(server: &Server, text: &str) -> usize {
    server.log().lines().filter(|line| line.contains(text)).count()
}

#[test]
fn the_section_is_where_users_look_for_it() {
    let server = Server::new();
    let mut redis = server.connect();
    for line in ["INFO rl", "INFO RL", "INFO modules", "INFO everything"] {
        let text: String = ask(&mut redis, line);
        assert!(text.contains("# rl\r\nrl_version:"), "{line}: {text}");
    }
    for line in ["INFO", "INFO default", "INFO memory"] {
        assert!(!ask::<String>(&mut redis, line).contains("rl_version"), "{line}");
    }
    let fields: Vec<String> = section(&mut redis).into_keys().collect();
    let reference = include_str!("../../docs/commands.md");
    for field in &fields {
        assert!(reference.contains(&format!("`rl_{field}`")), "docs/commands.md lacks rl_{field}");
    }
    assert_eq!(reference.matches("\n| `rl_").count(), fields.len(), "docs/commands.md has other fields");
}

#[test]
fn each_decision_is_counted_once_by_its_algorithm() {
    let server = Server::new();
    let mut redis = server.connect();
    assert_eq!(counted(&mut redis), "");
    for (command, name) in [
        ("RL.FIXED k 3 36500d", "fixed_window"),
        ("RL.SLIDING k 3 36500d", "sliding_window"),
        ("RL.SLIDINGLOG k 3 36500d", "sliding_log"),
        ("RL.TOKENBUCKET k 3 1/w", "token_bucket"),
        ("RL.LEAKY k 3 1/w", "leaky_bucket"),
    ] {
        let before = section(&mut redis);
        let replies: i64 = (0..8).map(|_| decide(&mut redis, command)[0]).sum();
        assert_eq!(replies, 3);
        let after = section(&mut redis);
        let more: Vec<_> = after.iter().filter(|(field, value)| before[*field] != **value).collect();
        let more: BTreeMap<_, _> =
            more.into_iter().map(|(field, value)| (field.clone(), value - before[field])).collect();
        let (allowed, denied) = (format!("{name}_allowed"), format!("{name}_denied"));
        let expected = [("allowed".to_owned(), 3), ("denied".to_owned(), 5), (allowed, 3), (denied, 5)];
        assert_eq!(more, BTreeMap::from(expected), "{command}");
        ask::<()>(&mut redis, "DEL k");
    }
}

#[test]
fn what_takes_nothing_or_what_is_there_is_no_decision() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 3 1/w 2");
    let before = counted(&mut redis);
    assert_eq!(before, "allowed 1, token_bucket_allowed 1");
    for line in [
        "RL.TOKENBUCKET k 3 1/w 0",
        "RL.TOKENBUCKET none 0 1/w 0",
        "RL.PEEK k",
        "RL.PEEK k 3",
        "RL.PEEK missing",
        "RL.INSPECT k",
        "RL.REFUND k 1",
        "RL.DEBIT k 3 1/w 9",
    ] {
        ask::<Value>(&mut redis, line);
        assert_eq!(counted(&mut redis), before, "{line}");
    }
    // Nor does it pass a replica's or a reader's eye: decisions in MULTI and scripts count as any other.
    ask::<Value>(&mut redis, "DEL k");
    ask::<()>(&mut redis, "MULTI");
    ask::<Value>(&mut redis, "RL.FIXED k 1 36500d");
    ask::<Value>(&mut redis, "RL.FIXED k 1 36500d");
    ask::<Value>(&mut redis, "EXEC");
    let script = b"return redis.call('RL.FIXED', 'k', '1', '36500d')";
    send_words::<Value>(&mut redis, &[b"EVAL", script, b"0"]).unwrap();
    let expected = "allowed 2, denied 2, fixed_window_allowed 1, fixed_window_denied 2, token_bucket_allowed 1";
    assert_eq!(counted(&mut redis), expected);
}

#[test]
fn errors_are_counted_by_what_to_do_about_them() {
    let server = Server::new();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "SET text hello");
    error(&mut redis, "RL.FIXED k 1 nonsense");
    error(&mut redis, "RL.FIXED k 1 1 1 1");
    error(&mut redis, "RL.FIXED text 1 1");
    error(&mut redis, "RL.PEEK text");
    assert_eq!(counted(&mut redis), "errors 4, errors_wrongtype 2");
    ask::<()>(&mut redis, "CONFIG SET maxmemory 1");
    assert!(error(&mut redis, "RL.FIXED k 1 1").starts_with("OOM"));
    assert_eq!(counted(&mut redis), "errors 5, errors_oom 1, errors_wrongtype 2");
}

#[test]
fn the_counts_outlive_a_reset_of_the_server_s_own() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 1 36500d");
    ask::<()>(&mut redis, "CONFIG RESETSTAT");
    assert_eq!(counted(&mut redis), "allowed 1, fixed_window_allowed 1");
    // No scraper may see a number fall but when the server, or the module, starts.
    if info(&mut redis, "server", "redis_version").unwrap().starts_with("7.0.") {
        ask::<()>(&mut redis, "MODULE UNLOAD rl");
        ask::<()>(&mut redis, &format!("MODULE LOAD {}", crate::support::module("redis_rl").display()));
        assert_eq!(counted(&mut redis), "");
    }
}

#[test]
fn a_clock_that_goes_back_is_counted_and_told_once() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for key in ["a", "b"] {
        decide(&mut redis, &format!("RL.TOKENBUCKET {key} 10 1/h 10"));
    }
    decide(&mut redis, "RL.SLIDINGLOG log 10 1h 10");
    decide(&mut redis, "RL.FIXED again 10 1h 9");
    assert_eq!(section(&mut redis)["clock_steps_back"], 0);
    server.clock().advance(-2_000_500);
    // Looks move nothing.
    decide(&mut redis, "RL.PEEK a");
    decide(&mut redis, "RL.TOKENBUCKET a 10 1/h 0");
    assert_eq!(section(&mut redis)["clock_steps_back"], 0);
    // Denied ones and one that is admitted; each key once.
    for _ in 0..2 {
        decide(&mut redis, "RL.TOKENBUCKET a 10 1/h");
        decide(&mut redis, "RL.TOKENBUCKET b 10 1/h");
        decide(&mut redis, "RL.SLIDINGLOG log 10 1h");
        decide(&mut redis, "RL.FIXED again 10 1h");
    }
    assert_eq!(section(&mut redis)["clock_steps_back"], 4);
    assert_eq!(lines(&server, "redis-rl: the clock went back"), 1, "{}", server.log());
    assert_eq!(lines(&server, "last call is 2001 ms later than now"), 1, "{}", server.log());
    server.clock().set(NOON + HOUR);
    decide(&mut redis, "RL.FIXED again 10 1h");
    assert_eq!(section(&mut redis)["clock_steps_back"], 4);
}

#[test]
fn loading_is_told_with_what_is_set() {
    let server = Options::new().set("rl.max-log-entries", "7").set("rl.notify-denied", "yes").start();
    let log = server.log();
    let told = format!("redis-rl: the module rl {} is loaded, on a server of version ", env!("CARGO_PKG_VERSION"));
    let line = log.lines().find(|line| line.contains(&told)).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains(", rl.max-log-entries 7, rl.notify-denied yes"), "{line}");
    assert!(line.contains(" * "), "it is a notice: {line}");
}

#[test]
fn a_full_log_is_told_once() {
    let server = Options::new().set("rl.max-log-entries", "1").start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.SLIDINGLOG k 9 1h");
    for _ in 0..3 {
        // On servers with a cached clock two calls may share an entry; not for long.
        wait_until("the log is full", || send::<Value>(&mut redis, "RL.SLIDINGLOG k 99999 1h").is_err());
    }
    assert_eq!(lines(&server, "redis-rl: a sliding window log is full"), 1, "{}", server.log());
}

/// The report is written by a signal's handler, whatever the server was doing.
#[test]
fn a_report_of_a_crash_is_written_to_its_end_without_us() {
    // Without the server's test of all its memory, which comes last and on Valkey 9.1 now and then never ends.
    let options = Options::new().set("enable-debug-command", "yes").set("crash-memcheck-enabled", "no");
    let mut server = options.start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 1 36500d");
    assert!(send::<Value>(&mut redis, "DEBUG SEGFAULT").is_err());
    wait_until("the report is written", || server.log().contains("BUG REPORT END"));
    let log = server.log();
    assert!(log.contains("MODULES INFO OUTPUT") && !log.contains("rl_allowed"), "{log}");
    server.kill();
}
