//! What the server tells about the commands, and that the documentation says the same.

use redis::Value;
use redis_rl::command::TABLE;

use crate::support::{Server, ask, error, send};

#[test]
fn every_command_has_arity_flags_and_a_key_spec() {
    let server = Server::new();
    let mut redis = server.connect();
    for command in TABLE {
        let name = command.name.to_str().unwrap();
        let info: Vec<Vec<Value>> = ask(&mut redis, &format!("COMMAND INFO {name}"));
        let text = format!("{info:?}");
        assert_eq!(info[0][1], Value::Int(command.arity.into()), "{name}");
        for flag in command.flags.to_str().unwrap().split(' ') {
            assert!(
                text.contains(&format!("simple-string(\"{flag}\")")),
                "{name} lacks {flag}: {text}"
            );
        }
        assert!(
            !text.contains("denyoom"),
            "{name}: limiters that exist go on deciding when memory is full"
        );
        assert_eq!(
            info[0][3..6],
            [Value::Int(1), Value::Int(1), Value::Int(1)],
            "{name}"
        );
        let keys: Vec<String> = ask(&mut redis, &format!("COMMAND GETKEYS {name} the-key 1 1"));
        assert_eq!(keys, ["the-key"], "{name}");
    }
}

#[test]
fn every_command_is_documented_by_the_server() {
    let server = Server::new();
    let mut redis = server.connect();
    for command in TABLE {
        let name = command.name.to_str().unwrap();
        let docs = format!(
            "{:?}",
            ask::<Value>(&mut redis, &format!("COMMAND DOCS {name}"))
        );
        for text in [command.summary, command.complexity, command.since] {
            assert!(docs.contains(text.to_str().unwrap()), "{name}: {docs}");
        }
        for argument in command.arguments {
            assert!(
                docs.contains(&format!("{:?}", argument.name.to_str().unwrap())),
                "{name}: {docs}"
            );
        }
    }
}

#[test]
fn the_reference_has_each_command_with_its_syntax() {
    let reference = include_str!("../../docs/commands.md");
    for command in TABLE {
        let mut syntax = command.name.to_str().unwrap().to_uppercase();
        for argument in command.arguments {
            let name = argument.name.to_str().unwrap();
            syntax += &if argument.optional {
                format!(" [{name}]")
            } else {
                format!(" {name}")
            };
        }
        assert!(
            reference.contains(&format!("### `{syntax}`")),
            "docs/commands.md lacks {syntax}"
        );
        let summary = command.summary.to_str().unwrap();
        assert!(
            reference.contains(summary),
            "docs/commands.md says something else than: {summary}"
        );
    }
    let documented = reference.matches("\n### `RL.").count();
    assert_eq!(
        documented,
        TABLE.len(),
        "docs/commands.md documents other commands"
    );
}

/// Redis 7.0 puts the commands of modules into no category; later servers let the module choose.
#[test]
fn categories_allow_and_forbid_where_the_server_has_them() {
    let server = Server::new();
    let mut redis = server.connect();
    let has_categories =
        format!("{:?}", ask::<Value>(&mut redis, "COMMAND INFO rl.peek")).contains("@read");
    ask::<()>(
        &mut redis,
        "ACL SETUSER reader on nopass ~* resetchannels -@all +@read",
    );
    ask::<()>(
        &mut redis,
        "ACL SETUSER named on nopass ~limits:* -@all +rl.fixed",
    );
    let mut reader = server.connect();
    ask::<()>(&mut reader, "AUTH reader any");
    if has_categories {
        assert_eq!(ask::<Value>(&mut reader, "RL.PEEK k"), Value::Nil);
    } else {
        assert!(error(&mut reader, "RL.PEEK k").starts_with("NOPERM"));
    }
    assert!(error(&mut reader, "RL.FIXED k 1 1").starts_with("NOPERM"));

    // By name and key pattern it works everywhere.
    let mut named = server.connect();
    ask::<()>(&mut named, "AUTH named any");
    assert!(send::<Vec<i64>>(&mut named, "RL.FIXED limits:1 1 1").is_ok());
    assert!(error(&mut named, "RL.FIXED other:1 1 1").starts_with("NOPERM"));
    assert!(error(&mut named, "RL.TOKENBUCKET limits:1 1 1").starts_with("NOPERM"));
}
