//! Nodes that lease of one bucket, in a time that passes at once: what all of them admit, and how often they ask.
//!
//! The rules of both sides are those of `rl-limiter`; what is judged here is when and for how much this crate asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rl_limiter::lease::{Ask, Seq, Ttl};
use rl_limiter::{Capacity, Cost, Micros, Name, Rate, RetryAfter, TokenBucket};

use self::subject::Subject;
use super::held::{Call, Lease, Look, Take};
use super::round_trip::RoundTrip;
use crate::error::{Error, ErrorKind};
use crate::servers::Grant;

#[allow(dead_code, clippy::large_enum_variant, reason = "shared with the tests of the limiter, which need other parts")]
#[path = "../../../limiter/tests/lease/subject.rs"]
mod subject;

const STEP: Duration = Duration::from_micros(100);
const ROUND_TRIP: Duration = Duration::from_micros(800);

/// What Redis keeps under the key.
struct Key {
    bucket: TokenBucket,
    subject: Subject,
    calls: u64,
}

impl Key {
    fn lease(&mut self, now: Micros, node: &str, call: &Call) -> Grant {
        self.calls += 1;
        let units = |number| Cost::new(number).unwrap();
        let ask = Ask {
            node: Name::new(node.as_bytes()).unwrap(),
            seq: Seq::new(call.statement.seq).unwrap(),
            have: units(call.statement.have),
            want: units(call.statement.want),
            ttl: Ttl::from_micros(call.size.ttl.as_micros() as u64).unwrap(),
            min: units(call.size.least),
        };
        let answer = self.subject.lease(self.bucket, now, &ask);
        let (holding, free, nodes) = (answer.holding, answer.free, answer.nodes);
        Grant { holding, free, retry_after: answer.retry_after, ttl: answer.ttl, nodes }
    }

    /// Whether a direct check of cost 1 is allowed.
    fn take(&mut self, now: Micros) -> bool {
        self.calls += 1;
        self.subject.take(self.bucket, now, Cost::ONE).allowed
    }
}

/// What is on its way.
enum Event {
    /// A call, to the key.
    Asks(usize, Call),
    /// Its reply.
    Told(Arc<Lease>, u64, Result<Grant, Error>),
    /// A keeper looks.
    Looks(usize),
}

/// What came of a run.
#[derive(Debug)]
struct Outcome {
    offered: u64,
    admitted: u64,
    /// Requests that had to wait for a call.
    waited: u64,
    /// Capacity + rate × time.
    available: f64,
    /// The most that any interval had beyond capacity + rate × time.
    excess: i64,
    calls: u64,
}

struct World {
    key: Key,
    nodes: Vec<Arc<Lease>>,
    trip: Arc<RoundTrip>,
    events: BTreeMap<(Duration, u64), Event>,
    count: u64,
    /// Parts in a hundred of replies that are lost.
    lost: u8,
    bucket: TokenBucket,
}

impl World {
    fn new(capacity: u64, rate: u64, nodes: usize, lost: u8) -> Self {
        let rate_text = rate.to_string();
        let rate = Rate::parse("rate", rate_text.as_bytes()).unwrap();
        let bucket = TokenBucket::new(Capacity::new(capacity).unwrap(), rate);
        let trip = Arc::new(RoundTrip::default());
        let mut world = Self {
            key: Key { bucket, subject: Subject::default(), calls: 0 },
            nodes: Vec::new(),
            trip,
            events: BTreeMap::new(),
            count: 0,
            lost,
            bucket,
        };
        for number in 0..nodes {
            let lease = world.lease(number, 0, Duration::ZERO);
            world.nodes.push(lease);
        }
        world
    }

    fn lease(&self, number: usize, life: u64, now: Duration) -> Arc<Lease> {
        let arguments = Arc::new([String::new(), String::new()]);
        let node = format!("{number}-{life}");
        Arc::new(Lease::new("key", node, "p".into(), self.bucket, arguments, &self.trip, now))
    }

    fn soon(&mut self, at: Duration, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn send(&mut self, node: usize, now: Duration, call: Call) {
        self.nodes[node].sent(now + Duration::from_millis(50));
        self.soon(now + ROUND_TRIP / 2, Event::Asks(node, call));
        if self.nodes[node].needs_keeper(now) {
            self.soon(now + STEP, Event::Looks(node));
        }
    }

    fn happen(&mut self, now: Duration) {
        while let Some((at, _)) = self.events.first_key_value().map(|(at, _)| *at)
            && at <= now
            && let Some((_, event)) = self.events.pop_first()
        {
            match event {
                Event::Asks(node, call) => {
                    let (seq, lease) = (call.statement.seq, Arc::clone(&self.nodes[node]));
                    let grant = self.key.lease(moment(at), &lease.node, &call);
                    self.trip.took(ROUND_TRIP);
                    match fastrand::u8(..100) < self.lost {
                        true => {
                            let error = Error::new(ErrorKind::Deadline, "lost");
                            self.soon(at + Duration::from_millis(50), Event::Told(lease, seq, Err(error)));
                        }
                        false => self.soon(at + ROUND_TRIP / 2, Event::Told(lease, seq, Ok(grant))),
                    }
                }
                Event::Told(lease, seq, heard) => lease.heard(seq, at, heard),
                Event::Looks(node) => match self.nodes[node].look(at) {
                    Look::Later(pause) => self.soon(at + pause, Event::Looks(node)),
                    Look::Renew(call, pause) => {
                        self.send(node, at, call);
                        self.soon(at + pause, Event::Looks(node));
                    }
                    Look::GiveBack(call) => self.send(node, at, call),
                    Look::End => {}
                },
            }
        }
    }

    /// Runs for so long. `rates` says what is asked of each node, by the second; `crashes` whether a node forgets everything each second.
    fn run(mut self, time: Duration, rates: impl Fn(usize, u64) -> f64, crashes: bool) -> Outcome {
        let (mut now, mut offered, mut admitted, mut waited) = (Duration::ZERO, 0, 0, 0);
        let mut due = vec![0.0; self.nodes.len()];
        // The level of a bucket that starts full and may go below empty, in the finest of units.
        let (capacity, rate) = (self.bucket.capacity().get() as f64, self.bucket.rate());
        let per_step = rate.units() as f64 / rate.micros() as f64 * STEP.as_micros() as f64;
        let (mut level, mut lowest, mut next_crash) = (capacity, capacity, Duration::from_secs(1));
        while now < time {
            now += STEP;
            level = (level + per_step).min(capacity);
            self.happen(now);
            if crashes && now >= next_crash {
                next_crash += Duration::from_secs(1);
                let node = fastrand::usize(..self.nodes.len());
                self.nodes[node] = self.lease(node, now.as_secs(), now);
            }
            for (node, due) in due.iter_mut().enumerate() {
                *due += rates(node, now.as_secs()) * STEP.as_secs_f64();
                while *due >= 1.0 {
                    *due -= 1.0;
                    offered += 1;
                    let (take, call) = self.nodes[node].ask_for(now, 1);
                    if let Some(call) = call {
                        self.send(node, now, call);
                    }
                    waited += u64::from(matches!(take, Take::Wait));
                    let allowed = match take {
                        Take::Spent { .. } => true,
                        Take::Direct => self.key.take(moment(now)),
                        // Whoever waits is denied here, to the disadvantage of what is measured.
                        Take::Denied(_) | Take::Wait => false,
                    };
                    if allowed {
                        admitted += 1;
                        level -= 1.0;
                        lowest = level.min(lowest);
                    }
                }
            }
        }
        let available = capacity + rate.units() as f64 / rate.micros() as f64 * time.as_micros() as f64;
        let excess = -lowest.min(0.0).floor() as i64;
        Outcome { offered, admitted, waited, available, excess, calls: self.key.calls }
    }
}

impl Outcome {
    /// The part that was admitted of what could be.
    fn used(&self) -> f64 {
        self.admitted as f64 / self.available.min(self.offered as f64)
    }
}

fn moment(now: Duration) -> Micros {
    Micros::new(1_800_000_000_000_000 + now.as_micros() as u64).unwrap()
}

#[test]
fn ten_nodes_under_three_times_the_load_that_shifts_waste_next_to_nothing() {
    let rates = |node: usize, second: u64| if (node as u64 + second).is_multiple_of(10) { 1_200.0 } else { 200.0 };
    let outcome = World::new(200, 1_000, 10, 0).run(Duration::from_secs(20), rates, false);
    eprintln!("  {outcome:?}");
    assert_eq!(outcome.excess, 0);
    assert!(outcome.used() >= 0.97, "{outcome:?}");
    assert!(outcome.calls < outcome.offered / 5, "{outcome:?}");
}

#[test]
fn lost_replies_and_crashes_admit_nothing_in_excess() {
    for _ in 0..5 {
        let rates = |node: usize, second: u64| if (node as u64 + second).is_multiple_of(4) { 3_000.0 } else { 100.0 };
        let outcome = World::new(400, 1_000, 4, 5).run(Duration::from_secs(10), rates, true);
        eprintln!("  {outcome:?}");
        assert_eq!(outcome.excess, 0);
        assert!(outcome.used() >= 0.8, "{outcome:?}");
    }
}

#[test]
fn a_quiet_spell_gives_back_what_nobody_needs_and_a_storm_after_it_is_admitted_nothing_in_excess() {
    let rates = |node: usize, second: u64| match second {
        0 => 500.0,
        1..4 => 0.0,
        _ => 2_000.0 * (1 + node % 2) as f64,
    };
    let outcome = World::new(1_000, 1_000, 5, 0).run(Duration::from_secs(8), rates, false);
    eprintln!("  {outcome:?}");
    assert_eq!(outcome.excess, 0);
}

/// About 1.5 calls for each node and lease, however much is asked.
#[test]
fn the_calls_do_not_grow_with_the_requests() {
    eprintln!("  4 nodes, 40 000 tokens at 100 000 a second, 10 seconds");
    eprintln!("  {:>10} {:>10} {:>12} {:>16}", "asked / s", "calls / s", "utilisation", "calls a request");
    let mut calls = Vec::new();
    for times in [1.0, 10.0, 100.0] {
        let outcome = World::new(40_000, 100_000, 4, 0).run(Duration::from_secs(10), |_, _| 1_000.0 * times, false);
        let per_second = outcome.calls as f64 / 10.0;
        eprintln!(
            "  {:>10} {per_second:>10} {:>12.4} {:>16.5}",
            outcome.offered / 10,
            outcome.used(),
            outcome.calls as f64 / outcome.offered as f64
        );
        assert_eq!(outcome.excess, 0);
        assert!(outcome.used() >= 0.97, "{outcome:?}");
        // Tokens are fetched before they run out, unless there are none.
        let most = if outcome.offered as f64 > outcome.available { 0.1 } else { 0.003 };
        assert!((outcome.waited as f64) < most * outcome.offered as f64, "{outcome:?}");
        calls.push(per_second);
    }
    let expected = 1.5 * 4.0 / 0.05;
    assert!(calls.iter().all(|calls| *calls <= 2.0 * expected), "{calls:?}, {expected} expected");
}

/// Nothing here is asked of anybody.
#[test]
fn what_is_put_off_is_denied_until_it_is_there() {
    let trip = Arc::new(RoundTrip::default());
    let bucket = TokenBucket::new(Capacity::new(1_000).unwrap(), Rate::parse("rate", b"1000").unwrap());
    let arguments = Arc::new([String::new(), String::new()]);
    let lease = Lease::new("key", "n".to_owned(), "p".into(), bucket, arguments, &trip, Duration::ZERO);
    let at = Duration::from_millis;
    let mut call = None;
    for milli in 0..100 {
        call = lease.ask_for(at(milli), 1).1.or(call);
    }
    let seq = call.unwrap().statement.seq;
    let retry_after = RetryAfter::Millis(40);
    lease.heard(seq, at(100), Ok(Grant { holding: 0, free: 0, retry_after, ttl: 500, nodes: 3 }));
    let Take::Denied(decision) = lease.ask_for(at(101), 1).0 else { panic!("not denied") };
    let RetryAfter::Millis(wait) = decision.retry_after else { panic!("{decision:?}") };
    assert!((39..=75).contains(&wait), "{decision:?}");
    assert!(matches!(lease.ask_for(at(101 + wait), 1).0, Take::Wait));
}
