//! Who may do what: ACL key patterns, categories and the users that `docs/commands.md` writes down, and what replicas refuse.

mod page;
mod patterns;
mod replicas;

use redis::{Connection, RedisResult, Value};

use crate::support::{Server, ask, send_words};

/// A connection of a user who has these rules.
fn user(server: &Server, rules: &str) -> Connection {
    ask::<()>(&mut server.connect(), &format!("ACL SETUSER someone reset on nopass {rules}"));
    log_in(server, "someone", "any")
}

fn log_in(server: &Server, name: &str, password: &str) -> Connection {
    let mut redis = server.connect();
    ask::<()>(&mut redis, &format!("AUTH {name} {password}"));
    redis
}

/// Whether the user may make this call. It must then succeed, or it proves nothing.
fn may(redis: &mut Connection, call: &[String]) -> bool {
    let words: Vec<&[u8]> = call.iter().map(String::as_bytes).collect();
    permitted(send_words::<Value>(redis, &words)).unwrap_or_else(|error| panic!("{call:?}: {error}"))
}

fn permitted(reply: RedisResult<Value>) -> RedisResult<bool> {
    match reply {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some("NOPERM") => Ok(false),
        Err(error) => Err(error),
    }
}
