//! Anything to any key: every command, of kinds that take each other's keys over, with parameters up to the largest.

use crate::book::script::{Book, MOST, Script, Told};
use crate::sequence::Random;

/// Calls in each scenario.
const CALLS: u64 = 40;

const KINDS: [&str; 5] = ["FIXED", "SLIDING", "SLIDINGLOG", "TOKENBUCKET", "LEAKY"];
const WINDOWS: [&str; 7] = ["1ms", "1", "10s", "1m", "1.000001", "1.5h", "36500d"];
const RATES: [&str; 8] =
    ["1", "3/7s", "2.5/m", "8000", "1000000000/d", "1/36500d", "999999999999999", "0.123456789012"];
const HOLDERS: [&str; 4] = ["a", "b", "c", "somebody-with-a-long-name"];
const TTLS: [&str; 4] = ["10ms", "1", "2500ms", "1m"];

pub fn scenarios(book: &mut Book) {
    for seed in 1..=16 {
        add(book, seed);
    }
}

/// The scenario of a seed.
pub fn add(book: &mut Book, seed: u64) {
    let mut random = Random(seed << 32);
    let mixed = Mixed {
        kinds: [random.below(7), random.below(7)],
        most: random.pick(&[3, 10, 10, 1_000, 1_000_000, MOST]),
        pace: usize::try_from(random.below(8)).unwrap(),
        gap: random.pick(&[200, 1_000_000, 20_000_000, 4_000_000_000]),
        changes: random.one_in(2),
        steps: random.one_in(2),
    };
    let why = "calls that follow no plan, to two keys that take each other's kinds over";
    book.add(&format!("mixed {seed}"), why, |s| {
        for _ in 0..CALLS {
            mixed.step(s, &mut random);
        }
    });
}

struct Mixed {
    /// What each of the keys mostly is: one of the kinds, or held, or leased.
    kinds: [u64; 2],
    most: u64,
    /// Which window or rate.
    pace: usize,
    gap: u64,
    changes: bool,
    steps: bool,
}

impl Mixed {
    fn step(&self, s: &mut Script, random: &mut Random) {
        if self.steps && random.one_in(7) && s.may_step_back() {
            s.step_back(random.any_size(self.gap * 3));
        } else {
            s.pass(random.any_size(self.gap));
        }
        let key = usize::try_from(random.below(2)).unwrap();
        let kind = if random.one_in(12) { random.below(7) } else { self.kinds[key] };
        let key = ["k", "l"][key];
        let (cost, many) = (self.units(random), self.units(random));
        match random.below(14) {
            0 => s.call(&format!("RL.PEEK {key} {cost}")),
            1 => s.call(&format!("RL.REFUND {key} {cost}")),
            2 => s.call(&format!(
                "RL.REFUND {key} {many} AGE {}.{:03}ms",
                random.any_size(self.gap),
                random.below(1_000)
            )),
            3 if kind == 3 || kind == 6 => {
                s.call(&format!("RL.DEBIT {key} {} {many}", self.policy(random, "TOKENBUCKET")))
            }
            4 => {
                let limits = ["k", "l"].map(|key| {
                    let kind = match self.kinds[usize::from(key == "l")] {
                        kind @ 0..5 => KINDS[usize::try_from(kind).unwrap()],
                        _ => "TOKENBUCKET",
                    };
                    format!("{key} {kind} {} {}", self.policy(random, kind), self.units(random))
                });
                s.call(&format!("RL.MULTI {}", limits.join(" ")))
            }
            _ => match kind {
                5 => self.hold(s, random, key),
                6 => self.lease(s, random, key),
                kind => {
                    let kind = KINDS[usize::try_from(kind).unwrap()];
                    s.call(&format!("RL.{kind} {key} {} {cost}", self.policy(random, kind)))
                }
            },
        };
    }

    fn hold(&self, s: &mut Script, random: &mut Random, key: &str) -> Told {
        let holder = random.pick(&HOLDERS);
        if random.one_in(5) {
            return s.call(&format!("RL.RELEASE {key} {holder}"));
        }
        let (limit, ttl, cost) = (self.limit(random), random.pick(&TTLS), self.units(random));
        let only = if random.one_in(4) { " XX" } else { "" };
        s.call(&format!("RL.CONCURRENT {key} {limit} {ttl} {holder} {cost}{only}"))
    }

    fn lease(&self, s: &mut Script, random: &mut Random, key: &str) -> Told {
        let bucket = self.policy(random, "TOKENBUCKET");
        if random.one_in(4) {
            return s.call(&format!("RL.TOKENBUCKET {key} {bucket} {}", self.units(random)));
        }
        let (node, ttl) = (random.pick(&HOLDERS), random.pick(&TTLS));
        // Mostly rising: time has passed.
        let seq = if random.one_in(6) { 1 + random.below(9) } else { s.calls_so_far() + 1 };
        let (have, want) = (self.units(random), self.units(random));
        let min = if random.one_in(3) { format!(" MIN {}", self.units(random)) } else { String::new() };
        s.call(&format!("RL.LEASE {key} {bucket} {node} {seq} {have} {want} {ttl}{min}"))
    }

    fn policy(&self, random: &mut Random, kind: &str) -> String {
        let pace = if self.changes && random.one_in(5) { self.pace + 1 } else { self.pace };
        let pace = match kind {
            "TOKENBUCKET" | "LEAKY" => RATES[pace % RATES.len()],
            _ => WINDOWS[pace % WINDOWS.len()],
        };
        format!("{} {pace}", self.limit(random))
    }

    fn limit(&self, random: &mut Random) -> u64 {
        match random.below(12) {
            0 if self.changes => 0,
            1 if self.changes => self.most / 2 + 1,
            2 if self.changes => (self.most / 3 * 4).min(MOST),
            _ => self.most,
        }
    }

    fn units(&self, random: &mut Random) -> u64 {
        if random.one_in(30) { MOST } else { random.any_size(self.most) }
    }
}
