//! One of many callers: it calls until it is told to stop, whatever happens to its server.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use redis::{ConnectionLike, RedisResult, Value};

use super::Fleet;
use super::books::Effect;
use super::limiter::command;

/// How a call reaches the server.
#[derive(Clone, Copy)]
pub enum Way {
    Plain,
    Transaction,
    Script,
    Function,
}

/// What makes `FCALL` work, before the first of them.
pub const LIBRARY: &str = "#!lua name=fleet\n\
    redis.register_function('pass_on', function(keys, args) return redis.call(args[1], keys[1], unpack(args, 2)) end)";
const SCRIPT: &str = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))";

/// What a caller went through.
#[derive(Default)]
pub struct Report {
    pub answers: u64,
    /// What went wrong; nobody tries a call again.
    pub failures: Vec<String>,
}

/// Where a caller calls, and what.
pub struct Caller<'a, C> {
    pub connect: Box<dyn Fn() -> RedisResult<C> + Send + 'a>,
    /// The limiters that it calls.
    pub limiters: Range<usize>,
    pub ways: &'static [Way],
    /// Other lines to send now and then, whose answers nobody counts.
    pub noise: &'a [String],
}

struct Call {
    limiter: usize,
    line: String,
    effect: Effect,
}

impl<C: ConnectionLike> Caller<'_, C> {
    pub fn work(&self, fleet: &Fleet, seed: u64) -> Report {
        let mut random = Random(seed);
        let mut report = Report::default();
        let mut own = vec![0; fleet.limiters.len()];
        let mut connection = None;
        let mut has_lost = false;
        while !fleet.is_over() {
            let redis = match &mut connection {
                Some(redis) => redis,
                empty => match (self.connect)() {
                    Ok(redis) => empty.insert(redis),
                    Err(error) => {
                        report.failures.push(error.to_string());
                        thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                },
            };
            if !self.noise.is_empty() && random.below(4) == 0 {
                let line = &self.noise[random.below(self.noise.len())];
                send(self.way(&mut random), redis, line).unwrap_or_else(|error| panic!("{line}: {error}"));
                continue;
            }
            let call = self.next(fleet, &mut random, &mut own, has_lost);
            match send(self.way(&mut random), redis, &call.line) {
                Ok(reply) => {
                    let reply: Vec<i64> = redis::from_redis_value(reply).unwrap();
                    if matches!(call.effect, Effect::Take(_)) && reply[0] == 0 {
                        own[call.limiter] -= cost(call.effect);
                    }
                    fleet.books.answered(call.limiter, has_lost, call.effect, &reply);
                    report.answers += 1;
                    fleet.count_answer();
                }
                Err(error) => {
                    // What has a code was said by a server that did not run the call.
                    if error.code().is_none() {
                        fleet.books.unanswered(call.limiter, call.effect);
                    }
                    report.failures.push(format!("{}: {error}", call.line));
                    has_lost = true;
                    connection = None;
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
        report
    }

    fn way(&self, random: &mut Random) -> Way {
        self.ways[random.below(self.ways.len())]
    }

    /// Some limiters are called more than others. A caller gives back only what it has, so nothing once it has lost its server: what
    /// that one forgot can't be given back to another.
    fn next(&self, fleet: &Fleet, random: &mut Random, own: &mut [i64], has_lost: bool) -> Call {
        let count = self.limiters.len();
        let limiter = self.limiters.start + random.below(count).min(random.below(count));
        let chosen = &fleet.limiters[limiter];
        let effect = match random.below(10) {
            0 | 1 if chosen.takes_back && own[limiter] > 0 && !has_lost => Effect::GiveBack(1),
            2 if chosen.takes_debits => Effect::Debit(1 + random.below(3) as i64),
            _ => Effect::Take(1 + random.below(3) as i64),
        };
        own[limiter] += match effect {
            Effect::GiveBack(_) => -cost(effect),
            _ => cost(effect),
        };
        let line = match effect {
            Effect::Take(units) => chosen.take(units),
            Effect::GiveBack(units) => chosen.give_back(units),
            Effect::Debit(units) => chosen.debit(units),
        };
        Call { limiter, line, effect }
    }
}

fn cost(effect: Effect) -> i64 {
    match effect {
        Effect::Take(units) | Effect::GiveBack(units) | Effect::Debit(units) => units,
    }
}

fn send<C: ConnectionLike>(way: Way, redis: &mut C, line: &str) -> RedisResult<Value> {
    let wrapped = |name: &str, code: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let mut wrapped = redis::cmd(name);
        wrapped.arg(code).arg(1).arg(words[1]).arg(words[0]).arg(&words[2..]);
        wrapped
    };
    match way {
        Way::Plain => command(line).query(redis),
        Way::Script => wrapped("EVAL", SCRIPT).query(redis),
        Way::Function => wrapped("FCALL", "pass_on").query(redis),
        Way::Transaction => {
            let mut pipe = redis::pipe();
            pipe.atomic().cmd("INCR").arg("transactions").ignore().add_command(command(line));
            pipe.query::<(Value,)>(redis).map(|(reply,)| reply)
        }
    }
}

/// Xorshift: the same calls in each run, as far as one caller is concerned.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
