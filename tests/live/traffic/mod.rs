//! Callers of limiters of all kinds, and the books about what was admitted.
//!
//! Nothing comes back by itself while a test runs, so what is used is what was taken and not given back: to the unit,
//! whatever happens to the server. Only a call whose reply never came may count or not.

mod call;
mod ledger;
mod limiter;
pub mod random;
mod worker;

use std::process::Command;
use std::thread;

use redis::Connection;

pub use self::ledger::Ledger;
use self::limiter::{Limiter, REFUNDABLE};
pub use self::random::Random;
use self::worker::{Desk, Manner, work};
use crate::support::{Server, ask, info};

const CALLERS: usize = 16;

/// The limiters, and what was used of each when that was last looked at.
pub struct Traffic {
    limiters: Vec<Limiter>,
    used: Vec<i64>,
    /// How many limiters all callers share.
    shared: usize,
}

impl Traffic {
    pub fn new() -> Self {
        let mut limiters: Vec<_> = ["hot", "warm", "cold"].into_iter().flat_map(Limiter::of_each_kind).collect();
        let shared = limiters.len();
        limiters.extend((0..CALLERS).map(|caller| Limiter::of_kind(caller % REFUNDABLE, &format!("own{caller}"))));
        limiters.extend([Limiter::of_kind(0, "pair"), Limiter::of_kind(3, "pair")]);
        Self { used: vec![0; limiters.len()], limiters, shared }
    }

    /// Lets all callers loose until `end` has ended the server, or their connections. Returns what they know then.
    pub fn run(&self, server: &Server, end: impl FnOnce()) -> Ledger {
        let mut known = Ledger::new(self.limiters.len());
        thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|caller| {
                    let mut redis = server.connect();
                    scope.spawn(move || work(&mut redis, manner(caller), &self.desk(caller)))
                })
                .collect();
            end();
            callers.into_iter().for_each(|caller| known.add(caller.join().unwrap()));
        });
        known
    }

    fn desk(&self, caller: usize) -> Desk<'_> {
        let (limiters, own) = (self.limiters.as_slice(), self.shared + caller);
        let pair = self.shared + CALLERS;
        Desk { limiters, shared: 0..self.shared, own, own_used: self.used[own], pair: [pair, pair + 1] }
    }

    /// What is used must be what the callers know: nothing is forgotten, and nothing made up.
    pub fn assert_as_known(&mut self, redis: &mut Connection, known: &Ledger) {
        for (index, limiter) in self.limiters.iter().enumerate() {
            let added = limiter.used(redis) - self.used[index];
            let possible = known.possible(index);
            assert!(
                possible.contains(&added),
                "{}: {added} more are used, where {} were answered and {possible:?} are possible",
                limiter.key,
                known.certain(index)
            );
            self.used[index] += added;
        }
        let pair = &self.used[self.shared + CALLERS..];
        assert_eq!(pair[0], pair[1], "a transaction counts wholly or not at all");
    }

    /// How many units, at the least, are not used although they were admitted and not given back.
    pub fn forgotten(&self, redis: &mut Connection, known: &Ledger) -> i64 {
        let forgotten = |(index, limiter): (usize, &Limiter)| {
            let least = self.used[index] + known.possible(index).first().unwrap();
            (least - limiter.used(redis)).max(0)
        };
        self.limiters.iter().enumerate().map(forgotten).sum()
    }

    /// What is used must be what it was when that was last looked at.
    pub fn assert_unchanged(&mut self, redis: &mut Connection) {
        self.assert_as_known(redis, &Ledger::new(self.limiters.len()));
    }

    pub fn assert_only_the_rest_can_be_had(&self, redis: &mut Connection) {
        self.limiters.iter().for_each(|limiter| limiter.assert_only_the_rest_can_be_had(redis));
    }
}

/// `kill -9`, while the callers hold on to the server.
pub fn kill(server: &Server) {
    let process = info(&mut server.connect(), "server", "process_id").unwrap();
    let killed = Command::new("kill").args(["-9", &process]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

/// Ends the callers, and leaves the server as it is.
pub fn hang_up(server: &Server) {
    ask::<()>(&mut server.connect(), "CLIENT KILL TYPE normal");
}

/// Ten send one by one, four pipeline, two in transactions.
fn manner(caller: usize) -> Manner {
    match caller {
        0..=9 => Manner::OneByOne,
        10..=13 => Manner::Pipelined,
        _ => Manner::InPairs,
    }
}
