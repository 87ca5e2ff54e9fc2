//! A primary under load, quiet whenever nobody reads, to which readers come and from which they go.

use std::ops::Range;
use std::thread;

use redis::Connection;

use super::{alone, is_quiet, wait_for_quiet};
use crate::fleet::{Caller, Fleet, LIBRARY, Way, assert_no_failures, connect_to};
use crate::image::Image;
use crate::support::{Options, Server, ask, send_words};
use crate::traffic::Random;

/// How often each reader comes.
pub enum Form {
    Short,
    Long,
}

impl Form {
    /// Runs all rounds: those of the long form on several servers at the same time, as most of each is waiting.
    pub fn run(&self, rounds: impl Fn(Range<u32>) + Sync) {
        match self {
            Self::Short => rounds(0..2),
            Self::Long => thread::scope(|scope| {
                for first in (0..100).step_by(25) {
                    let rounds = &rounds;
                    scope.spawn(move || rounds(first..first + 25));
                }
            }),
        }
    }
}

/// Which keys the load is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    All,
    /// Those that no reader finds expired when it loads them.
    Lasting,
}

pub struct Scene<'a> {
    pub server: &'a Server,
    pub redis: Connection,
    pub random: Random,
    fleet: &'a Fleet,
}

impl Scene<'_> {
    /// Waits until effects are held back, under load, and a little longer.
    pub fn wait_for_quiet(&mut self) {
        wait_for_quiet(&mut self.redis);
        let more = self.random.below(100);
        self.wait_for_answers(more);
        assert!(is_quiet(&mut self.redis), "a round that begins with somebody listening shows nothing");
    }

    pub fn wait_for_answers(&self, count: u64) {
        self.fleet.wait_for_answers(count);
    }

    /// Holds all writes back, and returns what the server has then.
    pub fn pause(&mut self) -> Image {
        ask::<()>(&mut self.redis, "CLIENT PAUSE 60000 WRITE");
        Image::of(&mut self.redis)
    }

    pub fn unpause(&mut self) {
        ask::<()>(&mut self.redis, "CLIENT UNPAUSE");
    }

    /// Another connection.
    pub fn connect(&self) -> Connection {
        self.server.connect()
    }
}

/// Calls of all kinds in all ways, of which the books are kept, and beside them what those have not: holders, leases, several limits in
/// one call, states that are soon unused or change their form, expiries that are lost.
fn noise(fleet: &Fleet, keys: Keys) -> Vec<String> {
    let mut lines: Vec<String> = fleet.keys().map(|key| format!("PERSIST {key}")).collect();
    for index in 0..5 {
        if keys == Keys::All {
            lines.extend([
                format!("RL.SLIDINGLOG short:{index} 40 1ms 3"),
                format!("RL.SLIDINGLOG moving:{index} 1000000 2s"),
                format!("RL.TOKENBUCKET moving-bucket:{index} 1000000 1000 700"),
            ]);
        }
        lines.extend([
            format!("RL.TOKENBUCKET gone:{index} 4 1/d"),
            format!("RL.REFUND gone:{index} 4"),
            format!("RL.TOKENBUCKET changing:{index} 100 1/d"),
            format!("RL.TOKENBUCKET changing:{index} 9007199254740991 1/36500d"),
            format!("RL.CONCURRENT holders:{index} 9 1d holder:{index}"),
            format!("RL.CONCURRENT holders:{index} 9 1d other"),
            format!("RL.RELEASE holders:{index} other"),
            format!("RL.LEASE leases:{index} 1000000 1/d node:{index} 1 0 5 1h"),
            format!("RL.TOKENBUCKET leases:{index} 1000000 1/d"),
            format!("RL.MULTI one:{index} FIXED 1000000 36500d 1 other:{index} TOKENBUCKET 1000000 1/d 2"),
            format!("SET plain:{index} {index} PX 86400000"),
        ]);
    }
    lines
}

/// Rounds after which the load begins anew, on an empty server: none of its limiters is exhausted sooner.
const ROUNDS_A_LOAD: u32 = 4;

/// Lets a reader come and go so often, under load.
pub fn rounds(
    times: Range<u32>,
    keys: Keys,
    options: impl FnOnce(Options) -> Options,
    mut round: impl FnMut(&mut Scene<'_>, u32),
) {
    let server = options(alone()).start();
    let mut redis = server.connect();
    send_words::<()>(&mut redis, &[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]).unwrap();
    let mut answers = 0;
    for first in times.clone().step_by(ROUNDS_A_LOAD as usize) {
        ask::<()>(&mut redis, "FLUSHALL");
        let fleet = Fleet::of((0..60).map(|index| format!("key:{index}")));
        let noise = noise(&fleet, keys);
        let (reports, ()) = fleet.run(callers(&fleet, &noise, server.port()), || {
            let random = Random::of_seed();
            let mut scene = Scene { server: &server, redis: server.connect(), random, fleet: &fleet };
            for time in first..times.end.min(first + ROUNDS_A_LOAD) {
                scene.wait_for_quiet();
                round(&mut scene, time);
            }
            scene.wait_for_quiet();
        });
        assert_no_failures(&reports);
        fleet.assert_exact(&mut redis);
        answers += fleet.answers();
    }
    println!("{} rounds, {answers} calls answered", times.len());
}

/// Callers who call in all ways.
fn callers<'a>(fleet: &Fleet, noise: &'a [String], port: u16) -> Vec<Caller<'a, Connection>> {
    let mut callers = fleet.callers(move || connect_to(port));
    for caller in &mut callers {
        caller.ways = &[Way::Plain, Way::Transaction, Way::Script, Way::Function];
        caller.noise = noise;
    }
    callers
}
