//! The conformance vectors in `vectors/`, replayed over a socket: what a server replies is what the models say.

#[path = "../../limiter/tests/vectors/file.rs"]
mod file;

use std::collections::BTreeSet;

use redis::{Connection, RedisResult, Value};
use redis_rl::command::TABLE;

use self::file::{Reply, files};
use crate::support::{Options, ask, send_words};

/// What there was when this was written. It may grow.
const STEPS: usize = 4_886;

#[test]
fn a_server_replies_as_the_vectors_say() {
    let mut server = Options::new().with_clock().start();
    for protocol in [2, 3] {
        let mut redis = server.connect_by(protocol);
        let mut steps = 0;
        for (file, book) in files() {
            for scenario in &book {
                ask::<()>(&mut redis, "FLUSHALL");
                for (number, step) in scenario.steps.iter().enumerate() {
                    server.clock().set(i64::try_from(step.at_us).unwrap());
                    let told = call(&mut redis, &step.call);
                    let place = format!("RESP{protocol}, {file}: {}, step {}", scenario.name, number + 1);
                    let (call, reply, why) = (&step.call, &step.reply, &scenario.why);
                    assert!(reply.is_met_by(&told), "{place}: {call:?} is told {told:?}, not {reply:?}: {why}");
                }
                steps += scenario.steps.len();
            }
        }
        println!("RESP{protocol}: {steps} steps");
        assert!(steps >= STEPS, "{steps} steps");
    }
}

/// What no client has to be equal to.
const FOR_PEOPLE: [&str; 2] = ["RL.INSPECT", "RL.TOP"];

#[test]
fn the_vectors_call_every_command_and_have_each_kind_of_reply_to_it() {
    let told: BTreeSet<(String, &str)> = files()
        .into_iter()
        .flat_map(|(_, book)| book)
        .flat_map(|scenario| scenario.steps)
        .map(|step| {
            let kind = match &step.reply {
                Reply::Error { .. } => "an error",
                Reply::Integers(numbers) if numbers[0] == 0 => "integers that begin with 0",
                Reply::Integers(_) | Reply::Integer(_) => "integers",
                Reply::Null(()) => "null",
            };
            (step.call[0].clone(), kind)
        })
        .collect();
    for command in &TABLE {
        let name = command.name.to_string_lossy().to_uppercase();
        for kind in ["an error", "integers"] {
            let has = told.contains(&(name.clone(), kind));
            assert!(has || FOR_PEOPLE.contains(&name.as_str()), "no vector has {kind} as the reply to {name}");
        }
    }
}

fn call(redis: &mut Connection, words: &[String]) -> Reply {
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let told: RedisResult<Value> = send_words(redis, &words);
    match told {
        Ok(Value::Nil) => Reply::Null(()),
        Ok(Value::Int(number)) => Reply::Integer(number),
        Ok(Value::Array(values)) => Reply::Integers(values.iter().map(integer).collect()),
        Ok(other) => panic!("{other:?} has no place in a reply"),
        Err(error) => match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => Reply::Error { error: format!("{code} {detail}") },
            _ => panic!("the server is gone: {error}"),
        },
    }
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no integer"),
    }
}
