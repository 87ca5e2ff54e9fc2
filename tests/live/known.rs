//! The commands of the module as a server lists them, so that tests of all of them forget none.

use redis::{Connection, Value};

use crate::support::ask;

/// A command of the module.
#[derive(Debug)]
pub struct Known {
    pub name: String,
    /// How many words a call has at least, the name among them.
    words: usize,
    /// Whether it only looks.
    pub reads: bool,
    /// How many words lie between two of its keys, if it takes several.
    pub step: Option<usize>,
    /// Whether it names a key at all.
    pub has_key: bool,
}

impl Known {
    /// All commands of the module that the server has.
    pub fn all(redis: &mut Connection) -> Vec<Self> {
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

    /// A call that the command accepts, for keys that begin so, of which one that takes a single key gets the first, and one that takes
    /// none gets none. The keys end with the command's name: each has its own, since another kind of limiter is refused.
    pub fn call(&self, keys: &[&str]) -> Vec<String> {
        // Ones are numbers, windows and rates, and names too; only a kind must be one.
        let kind = (self.name == "rl.multi").then(|| "fixed".to_owned());
        let others = |count| kind.iter().cloned().chain(std::iter::repeat("1".to_owned())).take(count);
        let mut call = vec![self.name.clone()];
        if !self.has_key {
            call.extend(others(self.words - 1));
            return call;
        }
        for key in if self.step.is_some() { keys } else { &keys[..1] } {
            call.push(format!("{key}:{}", self.name));
            call.extend(others(self.step.unwrap_or(self.words - 1) - 1));
        }
        call
    }
}
