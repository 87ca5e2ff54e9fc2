//! Nodes that hold leases, in a world where what can go wrong does: over no interval do they and direct callers together admit
//! more than `capacity + rate × time`; where the promise has an exception, no more than its bound.
//!
//! The ordinary test lets more than a million things happen; `-- --ignored` fifty times as many. `LEASE_SEED` in the environment
//! repeats a run. `scripts/lease-rules` builds the crate with one rule switched off after the other, and demands that the first
//! test fails.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "lease/budget.rs"]
mod budget;
mod sequence;
#[path = "lease/subject.rs"]
#[allow(dead_code)]
mod subject;
#[path = "lease/world.rs"]
mod world;

use std::time::{SystemTime, UNIX_EPOCH};

use world::{Fate, World};

/// What happens in one world, at least.
const EVENTS: u64 = 2_000;

/// Runs worlds, each with a seed of its own, and judges each. Returns how many things happened.
fn worlds(count: u64, fate: Fate, mut judge: impl FnMut(&World) -> Result<(), String>) -> u64 {
    let first = match std::env::var("LEASE_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into(),
    };
    let mut events = 0;
    for seed in first..first + count {
        let world = World::new(seed, fate).run(EVENTS);
        events += world.events;
        if let Err(why) = judge(&world) {
            panic!("{why}\nTo repeat it: LEASE_SEED={seed}");
        }
    }
    events
}

fn nothing_in_excess(world: &World) -> Result<(), String> {
    match world.excess() {
        0 => Ok(()),
        excess => Err(format!("an interval had {excess} tokens more than capacity + rate × time")),
    }
}

#[test]
fn nothing_is_admitted_beyond_the_bucket() {
    let events = worlds(400, Fate::Steady, nothing_in_excess);
    println!("{events} events");
    assert!(events >= 1_000_000);
}

#[test]
#[ignore = "takes minutes"]
fn nothing_is_admitted_beyond_the_bucket_in_a_long_run() {
    let events = worlds(25_000, Fate::Steady, nothing_in_excess);
    println!("{events} events");
}

#[test]
fn nothing_is_admitted_beyond_the_bucket_while_the_clock_goes_back() {
    worlds(100, Fate::GoesBack, nothing_in_excess);
}

/// Judges an excess against a bound, and keeps how near one came to it: a bound that nothing comes near says little.
struct Bound {
    nearest: f64,
}

impl Bound {
    fn holds(&mut self, excess: u64, bound: u64) -> Result<(), String> {
        if excess > bound {
            return Err(format!(
                "an interval had {excess} tokens more than capacity + rate × time, {bound} are allowed"
            ));
        }
        if bound > 0 {
            self.nearest = self.nearest.max(excess as f64 / bound as f64);
        }
        Ok(())
    }
}

#[test]
fn a_leap_ahead_admits_at_most_what_is_in_rows_then() {
    let mut bound = Bound { nearest: 0.0 };
    worlds(150, Fate::LeapsAhead, |world| bound.holds(world.excess(), world.outstanding_then().unwrap_or(0)));
    assert!(bound.nearest >= 0.5, "nothing came near the bound: {}", bound.nearest);
}

#[test]
fn a_lost_state_admits_at_most_the_capacity_and_what_is_held() {
    let mut bound = Bound { nearest: 0.0 };
    worlds(150, Fate::Forgets, |world| {
        bound.holds(world.excess(), world.outstanding_then().map_or(0, |outstanding| world.capacity() + outstanding))
    });
    assert!(bound.nearest >= 0.5, "nothing came near the bound: {}", bound.nearest);
}

#[test]
fn a_capacity_of_0_bites_after_one_ttl() {
    const LONGEST_TTL: u64 = 5_000_000;
    worlds(100, Fate::Killed, |world| match world.fated_and_last_admitted() {
        Some((at, Some(last))) if last - at > LONGEST_TTL => Err(format!("admitted {} µs after", last - at)),
        _ => Ok(()),
    });
}
