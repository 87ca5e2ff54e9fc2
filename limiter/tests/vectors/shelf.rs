//! The crate in the place of a server: keys with bytes under them, and calls as words.

use std::collections::BTreeMap;

use rl_limiter::layout::{State, Stored};
use rl_limiter::lease::{self, Answer, Ask, Seq, Ttl};
use rl_limiter::{
    Age, ArgumentError, Capacity, Concurrency, Cost, Decision, FixedWindow, JointVerdict, LeakyBucket, Limit, Limiter,
    Micros, Name, Plan, Rate, RetryAfter, SlidingLog, SlidingWindow, TokenBucket, TooManyEntries, Vote, Window,
    concurrency, sliding_log,
};

use super::file::Reply;

const MOST_HOLDERS: usize = 1_000;
const MOST_ENTRIES: u32 = 100_000;

/// Bytes by key.
pub struct Shelf {
    keys: BTreeMap<String, Vec<u8>>,
    collects: bool,
}

/// What a call does to a key.
enum Change {
    State(State),
    Log(sliding_log::Plan),
    Places(concurrency::Plan),
    Leases(lease::Plan),
}

/// A limiter of any kind that several can be of.
enum Any {
    Fixed(FixedWindow),
    Sliding(SlidingWindow),
    Log(SlidingLog),
    Bucket(TokenBucket),
    Leaky(LeakyBucket),
}

type Voted = Vote<Change, TooManyEntries>;

impl Shelf {
    /// One that drops every key the moment it is unused if `collects` is set, else none ever.
    pub fn new(collects: bool) -> Self {
        Self { keys: BTreeMap::new(), collects }
    }

    /// Replies to a call at `now`.
    pub fn call(&mut self, now: u64, call: &[String]) -> Reply {
        let now = Micros::new(now).unwrap();
        if self.collects {
            self.keys.retain(|_, bytes| !Stored::read(bytes).unwrap().is_unused(now));
        }
        let words: Vec<&[u8]> = call[1..].iter().map(|word| word.as_bytes()).collect();
        self.reply(now, &call[0], &words).unwrap_or_else(|error| Reply::Error { error })
    }

    fn reply(&mut self, now: Micros, name: &str, words: &[&[u8]]) -> Result<Reply, String> {
        let (fewest, most) = match name {
            "RL.FIXED" | "RL.SLIDING" | "RL.SLIDINGLOG" | "RL.TOKENBUCKET" | "RL.LEAKY" => (3, 4),
            "RL.MULTI" if words.len().is_multiple_of(5) => (5, usize::MAX),
            "RL.CONCURRENT" => (4, 6),
            "RL.RELEASE" => (2, 2),
            "RL.PEEK" => (1, 2),
            "RL.REFUND" => (2, 4),
            "RL.DEBIT" => (4, 4),
            "RL.LEASE" => (8, 10),
            _ => (usize::MAX, 0),
        };
        if !(fewest..=most).contains(&words.len()) {
            return Err("ERR wrong number of arguments".to_owned());
        }
        let key = std::str::from_utf8(words[0]).unwrap();
        match name {
            "RL.MULTI" => self.several(now, words),
            "RL.CONCURRENT" => self.place(now, key, words),
            "RL.RELEASE" => self.release(now, key, Name::parse("holder", words[1]).map_err(refused)?),
            "RL.PEEK" => {
                let cost = cost(words, 1)?;
                let bytes = self.bytes(key);
                Ok(used(&bytes, now).map_or(Reply::Null(()), |stored| five(stored.peek(now, cost))))
            }
            "RL.REFUND" => {
                let amount = Cost::parse("amount", words[1]).map_err(refused)?;
                let age = after(words, 2, "AGE", "ERR only AGE and a duration may follow the amount")?;
                let age = age.map(|text| Age::parse("AGE", text).map_err(refused)).transpose()?;
                self.refund(now, key, amount, age)
            }
            "RL.DEBIT" => {
                let limiter = bucket(words, 1)?;
                self.debit(now, key, limiter, Cost::parse("amount", words[3]).map_err(refused)?)
            }
            "RL.LEASE" => self.lease(now, key, words),
            algorithm => {
                let limiter = Any::read(algorithm.trim_start_matches("RL."), words, 1)?;
                let cost = cost(words, 3)?;
                let vote = self.vote(now, key, &limiter, cost)?;
                let allowed = JointVerdict::of([vote.summary()]).allowed;
                let decision = self.settle(key, now, &vote, allowed)?;
                Ok(five(decision))
            }
        }
    }

    fn several(&mut self, now: Micros, words: &[&[u8]]) -> Result<Reply, String> {
        let limits: Vec<_> = words.chunks(5).collect();
        if limits.len() > 32 {
            return Err(format!("ERR a call may ask from 1 to 32 limits, not {}", limits.len()));
        }
        let about = |index: usize| move |error: String| format!("{error} (limit {index})");
        let mut read = Vec::new();
        for (index, limit) in limits.iter().enumerate() {
            let [key, kind] = [limit[0], limit[1]].map(|word| std::str::from_utf8(word).unwrap());
            let limiter = Any::read(&kind.to_ascii_uppercase(), limit, 2).map_err(about(index))?;
            read.push((key, limiter, cost(limit, 4).map_err(about(index))?));
        }
        if (1..read.len()).any(|index| read[..index].iter().any(|(key, ..)| *key == read[index].0)) {
            return Err("ERR the same key is named twice".to_owned());
        }
        let mut votes = Vec::new();
        for (index, (key, limiter, cost)) in read.iter().enumerate() {
            votes.push(self.vote(now, key, limiter, *cost).map_err(about(index))?);
        }
        let verdict = JointVerdict::of(votes.iter().map(Vote::summary));
        let mut numbers = vec![i64::from(verdict.allowed), i64::try_from(verdict.index).unwrap()];
        for ((key, ..), vote) in read.iter().zip(&votes) {
            numbers.extend(integers(self.settle(key, now, vote, verdict.allowed)?));
        }
        Ok(Reply::Integers(numbers))
    }

    fn vote(&self, now: Micros, key: &str, limiter: &Any, cost: Cost) -> Result<Voted, String> {
        let bytes = self.bytes(key);
        let stored = used(&bytes, now);
        match (limiter, stored) {
            (Any::Fixed(limiter), stored) => vote_small(*limiter, stored, now, cost),
            (Any::Sliding(limiter), stored) => vote_small(*limiter, stored, now, cost),
            (Any::Leaky(limiter), stored) => vote_small(*limiter, stored, now, cost),
            (Any::Bucket(limiter), Some(Stored::Leases(leases))) => {
                Ok(leases.judge(*limiter, now, cost, Change::Leases))
            }
            (Any::Bucket(limiter), stored) => vote_small(*limiter, stored, now, cost),
            (Any::Log(limiter), None) => Ok(limiter.judge(None, now, cost, MOST_ENTRIES, Change::Log)),
            (Any::Log(limiter), Some(Stored::SlidingLog(log))) => {
                Ok(limiter.judge(Some(log), now, cost, MOST_ENTRIES, Change::Log))
            }
            (Any::Log(_), Some(other)) => Err(other_kind(&other)),
        }
    }

    fn settle(&mut self, key: &str, now: Micros, vote: &Voted, allowed: bool) -> Result<Decision, String> {
        let outcome = vote.outcome(allowed).map_err(|full| format!("ERR {full:?}"))?;
        if let Some(change) = outcome.next {
            self.change(key, now, change);
        }
        Ok(outcome.decision)
    }

    fn place(&mut self, now: Micros, key: &str, words: &[&[u8]]) -> Result<Reply, String> {
        let limit = Limit::parse("limit", words[1]).map_err(refused)?;
        let ttl = Window::parse("ttl", words[2]).map_err(refused)?;
        let holder = Name::parse("holder", words[3]).map_err(refused)?;
        let is_xx = |index: usize| words.get(index).is_some_and(|word| word.eq_ignore_ascii_case(b"XX"));
        let (cost, renew_only) = match words.len() {
            5 if is_xx(4) => (Cost::ONE, true),
            6 => (cost(words, 4)?, is_xx(5)),
            _ => (cost(words, 4)?, false),
        };
        if words.len() == 6 && !renew_only {
            return Err("ERR only XX may follow the cost".to_owned());
        }
        let bytes = self.bytes(key);
        let places = places(&bytes, now)?;
        let request = concurrency::Request { holder, cost, renew_only };
        let outcome = Concurrency::new(limit, ttl).decide(places, now, request, MOST_HOLDERS);
        let outcome = outcome.map_err(|full| format!("ERR {full:?}"))?;
        if let Some(plan) = outcome.next {
            self.change(key, now, &Change::Places(plan));
        }
        Ok(five(outcome.decision))
    }

    fn release(&mut self, now: Micros, key: &str, holder: Name<'_>) -> Result<Reply, String> {
        let bytes = self.bytes(key);
        let Some(places) = places(&bytes, now)? else { return Ok(Reply::Integer(0)) };
        let (units, plan) = places.release(now, holder);
        if let Some(plan) = plan {
            self.change(key, now, &Change::Places(plan));
        }
        Ok(Reply::Integer(signed(units)))
    }

    fn refund(&mut self, now: Micros, key: &str, amount: Cost, age: Option<Age>) -> Result<Reply, String> {
        let bytes = self.bytes(key);
        let takes_nothing_back = |kind: &str| format!("ERR a {kind} limiter takes nothing back");
        let (decision, change) = match used(&bytes, now) {
            None => return Ok(Reply::Null(())),
            Some(Stored::State(state)) => {
                let next = state.refund(now, amount, age).map_err(|_| takes_nothing_back(state.kind()))?;
                (next.unwrap_or(state).peek(now, Cost::ONE), next.map(Change::State))
            }
            Some(Stored::Leases(leases)) => {
                let (decision, next) = leases.refund(now, amount, age);
                (decision, next.map(Change::Leases))
            }
            Some(Stored::SlidingLog(log)) => {
                if let Some(plan) = log.refund(now, amount, age) {
                    self.change(key, now, &Change::Log(plan));
                }
                let bytes = self.bytes(key);
                let left = match used(&bytes, now) {
                    Some(Stored::SlidingLog(log)) => Some(log),
                    _ => None,
                };
                return Ok(five(log.limiter().peek(left, now, Cost::ONE)));
            }
            Some(other @ Stored::Concurrency(_)) => return Err(takes_nothing_back(other.kind())),
        };
        if let Some(change) = change {
            self.change(key, now, &change);
        }
        Ok(five(decision))
    }

    fn debit(&mut self, now: Micros, key: &str, limiter: TokenBucket, amount: Cost) -> Result<Reply, String> {
        let bytes = self.bytes(key);
        let (decision, rest, change) = match used(&bytes, now) {
            Some(Stored::Leases(leases)) => {
                let debit = leases.debit(limiter, now, amount);
                (debit.decision, debit.rest, debit.next.map(Change::Leases))
            }
            other => {
                let debit = limiter.debit(small::<TokenBucket>(other)?, now, amount);
                (debit.decision, debit.rest, debit.next.map(|next| Change::State(next.into())))
            }
        };
        if let Some(change) = change {
            self.change(key, now, &change);
        }
        let mut numbers = integers(decision).to_vec();
        numbers.push(signed(rest));
        Ok(Reply::Integers(numbers))
    }

    fn lease(&mut self, now: Micros, key: &str, words: &[&[u8]]) -> Result<Reply, String> {
        let limiter = bucket(words, 1)?;
        let units = |index: usize, name| Cost::parse(name, words[index]).map_err(refused);
        let min = |words: &[&[u8]]| {
            let least = after(words, 8, "MIN", "ERR only MIN and an integer may follow the ttl")?;
            least.map_or(Ok(Cost::ZERO), |text| Cost::parse("MIN", text).map_err(refused))
        };
        let ask = Ask {
            node: Name::parse("node", words[3]).map_err(refused)?,
            seq: Seq::parse("seq", words[4]).map_err(refused)?,
            have: units(5, "have")?,
            want: units(6, "want")?,
            ttl: Ttl::parse("ttl", words[7]).map_err(refused)?,
            min: min(words)?,
        };
        let bytes = self.bytes(key);
        let state = match used(&bytes, now) {
            Some(Stored::Leases(leases)) => Some(leases),
            other => small::<TokenBucket>(other)?.map(lease::State::from),
        };
        let leased = limiter.lease(state, now, &ask);
        if let Some(plan) = leased.next {
            self.change(key, now, &Change::Leases(plan));
        }
        let Answer { holding, free, outstanding, retry_after, ttl, nodes } = leased.answer;
        let [holding, free, outstanding, ttl, nodes] = [holding, free, outstanding, ttl, nodes].map(signed);
        Ok(Reply::Integers(vec![holding, free, outstanding, wait(retry_after), ttl, nodes]))
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        self.keys.get(key).cloned().unwrap_or_default()
    }

    fn change(&mut self, key: &str, now: Micros, change: &Change) {
        let mut bytes = self.keys.remove(key).unwrap_or_default();
        let is_left = match change {
            Change::State(state) => {
                bytes = state.encode().to_vec();
                !state.is_unused(now)
            }
            Change::Log(plan) => carry_out(plan, &mut bytes),
            Change::Places(plan) => carry_out(plan, &mut bytes),
            Change::Leases(plan) => carry_out(plan, &mut bytes),
        };
        if is_left {
            self.keys.insert(key.to_owned(), bytes);
        }
    }
}

impl Any {
    /// Of a kind, with the two parameters from `index` on.
    fn read(kind: &str, words: &[&[u8]], index: usize) -> Result<Self, String> {
        let limit = || Limit::parse("limit", words[index]).map_err(refused);
        let window = || Window::parse("window", words[index + 1]).map_err(refused);
        Ok(match kind {
            "FIXED" => Self::Fixed(FixedWindow::new(limit()?, window()?)),
            "SLIDING" => Self::Sliding(SlidingWindow::new(limit()?, window()?)),
            "SLIDINGLOG" => Self::Log(SlidingLog::new(limit()?, window()?)),
            "TOKENBUCKET" => Self::Bucket(bucket(words, index)?),
            "LEAKY" => {
                let bucket = bucket(words, index)?;
                Self::Leaky(LeakyBucket::new(bucket.capacity(), bucket.rate()))
            }
            _ => return Err("ERR kind must be FIXED, SLIDING, SLIDINGLOG, TOKENBUCKET or LEAKY".to_owned()),
        })
    }
}

/// What is in use.
fn used(bytes: &[u8], now: Micros) -> Option<Stored<'_>> {
    if bytes.is_empty() {
        return None;
    }
    Some(Stored::read(bytes).unwrap()).filter(|stored| !stored.is_unused(now))
}

fn small<L: Limiter>(stored: Option<Stored<'_>>) -> Result<Option<L::State>, String> {
    match stored {
        None => Ok(None),
        Some(Stored::State(state)) => {
            L::State::try_from(state).map(Some).map_err(|other| other_kind(&Stored::State(other)))
        }
        Some(other) => Err(other_kind(&other)),
    }
}

fn vote_small<L: Limiter>(limiter: L, stored: Option<Stored<'_>>, now: Micros, cost: Cost) -> Result<Voted, String> {
    Ok(limiter.judge(small::<L>(stored)?, now, cost, |next| Change::State(next.into())))
}

fn places(bytes: &[u8], now: Micros) -> Result<Option<concurrency::State<'_>>, String> {
    match used(bytes, now) {
        None => Ok(None),
        Some(Stored::Concurrency(places)) => Ok(Some(places)),
        Some(other) => Err(other_kind(&other)),
    }
}

/// Whether anything is left.
fn carry_out(plan: &impl Plan, bytes: &mut Vec<u8>) -> bool {
    if plan.leaves_nothing() {
        return false;
    }
    if plan.fits() {
        plan.carry_out(bytes);
    } else {
        *bytes = plan.make(bytes);
    }
    true
}

fn cost(words: &[&[u8]], index: usize) -> Result<Cost, String> {
    words.get(index).map_or(Ok(Cost::ONE), |text| Cost::parse("cost", text).map_err(refused))
}

fn bucket(words: &[&[u8]], index: usize) -> Result<TokenBucket, String> {
    let capacity = Capacity::parse("capacity", words[index]).map_err(refused)?;
    Ok(TokenBucket::new(capacity, Rate::parse("rate", words[index + 1]).map_err(refused)?))
}

/// The word behind a keyword, if the call does not end before it.
fn after<'a>(words: &[&'a [u8]], index: usize, keyword: &str, error: &str) -> Result<Option<&'a [u8]>, String> {
    match words[index..] {
        [] => Ok(None),
        [word, value] if word.eq_ignore_ascii_case(keyword.as_bytes()) => Ok(Some(value)),
        _ => Err(error.to_owned()),
    }
}

fn refused(error: ArgumentError) -> String {
    format!("ERR {error}")
}

fn other_kind(stored: &Stored<'_>) -> String {
    format!("WRONGTYPE the key holds a {} limiter", stored.kind())
}

fn five(decision: Decision) -> Reply {
    Reply::Integers(integers(decision).to_vec())
}

fn integers(decision: Decision) -> [i64; 5] {
    let Decision { allowed, limit, remaining, retry_after, reset_after } = decision;
    [allowed.into(), signed(limit), signed(remaining), wait(retry_after), signed(reset_after)]
}

fn wait(retry_after: RetryAfter) -> i64 {
    match retry_after {
        RetryAfter::Millis(millis) => signed(millis),
        RetryAfter::Never => -1,
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}
