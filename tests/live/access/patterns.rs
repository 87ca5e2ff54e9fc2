//! Key patterns and categories, for every command that the server has of the module.

use std::collections::BTreeSet;

use redis::{Connection, Value};

use super::{may, user};
use crate::known::Known;
use crate::support::{Server, ask, digest, error, send_words, skip, version};

const OURS: &str = "limit:x";
const THEIRS: &str = "other:x";

#[test]
fn every_command_honours_key_patterns() {
    let server = Server::new();
    let mut admin = server.connect();
    let commands = Known::all(&mut admin);
    let mut limited = user(&server, "~limit:* +@all");
    let mut seen = 0;
    for command in commands.iter().filter(|command| command.has_key) {
        ask::<()>(&mut admin, "FLUSHALL");
        assert!(may(&mut limited, &command.call(&[OURS, "limit:y"])), "{}", command.name);
        let before = digest(&mut admin);
        assert!(!may(&mut limited, &command.call(&[THEIRS, "other:y"])), "{}", command.name);
        if command.step.is_some() {
            assert!(!may(&mut limited, &command.call(&[OURS, THEIRS])), "{}: the second key", command.name);
            assert!(!may(&mut limited, &command.call(&[THEIRS, OURS])), "{}: the first key", command.name);
        }
        assert_eq!(digest(&mut admin), before, "{}: what is refused changes nothing", command.name);
        seen += 1;
    }
    assert!(seen >= 9, "only {seen} commands have a key");
}

#[test]
fn who_decides_must_be_able_to_read_and_write_the_key_and_who_looks_to_read_it() {
    let server = Server::new();
    let commands = Known::all(&mut server.connect());
    for (pattern, may_look, may_decide) in [("%R~", true, false), ("%W~", false, false), ("%RW~", true, true)] {
        let mut someone = user(&server, &format!("{pattern}limit:* +@all"));
        for command in commands.iter().filter(|command| command.has_key) {
            let expected = if command.reads { may_look } else { may_decide };
            assert_eq!(may(&mut someone, &command.call(&[OURS, "limit:y"])), expected, "{pattern}: {}", command.name);
        }
    }
}

/// What a user may call of all that the server has, by `ACL DRYRUN` with keys that match.
pub(super) fn may_call(admin: &mut Connection, user: &str) -> BTreeSet<String> {
    let commands: Vec<String> = ask(admin, "COMMAND LIST");
    assert!(commands.len() > 250, "{} commands", commands.len());
    commands.into_iter().filter(|command| may_run(admin, user, command)).collect()
}

fn may_run(admin: &mut Connection, user: &str, command: &str) -> bool {
    let info: Vec<Vec<Value>> = ask(admin, &format!("COMMAND INFO {command}"));
    let Value::Int(arity) = info[0][1] else { panic!("{command}: {info:?}") };
    // As many words as it takes, of which each may be a key.
    let mut call: Vec<&str> = command.split('|').collect();
    call.resize(call.len().max(usize::try_from(arity.unsigned_abs()).unwrap()), OURS);
    let words: Vec<&[u8]> = ["ACL", "DRYRUN", user].into_iter().chain(call).map(str::as_bytes).collect();
    match send_words::<String>(admin, &words) {
        Ok(reply) => !reply.contains("has no permissions to run"),
        // One that has subcommands is no command by itself.
        Err(error) if error.to_string().contains("not found") => false,
        Err(error) => panic!("{command}: {error}"),
    }
}

/// What needs no permission: to log in, and to leave.
const FREE: [&str; 4] = ["auth", "hello", "quit", "reset"];

pub(super) fn names<'a>(commands: impl IntoIterator<Item = &'a Known>) -> BTreeSet<String> {
    commands.into_iter().map(|command| command.name.clone()).chain(FREE.map(str::to_owned)).collect()
}

#[test]
fn categories_give_the_limiters_and_nothing_else() {
    let server = Server::new();
    let mut admin = server.connect();
    if version(&mut admin) < (7, 2) {
        return skip("commands of modules are in no category, which another test shows");
    }
    let commands = Known::all(&mut admin);
    let with_keys = || commands.iter().filter(|command| command.has_key);
    for (category, looks, decides) in [("@read", true, false), ("@write", false, true), ("@ratelimit", true, true)] {
        let mut someone = user(&server, &format!("~limit:* -@all +{category}"));
        for command in with_keys() {
            let expected = if command.reads { looks } else { decides };
            assert_eq!(may(&mut someone, &command.call(&[OURS, "limit:y"])), expected, "{category}: {}", command.name);
        }
    }
    // This user has `@ratelimit` yet.
    assert_eq!(may_call(&mut admin, "someone"), names(with_keys()));
    for command in commands.iter().filter(|command| !command.has_key) {
        let info = format!("{:?}", ask::<Value>(&mut admin, &format!("COMMAND INFO {}", command.name)));
        assert!(info.contains("@dangerous"), "{} looks at all keys, whatever the patterns", command.name);
    }
}

/// Neither to allow nor to forbid: whoever may not write by `-@write` may decide all the same, and `-@admin` leaves all key names to be seen.
#[test]
fn on_redis_7_0_no_category_holds_commands_of_modules() {
    let server = Server::new();
    let mut admin = server.connect();
    if version(&mut admin) >= (7, 2) {
        return skip("commands of modules are in categories, which another test shows");
    }
    let commands = Known::all(&mut admin);
    let mut by_category = user(&server, "~limit:* -@all +@read +@write +@fast +@slow");
    for command in &commands {
        assert!(!may(&mut by_category, &command.call(&[OURS, "limit:y"])), "{}", command.name);
    }
    ask::<()>(&mut admin, "CONFIG SET rl.top-keys 9");
    let mut reader = user(&server, "~limit:* +@all -@write -@admin -@dangerous");
    assert!(error(&mut reader, "SET limit:s x").starts_with("NOPERM"));
    for command in &commands {
        assert!(may(&mut reader, &command.call(&[OURS, "limit:y"])), "{}: a category forbids it", command.name);
    }
    assert!(error(&mut admin, "ACL SETUSER someone +@ratelimit").contains("Unknown command or category name"));
}
