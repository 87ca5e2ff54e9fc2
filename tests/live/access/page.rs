//! The users that `docs/commands.md` writes down, cut out of the page and made as they stand there.

use std::collections::BTreeSet;

use redis::{Connection, Value};

use super::log_in;
use super::patterns::{may_call, names};
use crate::known::Known;
use crate::support::{Server, ask, decide, digest, error, error_of_words, send, send_words, skip, version};

/// The line of the page that makes a user.
fn line_for(user: &str) -> &'static str {
    let page = include_str!("../../../docs/commands.md");
    let begin = format!("ACL SETUSER {user} on >secret ");
    page.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("docs/commands.md has no {begin}"))
}

/// A connection of a user of the page.
fn user_of_the_page(server: &Server, user: &str) -> Connection {
    ask::<()>(&mut server.connect(), line_for(user));
    log_in(server, user, "secret")
}

/// An exhausted limiter, one with a log, and a key that is nobody's business.
fn fill(admin: &mut Connection) {
    decide(admin, "RL.FIXED limit:spent 3 36500d 3");
    decide(admin, "RL.SLIDINGLOG limit:log 3 36500d 2");
    decide(admin, "RL.FIXED other:spent 3 36500d 3");
    ask::<()>(admin, "SET other:secret x");
}

/// All by which somebody could give himself more than he has, or see what is not his.
const TRICKS: [&str; 52] = [
    "SET limit:spent x",
    "SETEX limit:spent 1 x",
    "PSETEX limit:spent 1 x",
    "SETNX limit:new x",
    "MSET limit:spent x",
    "GETSET limit:spent x",
    "GETDEL limit:spent",
    "GETEX limit:spent PX 1",
    "GET limit:spent",
    "SETRANGE limit:spent 8 x",
    "SETBIT limit:spent 200 0",
    "BITFIELD limit:spent SET u8 8 0",
    "BITOP NOT limit:spent limit:log",
    "APPEND limit:spent x",
    "INCR limit:spent",
    "RESTORE limit:spent 0 x REPLACE",
    "DUMP limit:spent",
    "DEL limit:spent",
    "UNLINK limit:spent",
    "EXPIRE limit:spent 0",
    "PEXPIRE limit:spent 1",
    "EXPIREAT limit:spent 1",
    "PEXPIREAT limit:spent 1",
    "PERSIST limit:spent",
    "COPY limit:log limit:spent REPLACE",
    "RENAME limit:log limit:spent",
    "RENAMENX limit:spent limit:away",
    "MOVE limit:spent 1",
    "SORT limit:spent STORE limit:spent",
    "SUNIONSTORE limit:spent limit:none",
    "PFMERGE limit:spent",
    "LPUSH limit:new x",
    "MIGRATE 127.0.0.1 1 limit:spent 0 1",
    "SELECT 1",
    "SWAPDB 0 1",
    "FLUSHDB",
    "FLUSHALL",
    "KEYS *",
    "SCAN 0",
    "RANDOMKEY",
    "MONITOR",
    "EVALSHA 0000000000000000000000000000000000000000 0",
    "FCALL f 1 limit:spent",
    "SCRIPT FLUSH",
    "FUNCTION FLUSH",
    "CONFIG SET maxmemory 1",
    "ACL SETUSER api +@all",
    "MODULE UNLOAD rl",
    "DEBUG RELOAD",
    "REPLICAOF 127.0.0.1 1",
    "RL.PEEK other:spent",
    "RL.FIXED other:spent 9 36500d",
];

#[test]
fn an_api_server_can_take_and_can_not_mint() {
    let server = Server::new();
    let mut admin = server.connect();
    fill(&mut admin);
    let before = digest(&mut admin);
    let mut api = user_of_the_page(&server, "api");
    for trick in TRICKS {
        assert!(error(&mut api, trick).starts_with("NOPERM"), "{trick}");
    }
    let script = b"return redis.call('SET', KEYS[1], 'x')";
    assert!(error_of_words(&mut api, &[b"EVAL", script, b"1", b"limit:spent"]).starts_with("NOPERM"));
    assert_eq!(digest(&mut admin), before, "nothing was changed");

    // What it is for, goes on.
    assert_eq!(decide(&mut api, "RL.FIXED limit:spent 3 36500d")[..3], [0, 3, 0]);
    assert_eq!(decide(&mut api, "RL.SLIDINGLOG limit:log 3 36500d")[..3], [1, 3, 0]);
    assert_eq!(decide(&mut api, "RL.SLIDING limit:s 3 1m")[0], 1);
    assert_eq!(decide(&mut api, "RL.TOKENBUCKET limit:b 3 1")[0], 1);
    assert_eq!(decide(&mut api, "RL.LEAKY limit:l 3 1")[0], 1);
    assert_eq!(decide(&mut api, "RL.PEEK limit:spent")[0], 0);

    let listed = line_for("api").split(' ').filter_map(|rule| rule.strip_prefix('+')).map(str::to_owned);
    let listed: BTreeSet<String> = listed.chain(names([])).collect();
    assert_eq!(may_call(&mut admin, "api"), listed, "of all that the server has");
}

/// Whether a script was refused what its caller may not do, in the words of Redis 7.0 or of later servers.
fn is_by_acl(error: &str) -> bool {
    ["The user executing the script can't", "ACL failure in script"].iter().any(|words| error.contains(words))
}

/// A script runs with the rights of who calls it, whoever loaded it.
#[test]
fn a_script_gives_nobody_more_than_he_has() {
    let server = Server::new();
    let mut admin = server.connect();
    fill(&mut admin);
    let library = b"#!lua name=mint
        redis.register_function('mint', function(keys) return redis.call('DEL', keys[1]) end)";
    send_words::<()>(&mut admin, &[b"FUNCTION", b"LOAD", library]).unwrap();
    let before = digest(&mut admin);
    let mut api = user_of_the_page(&server, "api");
    ask::<()>(&mut admin, "ACL SETUSER api +eval +fcall");
    for body in [
        "redis.call('SET', KEYS[1], 'x')",
        "redis.call('DEL', KEYS[1])",
        "redis.call('RESTORE', KEYS[1], '0', 'x', 'REPLACE')",
        "redis.call('RL.REFUND', KEYS[1], '3')",
        "redis.call('RL.FIXED', 'other:spent', '9', '36500d')",
        "redis.call('GET', 'other:secret')",
    ] {
        let refused = error_of_words(&mut api, &[b"EVAL", body.as_bytes(), b"1", b"limit:spent"]);
        assert!(is_by_acl(&refused), "{body}: {refused}");
    }
    let refused = error(&mut api, "FCALL mint 1 limit:spent");
    assert!(is_by_acl(&refused), "{refused}");
    assert_eq!(digest(&mut admin), before, "nothing was changed");
    let script = b"return redis.call('RL.SLIDINGLOG', KEYS[1], '3', '36500d')";
    let reply: Vec<i64> = send_words(&mut api, &[b"EVAL", script, b"1", b"limit:log"]).unwrap();
    assert_eq!(reply[..3], [1, 3, 0], "what it may, it may in a script too");
}

#[test]
fn a_dashboard_looks_and_does_not_touch() {
    let server = Server::new();
    let mut admin = server.connect();
    fill(&mut admin);
    let before = digest(&mut admin);
    let commands = Known::all(&mut admin);
    let mut dashboard = user_of_the_page(&server, "dashboard");
    assert_eq!(decide(&mut dashboard, "RL.PEEK limit:spent")[..3], [0, 3, 0]);
    assert!(matches!(ask::<Value>(&mut dashboard, "RL.INSPECT limit:log"), Value::Array(_)));
    for command in commands.iter().filter(|command| !["rl.peek", "rl.inspect"].contains(&command.name.as_str())) {
        assert!(!super::may(&mut dashboard, &command.call(&["limit:spent", "limit:log"])), "{}", command.name);
    }
    for refused in ["RL.PEEK other:spent", "RL.INSPECT other:spent", "GET limit:spent", "DEL limit:spent"] {
        assert!(error(&mut dashboard, refused).starts_with("NOPERM"), "{refused}");
    }
    assert_eq!(digest(&mut admin), before);
}

#[test]
fn a_selector_gives_other_commands_on_other_keys() {
    let server = Server::new();
    let mut admin = server.connect();
    fill(&mut admin);
    let mut gateway = user_of_the_page(&server, "gateway");
    assert_eq!(decide(&mut gateway, "RL.TOKENBUCKET limit:gateway:42 10 10/m 3")[2], 7);
    assert_eq!(decide(&mut gateway, "RL.REFUND limit:gateway:42 1")[2], 8);
    assert_eq!(decide(&mut gateway, "RL.PEEK limit:gateway:42")[2], 8);
    assert_eq!(decide(&mut gateway, "RL.PEEK limit:spent")[2], 0, "the limits of others it only sees");
    for refused in
        ["RL.TOKENBUCKET limit:b 10 10/m", "RL.REFUND limit:spent 1", "RL.PEEK other:spent", "GET limit:spent"]
    {
        assert!(error(&mut gateway, refused).starts_with("NOPERM"), "{refused}");
    }
}

#[test]
fn a_user_by_category_has_all_limiters_and_nothing_else() {
    let server = Server::new();
    let mut admin = server.connect();
    if version(&mut admin) < (7, 2) {
        return skip("has no category of limiters");
    }
    user_of_the_page(&server, "limiters");
    let commands = Known::all(&mut admin);
    let expected = names(commands.iter().filter(|command| command.has_key));
    assert_eq!(may_call(&mut admin, "limiters"), expected);
    let mut limiters = log_in(&server, "limiters", "secret");
    assert!(send::<Value>(&mut limiters, "RL.FIXED limit:x 3 1m").is_ok());
    assert!(error(&mut limiters, "RL.FIXED other:x 3 1m").starts_with("NOPERM"));
}
