//! Limiters of all kinds and forms, of which nothing comes back by itself while a test runs.

use redis::{Connection, Value};

use crate::support::{ask, decide};

/// What can be done to a key.
pub struct Limiter {
    pub key: String,
    pub command: &'static str,
    /// Two policies between which callers disagree; the first is the one that is asked for at the end.
    pub policies: [&'static str; 2],
    pub limit: i64,
    pub refunds: bool,
    pub debits: bool,
}

/// Windows and refills of months and years. Between two policies of one kind the form changes, or a parameter, or (of
/// logs) by so much that the expiry must move.
const KINDS: [(&str, &str, [&str; 2]); 12] = [
    ("fixed", "RL.FIXED", ["1000000 36500d", "1000001 36499d"]),
    ("sliding", "RL.SLIDING", ["1000000 36500d", "1000001 36499d"]),
    ("log", "RL.SLIDINGLOG", ["1000000 36500d", "1000001 20000d"]),
    ("narrow", "RL.TOKENBUCKET", ["1000000 1/100d", "1000001 1/99d"]),
    ("wide", "RL.TOKENBUCKET", ["1000000 1/36500d", "9007199254740991 1/36499d"]),
    ("both-forms", "RL.TOKENBUCKET", ["1000000 1/100d", "1000000 1/36500d"]),
    ("leaky", "RL.LEAKY", ["1000000 1/100d", "1000000 1/36500d"]),
    ("scarce-fixed", "RL.FIXED", ["300 36500d"; 2]),
    ("scarce-sliding", "RL.SLIDING", ["300 36500d"; 2]),
    ("scarce-log", "RL.SLIDINGLOG", ["300 36500d"; 2]),
    ("scarce-bucket", "RL.TOKENBUCKET", ["300 1/100d"; 2]),
    ("scarce-leaky", "RL.LEAKY", ["300 1/100d"; 2]),
];

/// The kinds that can be brought back to unused.
pub const REFUNDABLE: usize = 6;

impl Limiter {
    /// One of each kind.
    pub fn of_each_kind(name: &str) -> Vec<Self> {
        (0..KINDS.len()).map(|kind| Self::of_kind(kind, name)).collect()
    }

    pub fn of_kind(kind: usize, name: &str) -> Self {
        let (kind, command, policies) = KINDS[kind];
        let limit = policies[0].split(' ').next().unwrap().parse().unwrap();
        let debits = command == "RL.TOKENBUCKET";
        Self { key: format!("{kind}:{name}"), command, policies, limit, refunds: command != "RL.LEAKY", debits }
    }

    /// What is used, by `RL.INSPECT`; `RL.PEEK` must see it the same way, and the expiry must fit.
    pub fn used(&self, redis: &mut Connection) -> i64 {
        let Some(told) = ask::<Option<Vec<Value>>>(redis, &format!("RL.INSPECT {}", self.key)) else {
            assert_eq!(ask::<i64>(redis, &format!("EXISTS {}", self.key)), 0, "{} is unused, but not gone", self.key);
            return 0;
        };
        let number = |wanted: &str| {
            let is_wanted = |pair: &&[Value]| pair[0] == Value::BulkString(wanted.into());
            told.chunks_exact(2).find(is_wanted).map(|pair| redis::from_redis_value::<i64>(pair[1].clone()).unwrap())
        };
        let used = number("used").or_else(|| Some(number("current")? + number("previous")?)).unwrap();
        let [_, limit, remaining, _, reset] = decide(redis, &format!("RL.PEEK {}", self.key));
        assert_eq!(remaining, (limit - used).max(0), "{}: {used} of {limit} are used", self.key);
        let left: i64 = ask(redis, &format!("PTTL {}", self.key));
        let fits = (reset - 1_000..=reset + reset / 4 + 1_000).contains(&left);
        // No expiry is later than what a state's time can be.
        assert!(fits || reset > 1 << 51, "{}: {left} ms left of it, where {reset} ms are until it is unused", self.key);
        used
    }

    /// What is not used, and not a unit more, can be had.
    pub fn assert_only_the_rest_can_be_had(&self, redis: &mut Connection) {
        let rest = (self.limit - self.used(redis)).max(0);
        let take = |cost| format!("{} {} {} {cost}", self.command, self.key, self.policies[0]);
        assert_eq!(decide(redis, &take(rest + 1))[0], 0, "{}: more than the rest, {rest}", self.key);
        if rest > 0 {
            assert_eq!(decide(redis, &take(rest))[..3], [1, self.limit, 0], "{}: the rest, {rest}", self.key);
        }
        assert_eq!(decide(redis, &take(1))[0], 0, "{}: after all was taken", self.key);
    }
}
