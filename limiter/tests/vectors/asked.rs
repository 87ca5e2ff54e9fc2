//! Calls, read from their words by the naive grammar.

use num_bigint::BigInt;

use crate::grammar;
use crate::lease_model::{self, Said};
use crate::model::{Exact, fixed_window, sliding_window, token_bucket};

/// What a call asks.
pub enum Asked {
    Several { limits: Vec<(String, Policy, u64)>, alone: bool },
    Place { key: String, limit: u64, ttl: u64, holder: String, cost: u64, renew_only: bool },
    Release { key: String, holder: String },
    Peek { key: String, cost: u64 },
    Refund { key: String, amount: u64, age: Option<u64> },
    Debit { key: String, params: token_bucket::Params, amount: u64 },
    Lease { key: String, params: lease_model::Params, said: Said },
}

/// The parameters of a limit.
pub enum Policy {
    Fixed(fixed_window::Params),
    Sliding(sliding_window::Params),
    Log { limit: u64, window: u64 },
    Bucket(token_bucket::Params),
    Leaky(token_bucket::Params),
}

const UNITS: &str = "an integer from 0 to 9007199254740991";
const ABOVE_0: &str = "an integer from 1 to 9007199254740991";
const WINDOW: &str = "a duration from 1ms to 36500d, such as 60, 250ms or 1h";
const LEASE_TTL: &str = "a duration from 10ms to 1h, such as 500ms or 5";
const AGE: &str = "a duration from 0 to 36500d, such as 60, 250ms or 1h";
const NAME: &str = "1 to 64 bytes";
const RATE: &str = "a number above 0 of at most 15 digits, per second or per duration, such as 10, 0.5, 100/60 or 5/h";
const WRONG_NUMBER: &str = "ERR wrong number of arguments";

/// The ttl of a lease in microseconds.
const LEASE_TTLS: std::ops::RangeInclusive<u64> = 10_000..=3_600_000_000;

/// The words of a call behind the name of its command.
struct Words<'a>(&'a [String]);

impl Asked {
    /// The error is the beginning of its text.
    pub fn read(call: &[String]) -> Result<Self, String> {
        let words = Words(&call[1..]);
        let name = call[0].to_ascii_uppercase();
        let (fewest, most) = match name.as_str() {
            "RL.FIXED" | "RL.SLIDING" | "RL.SLIDINGLOG" | "RL.TOKENBUCKET" | "RL.LEAKY" => (3, 4),
            "RL.MULTI" => (5, usize::MAX),
            "RL.CONCURRENT" => (4, 6),
            "RL.RELEASE" => (2, 2),
            "RL.PEEK" => (1, 2),
            "RL.REFUND" => (2, 4),
            "RL.DEBIT" => (4, 4),
            "RL.LEASE" => (8, 10),
            other => panic!("no model knows {other}"),
        };
        if !(fewest..=most).contains(&words.0.len()) {
            return Err(WRONG_NUMBER.to_owned());
        }
        let key = words.0[0].clone();
        match name.as_str() {
            "RL.MULTI" => several(&words),
            "RL.CONCURRENT" => place(&words, key),
            "RL.RELEASE" => Ok(Self::Release { key, holder: words.name(1, "holder")? }),
            "RL.PEEK" => Ok(Self::Peek { key, cost: words.units_or_1(1, "cost")? }),
            "RL.REFUND" => {
                let amount = words.units(1, "amount")?;
                let age = match words.after(2, "AGE") {
                    None => return Err("ERR only AGE and a duration may follow the amount".to_owned()),
                    Some(None) => None,
                    Some(Some(text)) => Some(grammar::age(text.as_bytes()).ok_or_else(|| must_be("AGE", AGE))?),
                };
                Ok(Self::Refund { key, amount, age })
            }
            "RL.DEBIT" => Ok(Self::Debit { key, params: words.bucket(1)?, amount: words.units(3, "amount")? }),
            "RL.LEASE" => lease(&words, key),
            algorithm => {
                let policy = words.policy(algorithm.trim_start_matches("RL."), 1)?;
                let limits = vec![(key, policy, words.units_or_1(3, "cost")?)];
                Ok(Self::Several { limits, alone: true })
            }
        }
    }
}

fn several(words: &Words<'_>) -> Result<Asked, String> {
    if !words.0.len().is_multiple_of(5) {
        return Err(WRONG_NUMBER.to_owned());
    }
    let times = words.0.len() / 5;
    if times > 32 {
        return Err(format!("ERR a call may ask from 1 to 32 limits, not {times}"));
    }
    let limits = (0..times).map(|index| {
        let at = index * 5;
        let policy = words.policy(&words.0[at + 1].to_ascii_uppercase(), at + 2);
        let cost = |policy| Ok((words.0[at].clone(), policy, words.units(at + 4, "cost")?));
        policy.and_then(cost).map_err(|error| format!("{error} (limit {index})"))
    });
    let limits = limits.collect::<Result<Vec<_>, String>>()?;
    if (0..times).any(|index| limits[..index].iter().any(|(key, ..)| *key == limits[index].0)) {
        return Err("ERR the same key is named twice".to_owned());
    }
    Ok(Asked::Several { limits, alone: false })
}

fn place(words: &Words<'_>, key: String) -> Result<Asked, String> {
    let (limit, ttl, holder) = (words.units(1, "limit")?, words.window(2, "ttl")?, words.name(3, "holder")?);
    let is_xx = |index: usize| words.0.get(index).is_some_and(|word| word.eq_ignore_ascii_case("XX"));
    let (cost, renew_only) = match words.0.len() {
        5 if is_xx(4) => (1, true),
        6 => {
            let cost = words.units(4, "cost")?;
            if !is_xx(5) {
                return Err("ERR only XX may follow the cost".to_owned());
            }
            (cost, true)
        }
        _ => (words.units_or_1(4, "cost")?, false),
    };
    Ok(Asked::Place { key, limit, ttl, holder, cost, renew_only })
}

fn lease(words: &Words<'_>, key: String) -> Result<Asked, String> {
    let token_bucket::Params { capacity, rate } = words.bucket(1)?;
    let node = words.name(3, "node")?.into_bytes();
    let seq = words.integer(4).filter(|&seq| seq > 0).ok_or_else(|| must_be("seq", ABOVE_0))?;
    let (have, want) = (words.units(5, "have")?, words.units(6, "want")?);
    let ttl = grammar::window(words.0[7].as_bytes()).filter(|ttl| LEASE_TTLS.contains(ttl));
    let ttl = ttl.ok_or_else(|| must_be("ttl", LEASE_TTL))?;
    let min = match words.after(8, "MIN") {
        None => return Err("ERR only MIN and an integer may follow the ttl".to_owned()),
        Some(None) => 0,
        Some(Some(text)) => grammar::integer(text.as_bytes()).ok_or_else(|| must_be("MIN", UNITS))?,
    };
    let params = lease_model::Params { capacity, rate };
    Ok(Asked::Lease { key, params, said: Said { node, seq, have, want, ttl, min } })
}

impl Words<'_> {
    fn integer(&self, index: usize) -> Option<u64> {
        grammar::integer(self.0[index].as_bytes())
    }

    fn units(&self, index: usize, name: &str) -> Result<u64, String> {
        self.integer(index).ok_or_else(|| must_be(name, UNITS))
    }

    fn units_or_1(&self, index: usize, name: &str) -> Result<u64, String> {
        if index < self.0.len() { self.units(index, name) } else { Ok(1) }
    }

    fn window(&self, index: usize, name: &str) -> Result<u64, String> {
        grammar::window(self.0[index].as_bytes()).ok_or_else(|| must_be(name, WINDOW))
    }

    fn name(&self, index: usize, name: &str) -> Result<String, String> {
        let word = &self.0[index];
        if (1..=64).contains(&word.len()) { Ok(word.clone()) } else { Err(must_be(name, NAME)) }
    }

    /// A capacity and a rate.
    fn bucket(&self, index: usize) -> Result<token_bucket::Params, String> {
        let capacity = self.units(index, "capacity")?;
        let rate = grammar::rate(self.0[index + 1].as_bytes()).ok_or_else(|| must_be("rate", RATE))?;
        Ok(token_bucket::Params { capacity, rate: Exact::new(BigInt::from(rate.0), BigInt::from(rate.1)) })
    }

    fn policy(&self, kind: &str, index: usize) -> Result<Policy, String> {
        let windowed = || Ok::<_, String>((self.units(index, "limit")?, self.window(index + 1, "window")?));
        match kind {
            "FIXED" => windowed().map(|(limit, window)| Policy::Fixed(fixed_window::Params { limit, window })),
            "SLIDING" => windowed().map(|(limit, window)| Policy::Sliding(sliding_window::Params { limit, window })),
            "SLIDINGLOG" => windowed().map(|(limit, window)| Policy::Log { limit, window }),
            "TOKENBUCKET" => self.bucket(index).map(Policy::Bucket),
            "LEAKY" => self.bucket(index).map(Policy::Leaky),
            _ => Err("ERR kind must be FIXED, SLIDING, SLIDINGLOG, TOKENBUCKET or LEAKY".to_owned()),
        }
    }

    /// The word behind a keyword, with which the call ends; `Some(None)` if it ends before it.
    fn after(&self, index: usize, keyword: &str) -> Option<Option<&str>> {
        match &self.0[index..] {
            [] => Some(None),
            [word, value] if word.eq_ignore_ascii_case(keyword) => Some(Some(value)),
            _ => None,
        }
    }
}

fn must_be(name: &str, allowed: &str) -> String {
    format!("ERR {name} must be {allowed}")
}
