//! Releases on one data set, forth and back, beside a server that stays at today's.

use std::path::{Path, PathBuf};

use redis::{Connection, Value};
use rl_limiter::layout::{READS_UP_TO, WRITES};

use super::NEWER;
use super::builds::build;
use crate::support::{Options, SECOND, Server, ask, decide, digest, error, module};

/// The keys that are called in every round. Each has a twin that is called in the first round only.
const KEYS: [&str; 10] = ["fixed", "sliding", "narrow", "wide", "reformed", "debt", "leaky", "log", "ring", "holders"];

/// What a bucket is wide for.
const WIDE: &str = "9007199254740991 1/36500d";

/// The same calls at the same times, to a server that stays as it is and to one that changes its module.
struct Pair {
    staying: Server,
    rolling: Server,
    round: i64,
}

impl Pair {
    fn new(first: &Path) -> Self {
        let start = |module: PathBuf| Options::new().set("appendonly", "yes").module(Some(module)).with_clock().start();
        let mut pair = Self { staying: start(module("redis_rl")), rolling: start(first.to_owned()), round: 0 };
        pair.play("unasked-");
        pair
    }

    /// Starts the one server again with another module.
    fn roll_to(&mut self, module: &Path) {
        self.rolling.shut_down();
        self.rolling.start_again(|options| options.module(Some(module.to_owned())));
    }

    /// A round of calls to keys of all kinds; all answers must be the same.
    fn play(&mut self, prefix: &str) {
        self.round += 1;
        let mut at = [self.staying.connect(), self.rolling.connect()];
        let limit = 100 + self.round % 2;
        let reformed = if self.round % 2 == 0 { "100 1/d" } else { WIDE };
        let mut lines = vec![
            format!("RL.FIXED {prefix}fixed {limit} 1d 3"),
            format!("RL.SLIDING {prefix}sliding {limit} 1d 3"),
            format!("RL.TOKENBUCKET {prefix}narrow {limit} 1/d 3"),
            format!("RL.TOKENBUCKET {prefix}wide {WIDE} 3"),
            format!("RL.TOKENBUCKET {prefix}reformed {reformed} 3"),
            format!("RL.DEBIT {prefix}debt 100 1/d 20"),
            format!("RL.LEAKY {prefix}leaky 100 1/d 3"),
            format!("RL.SLIDINGLOG {prefix}log 100 1d 3"),
            format!("RL.CONCURRENT {prefix}holders {limit} 1d holder-{} 3", self.round),
            format!("RL.CONCURRENT {prefix}holders {limit} 1d holder-1 2"),
        ];
        lines.extend((0..150).map(|call| format!("RL.SLIDINGLOG {prefix}ring 100000 5m {}", 1 + call % 7)));
        lines.extend(["fixed", "sliding", "narrow", "log", "ring"].map(|key| format!("RL.REFUND {prefix}{key} 1")));
        lines.extend(["fixed", "narrow", "log"].map(|key| format!("RL.PEEK {prefix}{key} 90")));
        for line in lines {
            for server in [&mut self.staying, &mut self.rolling] {
                server.clock().advance(SECOND);
            }
            assert_same(&mut at, &line);
        }
        self.look();
    }

    /// Looks at all keys, those too that no round has called again.
    fn look(&mut self) {
        let mut at = [self.staying.connect(), self.rolling.connect()];
        for key in KEYS.into_iter().flat_map(|key| [key.to_owned(), format!("unasked-{key}")]) {
            assert_same(&mut at, &format!("RL.PEEK {key}"));
            assert_same(&mut at, &format!("RL.INSPECT {key}"));
        }
    }

    fn digests(&self) -> [String; 2] {
        [&self.staying, &self.rolling].map(|server| digest(&mut server.connect()))
    }

    /// The layouts of the keys that every round calls.
    fn layouts(&self) -> Vec<u8> {
        let mut redis = self.rolling.connect();
        KEYS.map(|key| ask::<Vec<u8>>(&mut redis, &format!("GET {key}"))[2]).into()
    }
}

fn assert_same(at: &mut [Connection; 2], line: &str) {
    let [staying, rolling] = at.each_mut().map(|redis| ask::<Value>(redis, line));
    assert_eq!(staying, rolling, "{line}");
}

#[test]
#[ignore = "long: builds the module twice"]
fn releases_roll_forth_and_back_without_another_answer() {
    let next = READS_UP_TO + 1;
    let (today, reader, writer) = (module("redis_rl"), build(next, WRITES), build(next, next));
    let mut pair = Pair::new(&today);

    // The release that can read the next layout still writes today's, so today's can be put back.
    for module in [&today, &reader, &today, &reader] {
        pair.roll_to(module);
        pair.play("");
        let [staying, rolling] = pair.digests();
        assert_eq!(staying, rolling, "both write the same");
        assert_eq!(pair.layouts(), [WRITES; KEYS.len()]);
    }
    // The one after it writes the next layout, and the one before can be put back.
    for (module, layout) in [(&writer, next), (&reader, WRITES), (&writer, next)] {
        pair.roll_to(module);
        pair.play("");
        assert_eq!(pair.layouts(), [layout; KEYS.len()]);
    }
    // Put back by two, nothing is answered from what can't be read, and nothing is lost.
    pair.roll_to(&today);
    let mut redis = pair.rolling.connect();
    let before = digest(&mut redis);
    for key in KEYS {
        for line in ["RL.FIXED", "RL.SLIDINGLOG", "RL.TOKENBUCKET"].map(|command| format!("{command} {key} 10 1")) {
            assert_eq!(error(&mut redis, &line), NEWER, "{line}");
        }
    }
    assert_eq!(digest(&mut redis), before);
    assert_eq!(decide(&mut redis, "RL.FIXED unasked-fixed 100 1d 0")[1], 100, "what is old is still read");
    pair.roll_to(&reader);
    pair.play("");
}

#[test]
#[ignore = "long: builds the module"]
fn replicas_first_with_a_failover_to_the_release_that_comes() {
    crate::upgrading::roll_replicas_first(&build(READS_UP_TO + 1, WRITES));
}
