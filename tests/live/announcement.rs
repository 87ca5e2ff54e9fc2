//! What the server tells about the commands, and that the documentation says the same.

use redis::Value;
use redis_rl::command::TABLE;
use redis_rl::server::{Access, Argument, ArgumentKind, Keys};

use crate::support::{Server, ask, error, version};

#[test]
fn every_command_says_where_its_key_is() {
    let server = Server::new();
    let mut redis = server.connect();
    for command in TABLE {
        let name = command.name.to_str().unwrap();
        let info: Vec<Vec<Value>> = ask(&mut redis, &format!("COMMAND INFO {name}"));
        if command.access == Access::NoKey {
            assert_eq!(info[0][3..6], [Value::Int(0), Value::Int(0), Value::Int(0)], "{name}");
            assert!(error(&mut redis, &format!("COMMAND GETKEYS {name} 1")).contains("no key arguments"), "{name}");
            continue;
        }
        let (last, step) = match command.keys {
            Keys::First => (1, 1),
            Keys::Every(step) => (-1, step.into()),
        };
        assert_eq!(info[0][3..6], [Value::Int(1), Value::Int(last), Value::Int(step)], "{name}");
        let others = " 1".repeat(command.arity.unsigned_abs() as usize - 2);
        let keys: Vec<String> = ask(&mut redis, &format!("COMMAND GETKEYS {name} the-key{others}"));
        assert_eq!(keys, ["the-key"], "{name}");
    }
}

/// The words that a call can't leave out.
fn words_of(arguments: &[Argument]) -> Vec<&'static str> {
    let words = arguments.iter().filter(|argument| !argument.optional).flat_map(|argument| match argument.kind {
        ArgumentKind::Repeated(each) => words_of(each),
        _ => vec![argument.name.to_str().unwrap()],
    });
    words.collect()
}

#[test]
fn every_command_is_documented_by_the_server() {
    let server = Server::new();
    let mut redis = server.connect();
    for command in TABLE {
        let name = command.name.to_str().unwrap();
        let docs = format!("{:?}", ask::<Value>(&mut redis, &format!("COMMAND DOCS {name}")));
        for text in [command.summary, command.complexity, command.since] {
            assert!(docs.contains(text.to_str().unwrap()), "{name}: {docs}");
        }
        for argument in command.arguments {
            assert!(docs.contains(&format!("{:?}", argument.name.to_str().unwrap())), "{name}: {docs}");
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
            let words = match argument.kind {
                ArgumentKind::TextAfter(keyword) => format!("{} {name}", keyword.to_str().unwrap()),
                ArgumentKind::Repeated(each) => {
                    let each = words_of(each).join(" ");
                    format!("{each} [{each} …]")
                }
                ArgumentKind::Keyword(keyword) => keyword.to_str().unwrap().to_owned(),
                _ => name.to_owned(),
            };
            syntax += &if argument.optional { format!(" [{words}]") } else { format!(" {words}") };
        }
        assert!(reference.contains(&format!("### `{syntax}`")), "docs/commands.md lacks {syntax}");
        let summary = command.summary.to_str().unwrap();
        assert!(reference.contains(summary), "docs/commands.md says something else than: {summary}");
    }
    let documented = reference.matches("\n### `RL.").count();
    assert_eq!(documented, TABLE.len(), "docs/commands.md documents other commands");
}

/// The texts in a reply of arrays, in order, whatever their nesting.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) | Value::Set(values) => values.iter().flat_map(words).collect(),
        Value::SimpleString(text) => vec![text.clone()],
        Value::BulkString(bytes) => vec![String::from_utf8_lossy(bytes).into_owned()],
        Value::Int(number) => vec![number.to_string()],
        _ => vec![],
    }
}

#[test]
fn the_server_knows_what_the_reference_promises() {
    let server = Server::new();
    let mut redis = server.connect();
    let has_categories = version(&mut redis) >= (7, 2);
    let writes = ("fast module write", "@fast @ratelimit @write", "RW access update");
    let looks = ("fast module readonly", "@fast @ratelimit @read", "RO access");
    for (name, arity, (flags, categories, key)) in [
        ("rl.fixed", -4, writes),
        ("rl.sliding", -4, writes),
        ("rl.slidinglog", -4, writes),
        ("rl.tokenbucket", -4, writes),
        ("rl.leaky", -4, writes),
        ("rl.multi", -6, writes),
        ("rl.concurrent", -5, writes),
        ("rl.release", 3, writes),
        ("rl.peek", -2, looks),
        ("rl.refund", -3, writes),
        ("rl.debit", 5, writes),
        ("rl.lease", -9, writes),
        ("rl.inspect", 2, ("module readonly", "@ratelimit @read", "RO access")),
        ("rl.top", -1, ("admin module", "@admin @dangerous", "")),
    ] {
        let info: Vec<Vec<Value>> = ask(&mut redis, &format!("COMMAND INFO {name}"));
        let sorted = |at: usize| {
            let mut found = words(&info[0][at]);
            found.sort();
            found.join(" ")
        };
        assert_eq!(info[0][1], Value::Int(arity), "{name}");
        assert_eq!(sorted(2), flags, "{name}");
        if has_categories {
            assert_eq!(sorted(6), categories, "{name}");
        }
        let spec = words(&info[0][8]).join(" ");
        if key.is_empty() {
            assert_eq!(spec, "", "{name}");
            continue;
        }
        assert!(spec.starts_with(&format!("flags {key} begin_search")), "{name}: {spec}");
    }
}

#[test]
fn arguments_are_described_with_type_and_whether_they_can_be_left_out() {
    let server = Server::new();
    let mut redis = server.connect();
    for (name, expected) in [
        ("rl.fixed", "key:key:0 limit:integer window:string cost:integer?"),
        ("rl.sliding", "key:key:0 limit:integer window:string cost:integer?"),
        ("rl.slidinglog", "key:key:0 limit:integer window:string cost:integer?"),
        ("rl.tokenbucket", "key:key:0 capacity:integer rate:string cost:integer?"),
        ("rl.leaky", "key:key:0 capacity:integer rate:string cost:integer?"),
        (
            "rl.multi",
            "limit:block+(key:key:0 kind:oneof(FIXED fixed:pure-token SLIDING sliding:pure-token \
             SLIDINGLOG slidinglog:pure-token TOKENBUCKET tokenbucket:pure-token LEAKY leaky:pure-token) \
             p1:integer p2:string cost:integer)",
        ),
        ("rl.concurrent", "key:key:0 limit:integer ttl:string holder:string cost:integer? XX renew-only:pure-token?"),
        ("rl.release", "key:key:0 holder:string"),
        ("rl.peek", "key:key:0 cost:integer?"),
        ("rl.refund", "key:key:0 amount:integer AGE duration:string?"),
        ("rl.debit", "key:key:0 capacity:integer rate:string amount:integer"),
        (
            "rl.lease",
            "key:key:0 capacity:integer rate:string node:string seq:integer have:integer want:integer ttl:string \
             MIN least:string?",
        ),
        ("rl.inspect", "key:key:0"),
        ("rl.top", "n:integer?"),
    ] {
        let docs: Vec<Value> = ask(&mut redis, &format!("COMMAND DOCS {name}"));
        let Value::Array(fields) = &docs[1] else { panic!("{docs:?}") };
        let at = fields.iter().position(|field| words(field) == ["arguments"]).unwrap();
        let Value::Array(arguments) = &fields[at + 1] else { panic!("{docs:?}") };
        let described: Vec<String> = arguments.iter().map(described).collect();
        assert_eq!(described.join(" "), expected, "{name}");
    }
}

/// `keyword name:type:key`, a `?` if it can be left out, a `+` if it may come again, and in parentheses what it consists of.
fn described(argument: &Value) -> String {
    let Value::Array(fields) = argument else { panic!("{argument:?}") };
    let after = |name: &str| fields.chunks(2).find(|pair| words(&pair[0]) == [name]).map(|pair| &pair[1]);
    let text = |name: &str| after(name).map(|value| words(value).join(" ")).unwrap_or_default();
    let mark = match text("flags").as_str() {
        "optional" => "?",
        "multiple" => "+",
        _ => "",
    };
    let key = after("key_spec_index").map_or_else(String::new, |index| format!(":{}", words(index)[0]));
    let token = after("token").map_or_else(String::new, |token| format!("{} ", words(token)[0]));
    let inside = match after("arguments") {
        Some(Value::Array(inside)) => format!("({})", inside.iter().map(described).collect::<Vec<_>>().join(" ")),
        _ => String::new(),
    };
    format!("{token}{}:{}{key}{mark}{inside}", text("name"), text("type"))
}

#[test]
fn the_module_says_its_name_and_version() {
    let server = Server::new();
    let mut redis = server.connect();
    let modules: Value = ask(&mut redis, "MODULE LIST");
    let version =
        env!("CARGO_PKG_VERSION").split('.').fold(0, |version, part| version * 100 + part.parse::<i64>().unwrap());
    let words = words(&modules).join(" ");
    assert!(words.contains(&format!("name rl ver {version} ")), "{words}");
}
