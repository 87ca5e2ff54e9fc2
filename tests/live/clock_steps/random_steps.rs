//! Long random histories: calls, refunds and debits while the clock goes on, leaps and is corrected.

use redis::Connection;

use super::each_step::{assert_expiry_fits, assert_peek_agrees};
use super::history::{Event, Witness};
use super::kind::{Kind, LIMIT};
use crate::support::{HOUR, Options, SECOND, Server, ask, decide};

const STEPS: [i64; 7] = [-48 * HOUR, -HOUR, -30 * SECOND, -SECOND, HOUR, 365 * 24 * HOUR, -365 * 24 * HOUR];

/// Numbers that look random: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % end.unsigned_abs()).cast_signed()
    }
}

fn live_through(kind: Kind, seed: u64, server: &mut Server, redis: &mut Connection) {
    ask::<()>(redis, "FLUSHALL");
    let mut random = Random(seed);
    let mut witness = Witness::of(kind);
    let (mut denials, mut steps) = (0, 0);
    for event in 0..400 {
        let case = format!("{kind:?}, seed {seed}, event {event}");
        match random.below(20) {
            0..6 => witness.advance(server.clock(), random.below(15 * SECOND)),
            6 => {
                witness.advance(server.clock(), STEPS[random.below(7).unsigned_abs() as usize]);
                steps += 1;
            }
            7 if kind != Kind::Leaky => {
                let (amount, age) = (1 + random.below(4), random.below(70));
                let told: Option<Vec<i64>> = ask(redis, &format!("RL.REFUND k {amount} AGE {age}"));
                assert!(told.is_none_or(|told| told[2] <= LIMIT), "{case}");
                witness.events.push(Event::Given(amount));
            }
            8 if kind == Kind::TokenBucket => {
                let amount = 1 + random.below(12);
                let told: Vec<i64> = ask(redis, &format!("RL.DEBIT k {LIMIT} {LIMIT}/m {amount}"));
                witness.events.push(Event::Taken(amount - told[5]));
            }
            _ => {
                let cost = 1 + random.below(4);
                assert_peek_agrees(redis, kind, "k", cost, &case);
                let answer = witness.call(redis, "k", cost);
                if answer[0] == 1 {
                    assert_expiry_fits(redis, "k", &case);
                } else {
                    denials += 1;
                    // A debt is owed on top.
                    let longest = kind.longest_wait() * if kind == Kind::TokenBucket { 2 } else { 1 };
                    assert!((1..=longest).contains(&answer[3]), "{case}: {answer:?}");
                    if random.below(4) == 0 {
                        witness.advance(server.clock(), (answer[3] - 1) * 1_000);
                        assert_eq!(witness.call(redis, "k", cost)[0], 0, "{case}: a millisecond before");
                        witness.advance(server.clock(), 1_000);
                        assert_eq!(witness.call(redis, "k", cost)[0], 1, "{case}: a sleep is enough");
                    }
                }
            }
        }
        if let Some(told) = ask::<Option<Vec<i64>>>(redis, "RL.PEEK k") {
            assert!(ask::<i64>(redis, "PTTL k") >= told[4] - 1, "{case}: the key would vanish early");
        }
    }
    assert!(denials > 20 && steps > 5, "{kind:?}: {denials} denials, {steps} steps");
    witness.assert_kept();
}

#[test]
fn whatever_the_clock_does_no_more_is_admitted_than_its_ways_forward_bring_back() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for kind in Kind::ALL {
        for seed in 0..4 {
            live_through(kind, seed, &mut server, &mut redis);
        }
    }
    assert_eq!(decide(&mut redis, "RL.FIXED last 1 1m")[0], 1, "the server lives");
}
