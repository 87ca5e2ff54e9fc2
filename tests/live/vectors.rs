//! The conformance vectors in `vectors/`, replayed over a socket: what a server replies is what the models say.

#[path = "../../limiter/tests/vectors/file.rs"]
mod file;

use redis::{Connection, RedisResult, Value};

use self::file::{Reply, files};
use crate::support::{Options, ask, send_words};

/// What there was when this was written. It may grow.
const STEPS: usize = 4_000;

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
