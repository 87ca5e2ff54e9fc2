//! Who may do what: ACL key patterns, categories and the users that `docs/commands.md` writes down, and what replicas refuse.

mod page;
mod patterns;
mod replicas;

use redis::{Connection, RedisResult, Value};

use crate::support::{Server, ask, send_words};

/// A command of the module as the server describes it, so that no command can be forgotten here.
#[derive(Debug)]
struct Known {
    name: String,
    /// How many words a call has at least, the name among them.
    words: usize,
    /// Whether it only looks.
    reads: bool,
    /// How many words lie between two of its keys, if it takes several.
    step: Option<usize>,
    has_key: bool,
}

impl Known {
    /// All commands of the module that the server has.
    fn all(redis: &mut Connection) -> Vec<Self> {
        let names: Vec<String> = ask(redis, "COMMAND LIST FILTERBY MODULE rl");
        assert!(names.len() >= redis_rl::command::TABLE.len(), "{names:?}");
        names.into_iter().map(|name| Self::of(redis, name)).collect()
    }

    fn of(redis: &mut Connection, name: String) -> Self {
        let info: Vec<Vec<Value>> = ask(redis, &format!("COMMAND INFO {name}"));
        let number = |at: usize| match info[0][at] {
            Value::Int(number) => number,
            ref other => panic!("{name}: {other:?}"),
        };
        let reads = match &info[0][2] {
            Value::Array(flags) | Value::Set(flags) => flags.contains(&Value::SimpleString("readonly".to_owned())),
            other => panic!("{name}: {other:?}"),
        };
        let step = (number(4) != number(3)).then(|| usize::try_from(number(5)).unwrap());
        let words = usize::try_from(number(1).unsigned_abs()).unwrap();
        Self { words, reads, step, has_key: number(3) != 0, name }
    }

    /// A call that the command accepts, for keys that begin so, of which one that takes a single key gets the first.
    /// The keys end with the command's name: each has its own, since another kind of limiter is refused.
    fn call(&self, keys: &[&str]) -> Vec<String> {
        let mut call = vec![self.name.clone()];
        let keys = if self.step.is_some() { keys } else { &keys[..1] };
        for key in keys {
            call.push(format!("{key}:{}", self.name));
            let others = self.step.unwrap_or(self.words - 1) - 1;
            // Ones are numbers, windows and rates, and names too; only a kind must be one.
            let kind = (self.name == "rl.multi").then(|| "fixed".to_owned());
            call.extend(kind.into_iter().chain(std::iter::repeat("1".to_owned())).take(others));
        }
        call
    }
}

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
