//! Scenarios, written as scripts: calls at times that may depend on what the models replied to the calls before.

use super::file::{Reply, Scenario, Step};
use super::oracle::Oracle;

/// 2026-11-30 12:00:00 UTC, a Monday, in microseconds.
pub const NOON: u64 = 1_796_040_000_000_000;

pub const MILLI: u64 = 1_000;
pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;

/// The largest integer of a call or a reply.
pub const MOST: u64 = (1 << 53) - 1;

/// Where a decision has its fields.
const REMAINING: usize = 2;
const RETRY_AFTER: usize = 3;
const RESET: usize = 4;

/// A scenario on its way, which begins at noon.
pub struct Script {
    scenario: Scenario,
    now: u64,
    /// One keeps what is unused, the other one drops it at once.
    oracles: [Oracle; 2],
}

/// The reply to a call.
pub struct Told(Reply);

/// A file on its way.
#[derive(Default)]
pub struct Book(Vec<Scenario>);

impl Book {
    /// Adds a scenario.
    pub fn add(&mut self, name: &str, why: &str, script: impl FnOnce(&mut Script)) {
        let scenario = Scenario { name: name.to_owned(), why: why.to_owned(), steps: Vec::new() };
        let oracles = [false, true].map(Oracle::new);
        let mut begun = Script { scenario, now: NOON, oracles };
        script(&mut begun);
        self.0.push(begun.scenario);
    }

    pub fn scenarios(self) -> Vec<Scenario> {
        self.0
    }
}

impl Script {
    /// The words of the line are called now.
    pub fn call(&mut self, line: &str) -> Told {
        self.call_words(&line.split(' ').collect::<Vec<_>>())
    }

    /// The same for words that are empty or have spaces.
    pub fn call_words(&mut self, words: &[&str]) -> Told {
        let call: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let now = self.now;
        let [reply, other] = self.oracles.each_mut().map(|oracle| oracle.call(now, &call));
        let name = &self.scenario.name;
        assert_eq!(reply, other, "{name}: {call:?} depends on whether what is unused was collected");
        self.scenario.steps.push(Step { at_us: now, call, reply: reply.clone() });
        Told(reply)
    }

    /// Calls in a row.
    pub fn calls(&mut self, lines: &[&str]) {
        for line in lines {
            self.call(line);
        }
    }

    /// The same call until it has been denied, at gaps; then a millisecond before its wait ends, and when it ends.
    pub fn exhaust(&mut self, line: &str, gap: u64) {
        for _ in 0..40 {
            if self.wait_out(line) {
                return;
            }
            self.pass(gap);
        }
        panic!("{}: {line} is never denied", self.scenario.name);
    }

    /// A call; if it is denied the same a millisecond before its wait ends, and when it ends. Whether it was denied.
    pub fn wait_out(&mut self, line: &str) -> bool {
        let told = self.call(line);
        let Some(wait) = told.wait().filter(|_| !told.is_allowed()) else { return !told.is_allowed() };
        self.pass((wait - 1) * MILLI);
        assert!(!self.call(line).is_allowed(), "{}: {line} is allowed too early", self.scenario.name);
        self.pass(MILLI);
        assert!(self.call(line).is_allowed(), "{}: {line} is denied when the wait is over", self.scenario.name);
        true
    }

    /// So many microseconds pass.
    pub fn pass(&mut self, micros: u64) {
        self.now += micros;
    }

    /// The clock goes back by so many microseconds.
    pub fn step_back(&mut self, micros: u64) {
        assert!(self.may_step_back(), "{}: what is unused may be gone or not", self.scenario.name);
        self.now -= micros;
    }

    /// How many calls there were.
    pub fn calls_so_far(&self) -> u64 {
        self.scenario.steps.len() as u64
    }

    /// Whether no answer would then depend on what a server has collected.
    pub fn may_step_back(&self) -> bool {
        self.oracles[0].is_settled(self.now)
    }
}

impl Told {
    pub fn is_allowed(&self) -> bool {
        matches!(&self.0, Reply::Integers(numbers) if numbers[0] == 1)
    }

    /// The milliseconds to wait, unless that is for ever.
    pub fn wait(&self) -> Option<u64> {
        u64::try_from(self.field(RETRY_AFTER)).ok()
    }

    pub fn remaining(&self) -> u64 {
        u64::try_from(self.field(REMAINING)).unwrap()
    }

    /// The milliseconds until it is unused.
    pub fn reset(&self) -> u64 {
        u64::try_from(self.field(RESET)).unwrap()
    }

    /// A number of the reply, counted from 0; 0 if it is no array.
    pub fn field(&self, index: usize) -> i64 {
        match &self.0 {
            Reply::Integers(numbers) => numbers[index],
            _ => 0,
        }
    }
}
