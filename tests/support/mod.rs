//! What the tests share: real servers, and a short way to talk to them.

mod clock;
mod cluster;
mod disk;
mod port;
mod preload;
mod proxy;
mod replica;
mod sentinel;
mod server;
mod silent;

pub use clock::{Clock, HOUR, NOON, SECOND};
pub use cluster::Cluster;
pub use disk::Disk;
pub use port::free_port;
pub use preload::library;
pub use proxy::Proxy;
pub use replica::{offset, replica_by, replica_of, wait_for_replicas, wait_until};
pub use sentinel::Sentinels;
pub use server::{Options, Server, module};
pub use silent::Silent;

use redis::{Connection, FromRedisValue, RedisResult};

/// Sends the words of `line`.
pub fn send<T: FromRedisValue>(connection: &mut Connection, line: &str) -> RedisResult<T> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    send_words(connection, &words)
}

/// Sends words that may hold any bytes.
pub fn send_words<T: FromRedisValue>(connection: &mut Connection, words: &[&[u8]]) -> RedisResult<T> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query(connection)
}

/// Sends the words of `line`, which must succeed.
pub fn ask<T: FromRedisValue>(connection: &mut Connection, line: &str) -> T {
    send(connection, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The five integers of a decision.
pub fn decide(connection: &mut Connection, line: &str) -> [i64; 5] {
    let reply: Vec<i64> = ask(connection, line);
    reply.try_into().unwrap_or_else(|reply| panic!("{line}: {reply:?} are not five integers"))
}

/// The whole text of the error that the words of `line` must lead to.
pub fn error(connection: &mut Connection, line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    error_of_words(connection, &words)
}

/// The same for words that may hold any bytes.
pub fn error_of_words(connection: &mut Connection, words: &[&[u8]]) -> String {
    let shown = || words.iter().map(|word| word[..word.len().min(40)].escape_ascii().to_string()).collect::<Vec<_>>();
    match send_words::<redis::Value>(connection, words) {
        Ok(reply) => panic!("{:?}: no error but {reply:?}", shown()),
        Err(error) => match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            _ => panic!("{:?}: {error}", shown()),
        },
    }
}

/// The digest of the whole data set: equal digests, equal data.
pub fn digest(connection: &mut Connection) -> String {
    ask(connection, "DEBUG DIGEST")
}

/// Says that a test has nothing to show on this server, and why; scripts/matrix tells it.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    println!("skipped: {test}: {reason}");
}

/// A field of `INFO`.
pub fn info(connection: &mut Connection, section: &str, field: &str) -> Option<String> {
    let info: String = ask(connection, &format!("INFO {section}"));
    info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned))
}

/// How many calls of commands whose name begins so the server has run.
pub fn calls(connection: &mut Connection, command: &str) -> u64 {
    let info: String = ask(connection, "INFO commandstats");
    let of = format!("cmdstat_{}", command.to_lowercase());
    let lines = info.lines().filter(|line| line.starts_with(&of));
    lines.filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok()).sum()
}

/// How many errors with this code the server has answered.
pub fn errors(connection: &mut Connection, code: &str) -> u64 {
    let line = info(connection, "errorstats", &format!("errorstat_{code}"));
    line.and_then(|line| line.strip_prefix("count=")?.parse().ok()).unwrap_or(0)
}

/// The version of Redis that the server is, or says it is compatible with.
pub fn version(connection: &mut Connection) -> (u32, u32) {
    let text = info(connection, "server", "redis_version").expect("a version");
    let mut parts = text.split('.').map(|part| part.parse().expect("a number"));
    (parts.next().expect("a major version"), parts.next().expect("a minor version"))
}
