//! Calls, and what they do to what is used.

use redis::{Cmd, Value};

/// A call to a limiter.
pub struct Call {
    /// Which of the limiters.
    pub limiter: usize,
    pub line: String,
    pub effect: Effect,
}

#[derive(Clone, Copy)]
pub enum Effect {
    /// All of it or nothing.
    Take(i64),
    /// All of it: whoever gives back was given more.
    Refund(i64),
    /// As much as fits.
    Debit(i64),
}

impl Call {
    pub fn command(&self) -> Cmd {
        let mut words = self.line.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>());
        command
    }

    /// What the call has added to what is used, by its reply.
    pub fn done(&self, reply: &Value) -> i64 {
        let reply: Vec<i64> = redis::from_redis_value(reply.clone())
            .unwrap_or_else(|error| panic!("{} was answered {reply:?}: {error}", self.line));
        match self.effect {
            Effect::Take(cost) => cost * reply[0],
            Effect::Refund(amount) => -amount,
            Effect::Debit(amount) => amount - reply[5],
        }
    }

    /// All that the call can have added if nobody knows its reply.
    pub fn possible(&self) -> Vec<i64> {
        match self.effect {
            Effect::Take(cost) => vec![0, cost],
            Effect::Refund(amount) => vec![0, -amount],
            Effect::Debit(amount) => (0..=amount).collect(),
        }
    }
}
