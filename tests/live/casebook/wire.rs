//! Calls as commands, and what comes back.

use std::thread;

use redis::{Connection, RedisResult, Value as Answer};
use serde_json::{Value, json};

use super::book::case::{Case, Kind, Request};
use super::book::expectation::Reply;
use crate::support::Server;

/// So many commands are on their way at once.
const PIPELINE: usize = 10_000;

/// The command that decides by an algorithm.
pub fn command(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::FixedWindow => Some("RL.FIXED"),
        Kind::SlidingWindow => Some("RL.SLIDING"),
        Kind::TokenBucket => Some("RL.TOKENBUCKET"),
        Kind::LeakyBucket => Some("RL.LEAKY"),
        Kind::SlidingLog => Some("RL.SLIDINGLOG"),
        Kind::Concurrency => Some("RL.CONCURRENT"),
        Kind::Release => Some("RL.RELEASE"),
    }
}

/// The words of a call.
pub fn words(request: &Request) -> redis::Cmd {
    let mut words = redis::cmd(command(request.kind).expect("a command that is there"));
    words.arg(&request.key);
    match request.kind {
        Kind::Release => words.arg(&request.holder),
        Kind::Concurrency => words.arg(&request.most).arg(&request.pace).arg(&request.holder).arg(&request.cost),
        _ => words.arg(&request.most).arg(&request.pace).arg(&request.cost),
    };
    words
}

/// Makes the same call so many times.
pub fn send(redis: &mut Connection, request: &Request, times: usize) -> Vec<Reply> {
    let words = words(request);
    let mut replies = Vec::with_capacity(times);
    while replies.len() < times {
        let mut pipeline = redis::pipe();
        for _ in 0..PIPELINE.min(times - replies.len()) {
            pipeline.add_command(words.clone());
        }
        let answers: Vec<RedisResult<Answer>> = pipeline.ignore_errors().query(redis).expect("replies");
        replies.extend(answers.into_iter().map(reply));
    }
    replies
}

/// Makes the same call so many times on each of so many connections.
pub fn send_at_once(server: &Server, connections: usize, request: &Request, times: usize) -> Vec<Reply> {
    let connections: Vec<Connection> = (0..connections).map(|_| server.connect()).collect();
    thread::scope(|scope| {
        let callers: Vec<_> = connections
            .into_iter()
            .map(|mut redis| {
                scope.spawn(move || (0..times).flat_map(|_| send(&mut redis, request, 1)).collect::<Vec<_>>())
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("replies")).collect()
    })
}

/// Asks the limits of the case that has several: what the one is told that is named.
pub fn send_several(redis: &mut Connection) -> Reply {
    let mut words = redis::cmd("RL.MULTI");
    for (key, limit, window) in Case::SEVERAL {
        words.arg(key).arg("FIXED").arg(limit).arg(window).arg(1);
    }
    let numbers: Vec<i64> = words.query(redis).expect("a decision");
    let named = &numbers[2 + 5 * usize::try_from(numbers[1]).expect("an index")..][..5];
    assert_eq!(named[0], numbers[0], "it is named for what it says");
    Reply::Decision(named.try_into().expect("five integers"))
}

/// Sends words that are no call.
pub fn send_words(redis: &mut Connection, words: &[&str]) -> Reply {
    reply(redis::cmd(words[0]).arg(&words[1..]).query(redis))
}

/// Five integers are a decision.
pub fn reply(answer: RedisResult<Answer>) -> Reply {
    match answer {
        Ok(answer) => {
            let value = json(&answer);
            match serde_json::from_value(value.clone()) {
                Ok(fields) => Reply::Decision(fields),
                Err(_) => Reply::Plain(value),
            }
        }
        Err(error) => match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => Reply::Error(format!("{code} {detail}")),
            _ => panic!("the server is gone: {error}"),
        },
    }
}

/// Bytes that are no text are escaped.
fn json(answer: &Answer) -> Value {
    match answer {
        Answer::Nil => Value::Null,
        Answer::Int(number) => json!(number),
        Answer::Okay => json!("OK"),
        Answer::SimpleString(text) => json!(text),
        Answer::BulkString(bytes) => json!(bytes.escape_ascii().to_string()),
        Answer::Array(answers) | Answer::Set(answers) => answers.iter().map(json).collect(),
        other => panic!("what is {other:?}?"),
    }
}
