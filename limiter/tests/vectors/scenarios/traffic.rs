//! Calls that look random and are the same each time: with changes of parameters, refunds, and a clock that steps.

use crate::book::script::{Book, Script};
use crate::sequence::Random;

/// Calls in each scenario.
const CALLS: u64 = 45;

pub struct Traffic<'a> {
    pub name: &'a str,
    /// A command and its key.
    pub command: &'a str,
    /// The two parameters; mostly the first ones.
    pub policies: &'a [&'a str],
    pub most_cost: u64,
    /// The longest time between two calls, in microseconds.
    pub gap: u64,
    pub refunds: bool,
    pub debits: bool,
}

pub fn add(book: &mut Book, traffic: Traffic<'_>) {
    let kinds = [
        ("steady", "calls of one policy as time passes", false, false),
        ("with changes", "callers whose parameters differ, of one key", true, false),
        ("with steps of the clock", "the clock goes back now and then, and ahead", false, true),
        ("with both", "parameters and the clock change", true, true),
    ];
    for (seed, (kind, why, changes, steps)) in (1..).zip(kinds) {
        book.add(&format!("{} {kind}", traffic.name), why, |s| traffic.follow(s, &mut Random(seed), changes, steps));
    }
}

impl Traffic<'_> {
    fn follow(&self, s: &mut Script, random: &mut Random, changes: bool, steps: bool) {
        let key = self.command.split(' ').nth(1).unwrap();
        for _ in 0..CALLS {
            if steps && random.one_in(8) && s.may_step_back() {
                s.step_back(random.any_size(self.gap * 3));
            } else if steps && random.one_in(12) {
                s.pass(random.any_size(self.gap * 20));
            } else {
                s.pass(random.any_size(self.gap));
            }
            let policy = if changes && random.one_in(3) { random.pick(self.policies) } else { self.policies[0] };
            let cost = random.below(self.most_cost) + 1;
            match random.below(12) {
                0 => s.call(&format!("RL.PEEK {key} {cost}")),
                1 if self.refunds => s.call(&format!("RL.REFUND {key} {cost}")),
                2 if self.refunds => {
                    let micros = random.any_size(self.gap * 2);
                    s.call(&format!("RL.REFUND {key} {cost} AGE {}.{:03}ms", micros / 1_000, micros % 1_000))
                }
                3 if self.debits => s.call(&format!("RL.DEBIT {key} {policy} {}", cost * 3)),
                4 => s.call(&format!("{} {policy} 0", self.command)),
                _ => s.call(&format!("{} {policy} {cost}", self.command)),
            };
        }
    }
}
