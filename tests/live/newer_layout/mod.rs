//! States of a newer layout: refused by those that can't read them, and never touched.

mod builds;
mod rolling;

use redis::{Connection, Value};
use rl_limiter::layout::READS_UP_TO;

use crate::support::{HOUR, NOON, Options, Server, ask, decide, digest, error, info, send, send_words};

const NEWER: &str = "WRONGTYPE the key holds a limiter of a newer version of redis-rl";
const NO_LIMITER: &str = "WRONGTYPE the key holds a string that is no limiter";

/// A state of each form.
fn states(server: &mut Server) -> Vec<Vec<u8>> {
    let mut redis = server.connect();
    let calls = [
        "RL.FIXED state 10 1d 4",
        "RL.SLIDING state 10 1d 4",
        "RL.TOKENBUCKET state 10 1/d 4",
        "RL.TOKENBUCKET state 9007199254740991 1/d 4",
        "RL.LEAKY state 10 1/d 4",
        "RL.LEAKY state 9007199254740991 1/d 4",
        "RL.SLIDINGLOG state 10 1d 4",
        "RL.CONCURRENT state 10 1d holder 4",
        "RL.CONCURRENT state 10 1d a-holder-with-a-longer-name 4",
    ];
    let mut states: Vec<Vec<u8>> = calls
        .map(|call| {
            ask::<()>(&mut redis, "DEL state");
            decide(&mut redis, call);
            ask(&mut redis, "GET state")
        })
        .into();
    ask::<()>(&mut redis, "DEL state");
    for _ in 0..300 {
        server.clock().advance(1_000);
        decide(&mut redis, "RL.SLIDINGLOG state 900 1d");
    }
    states.push(ask(&mut redis, "GET state"));
    states
}

/// Every command of the module that has a key, on the key `k`.
fn all_calls(redis: &mut Connection) -> Vec<String> {
    let names: Vec<String> = ask(redis, "COMMAND LIST FILTERBY MODULE rl");
    let call = |name: &String| match name.as_str() {
        "rl.fixed" | "rl.sliding" | "rl.slidinglog" => format!("{name} k 10 1d"),
        "rl.tokenbucket" | "rl.leaky" => format!("{name} k 10 1/d"),
        "rl.concurrent" => "rl.concurrent k 10 1d holder".to_owned(),
        "rl.release" => "rl.release k holder".to_owned(),
        "rl.multi" => "rl.multi k fixed 10 1d 1".to_owned(),
        "rl.lease" => "rl.lease k 10 1/d node 1 0 1 30".to_owned(),
        "rl.debit" => "rl.debit k 10 1/d 1".to_owned(),
        "rl.refund" => "rl.refund k 1".to_owned(),
        "rl.peek" | "rl.inspect" => format!("{name} k"),
        _ => panic!("say here how {name} is called"),
    };
    let on_keys = names.iter().filter(|name| *name != "rl.top");
    let calls = on_keys.map(call);
    calls.chain(["rl.refund k 1 AGE 1h".to_owned(), "rl.fixed k 10 1d 0".to_owned()]).collect()
}

/// All about the key that a call could change, and whether anything was written at all.
fn all_about(redis: &mut Connection) -> (Vec<u8>, i64, String, Option<String>) {
    let writes = info(redis, "persistence", "rdb_changes_since_last_save");
    (ask(redis, "GET k"), ask(redis, "PEXPIRETIME k"), digest(redis), writes)
}

#[test]
fn a_state_of_a_newer_layout_is_refused_by_every_command_and_never_touched() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let calls = all_calls(&mut redis);
    for state in states(&mut server) {
        for (version, body) in [(READS_UP_TO + 1, None), (u8::MAX, None), (READS_UP_TO + 1, Some(0xFF))] {
            let mut newer = state.clone();
            newer[2] = version;
            newer[4..].iter_mut().for_each(|byte| *byte = body.unwrap_or(*byte));
            for expiry in [vec![], vec!["PX", "100000000"]] {
                server.clock().set(NOON);
                let mut set: Vec<&[u8]> = vec![b"SET", b"k", &newer];
                set.extend(expiry.iter().map(|word| word.as_bytes()));
                send_words::<()>(&mut redis, &set).unwrap();
                let before = all_about(&mut redis);
                for step in [0, -HOUR, HOUR] {
                    server.clock().set(NOON + step);
                    calls.iter().for_each(|call| assert_refused(&mut redis, call));
                }
                assert_eq!(all_about(&mut redis), before, "{} bytes", newer.len());
            }
        }
    }
}

/// The error that a call gets; of several limits it tells which one, which is the first.
fn refusal(redis: &mut Connection, call: &str) -> String {
    error(redis, call).trim_end_matches(" (limit 0)").to_owned()
}

/// Alone, in a transaction and in a script.
fn assert_refused(redis: &mut Connection, call: &str) {
    assert_eq!(refusal(redis, call), NEWER, "{call}");
    ask::<()>(redis, "MULTI");
    ask::<()>(redis, call);
    let executed = format!("{:?}", send::<Value>(redis, "EXEC"));
    assert!(executed.contains("a newer version of redis-rl"), "{call} in a transaction: {executed}");
    let (command, arguments) = call.split_once(" k").unwrap();
    let mut script: Vec<&[u8]> = vec![b"EVAL", b"return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))", b"1", b"k"];
    script.push(command.as_bytes());
    script.extend(arguments.split_whitespace().map(str::as_bytes));
    let scripted = send_words::<Value>(redis, &script).unwrap_err().to_string();
    assert!(scripted.contains("a newer version of redis-rl"), "{call} in a script: {scripted}");
}

/// In a length that no state of this version has, it can't be told from any other string without a look that would
/// change how the server keeps that.
#[test]
fn a_newer_layout_in_an_unknown_length_is_some_string_and_never_touched() {
    let server = Server::new();
    let mut redis = server.connect();
    for length in [4, 30, 45, 105, 1_000] {
        let newer = [b"\xF5L\xFF\x10".as_slice(), &vec![7; length - 4]].concat();
        send_words::<()>(&mut redis, &[b"SET", b"k", &newer]).unwrap();
        let encoding: String = ask(&mut redis, "OBJECT ENCODING k");
        let before = all_about(&mut redis);
        for call in all_calls(&mut redis) {
            assert_eq!(refusal(&mut redis, &call), NO_LIMITER, "{call}");
        }
        assert_eq!(all_about(&mut redis), before);
        assert_eq!(ask::<String>(&mut redis, "OBJECT ENCODING k"), encoding);
    }
}
