//! What happened to a limiter, as its callers and its clock saw it.

use redis::Connection;

use super::kind::{Kind, LIMIT, WINDOW};
use crate::support::{Clock, decide};

#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A call was admitted and took so many units.
    Admitted(i64),
    /// So many units were taken whatever was there.
    Taken(i64),
    /// At most so many units were given back.
    Given(i64),
    /// The clock went, in microseconds since the Unix epoch.
    Moved { from: i64, to: i64 },
}

/// What happened between two events, both included.
#[derive(Default)]
pub struct Stretch {
    pub taken: i64,
    pub given: i64,
    /// Microseconds that the clock went forward, its ways back left out.
    pub forward: i64,
    /// How often it went forward over the edge of a window: over many at once counts as once, for nobody called in between.
    pub edges: i64,
}

impl Stretch {
    pub fn extend(&mut self, event: &Event) {
        match *event {
            Event::Admitted(units) | Event::Taken(units) => self.taken += units,
            Event::Given(units) => self.given += units,
            Event::Moved { from, to } => {
                self.forward += (to - from).max(0);
                self.edges += i64::from(to.div_euclid(WINDOW) > from.div_euclid(WINDOW));
            }
        }
    }
}

/// Writes down what happens to one limiter.
pub struct Witness {
    pub kind: Kind,
    limit: i64,
    pub events: Vec<Event>,
}

impl Witness {
    pub fn of(kind: Kind) -> Self {
        Self::with_limit(kind, LIMIT)
    }

    pub fn with_limit(kind: Kind, limit: i64) -> Self {
        Self { kind, limit, events: Vec::new() }
    }

    /// Calls, and returns the answer.
    pub fn call(&mut self, redis: &mut Connection, key: &str, cost: i64) -> [i64; 5] {
        let answer = decide(redis, &self.kind.call_of(key, self.limit, cost));
        if answer[0] == 1 {
            self.events.push(Event::Admitted(cost));
        }
        answer
    }

    /// Takes one unit after another until one is denied. Returns how many were admitted, and the denial.
    pub fn exhaust(&mut self, redis: &mut Connection, key: &str) -> (i64, [i64; 5]) {
        for admitted in 0..=10 * self.limit {
            let answer = self.call(redis, key, 1);
            if answer[0] == 0 {
                return (admitted, answer);
            }
        }
        panic!("{:?}: no end of what is admitted", self.kind);
    }

    pub fn advance(&mut self, clock: &mut Clock, micros: i64) {
        let from = clock.now();
        clock.advance(micros);
        self.events.push(Event::Moved { from, to: clock.now() });
    }

    pub fn assert_kept(&self) {
        self.kind.assert_kept(&self.events, self.limit);
    }
}
