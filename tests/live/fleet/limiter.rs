//! Limiters of all kinds, of which nothing comes back by itself while a test runs.

use redis::{Cmd, ConnectionLike};

/// Windows and refills of a hundred years.
const KINDS: [(&str, &str); 5] = [
    ("RL.FIXED", "36500d"),
    ("RL.SLIDING", "36500d"),
    ("RL.SLIDINGLOG", "36500d"),
    ("RL.TOKENBUCKET", "1/36500d"),
    ("RL.LEAKY", "1/36500d"),
];

/// Of every three limiters of a kind one is soon exhausted.
const SCARCE: i64 = 30;
const AMPLE: i64 = 100_000;

pub struct Limiter {
    pub key: String,
    pub limit: i64,
    command: &'static str,
    time: &'static str,
    pub takes_back: bool,
    pub takes_debits: bool,
}

impl Limiter {
    /// The kinds take turns.
    pub fn new(index: usize, key: String) -> Self {
        let (command, time) = KINDS[index % KINDS.len()];
        let is_scarce = index / KINDS.len() % 3 == 1;
        let limit = if is_scarce { SCARCE } else { AMPLE };
        // So that no debt arises: a limiter has either been overdrawn or counts what it gave, and here it is counted.
        let takes_debits = command == "RL.TOKENBUCKET" && !is_scarce;
        Self { key, limit, command, time, takes_back: command != "RL.LEAKY", takes_debits }
    }

    pub fn take(&self, cost: i64) -> String {
        format!("{} {} {} {} {cost}", self.command, self.key, self.limit, self.time)
    }

    pub fn give_back(&self, amount: i64) -> String {
        format!("RL.REFUND {} {amount}", self.key)
    }

    pub fn debit(&self, amount: i64) -> String {
        format!("RL.DEBIT {} {} {} {amount}", self.key, self.limit, self.time)
    }

    /// What is used, by the server.
    pub fn used<C: ConnectionLike>(&self, redis: &mut C) -> i64 {
        self.limit - self.decide(redis, 0)[2]
    }

    /// Takes all that is left, after which a unit more must be denied. Returns how many units that were.
    pub fn exhaust<C: ConnectionLike>(&self, redis: &mut C) -> i64 {
        let left = self.limit - self.used(redis);
        if left > 0 {
            assert_eq!(self.decide(redis, left)[..3], [1, self.limit, 0], "{}: the last {left}", self.key);
        }
        assert_eq!(self.decide(redis, 1)[0], 0, "{}: after all was taken", self.key);
        left
    }

    pub fn take_one<C: ConnectionLike>(&self, redis: &mut C) {
        assert_eq!(self.decide(redis, 1)[0], 1, "{}: the first unit", self.key);
    }

    fn decide<C: ConnectionLike>(&self, redis: &mut C, cost: i64) -> Vec<i64> {
        let line = self.take(cost);
        command(&line).query(redis).unwrap_or_else(|error| panic!("{line}: {error}"))
    }
}

/// The words of `line`, the second of which is a key.
pub fn command(line: &str) -> Cmd {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command
}
