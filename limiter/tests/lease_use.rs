//! How much of a bucket nodes with leases get out of it, beside what a single bucket would admit of the same requests.
//!
//! Offered is three times what the bucket refills, by nodes of which some see much more than others, and that changes. Each node asks
//! for what it expects to need in a time of `T`, and lives by the duties of a node. Printed, and judged where `rate × T ≤ capacity / 4`:
//! there nodes together admit at least 99 % of what the single bucket does.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "lease/budget.rs"]
mod budget;
mod sequence;

use std::collections::VecDeque;
use std::time::Duration;

use budget::Budget;
use rl_limiter::layout::Stored;
use rl_limiter::lease::{Ask, Holding, Seq, State, Ttl};
use rl_limiter::{Capacity, Cost, Limiter, Micros, Name, Plan, Rate, RetryAfter, TokenBucket, layout, token_bucket};
use sequence::Random;

const BEGIN: u64 = 1_796_040_000_000_000;
const SECOND: u64 = 1_000_000;
const SECONDS: u64 = 6;
/// There and back again.
const ROUND_TRIP: u64 = 1_000;
const TTL: u64 = 500_000;

struct Scenario {
    nodes: usize,
    capacity: u64,
    per_second: u64,
    /// T, in microseconds.
    ahead: u64,
}

struct Node {
    holding: Holding,
    /// Requests since the last look at demand, and what it then expects in a time of T.
    seen: u64,
    want: u64,
    /// Not before this time is asked again.
    quiet_until: u64,
    asked: Option<u64>,
}

/// A call or its answer: when it arrives, of which node, and what.
struct Call {
    at: u64,
    node: usize,
    said: rl_limiter::lease::Statement,
}

struct Answer {
    at: u64,
    node: usize,
    seq: u64,
    told: rl_limiter::lease::Answer,
}

struct Server {
    limiter: TokenBucket,
    bytes: Vec<u8>,
    calls: u64,
}

impl Server {
    fn lease(
        &mut self,
        now: u64,
        name: &str,
        said: &rl_limiter::lease::Statement,
        min: u64,
    ) -> rl_limiter::lease::Answer {
        let state = match Stored::read(&self.bytes) {
            Ok(Stored::Leases(state)) => Some(state),
            Ok(Stored::State(layout::State::TokenBucket(state))) => Some(State::from(state)),
            _ => None,
        };
        let ask = Ask {
            node: Name::new(name.as_bytes()).unwrap(),
            seq: Seq::new(said.seq).unwrap(),
            have: Cost::new(said.have).unwrap(),
            want: Cost::new(said.want).unwrap(),
            ttl: Ttl::from_micros(TTL).unwrap(),
            min: Cost::new(min).unwrap(),
        };
        self.calls += 1;
        let leased = self.limiter.lease(state, Micros::new(now).unwrap(), &ask);
        match leased.next {
            Some(plan) if plan.leaves_nothing() => self.bytes.clear(),
            Some(plan) if plan.fits() => drop(plan.carry_out(&mut self.bytes)),
            Some(plan) => self.bytes = plan.make(&self.bytes),
            None => {}
        }
        leased.answer
    }
}

/// What the single bucket admits, what the nodes do, and the calls that took for each request.
fn play(scenario: &Scenario) -> (u64, u64, f64) {
    let rate = Rate::new(scenario.per_second, SECOND).unwrap();
    let limiter = TokenBucket::new(Capacity::new(scenario.capacity).unwrap(), rate);
    let mut random = Random(42);
    let mut server = Server { limiter, bytes: Vec::new(), calls: 0 };
    let mut single: Option<token_bucket::State> = None;
    let mut budget = Budget::new(limiter, BEGIN);
    let mut nodes: Vec<Node> = (0..scenario.nodes)
        .map(|_| Node { holding: Holding::new(), seen: 0, want: 1, quiet_until: 0, asked: None })
        .collect();
    let (mut calls, mut answers) = (VecDeque::<Call>::new(), VecDeque::<Answer>::new());
    let (mut admitted, mut by_single, mut offered) = (0, 0, 0);
    let gap = SECOND / (3 * scenario.per_second);
    let clock = |now: u64| Duration::from_micros(now - BEGIN);
    let most = (scenario.capacity / (2 * scenario.nodes as u64)).max(1);
    let least = (scenario.per_second * scenario.ahead / SECOND / scenario.nodes as u64 / 2).clamp(1, most);

    let mut now = BEGIN;
    while now < BEGIN + SECONDS * SECOND {
        now += 1 + random.below(2 * gap.max(1));
        while calls.front().is_some_and(|call| call.at <= now) {
            let call = calls.pop_front().unwrap();
            let told = server.lease(call.at, &format!("node-{}", call.node), &call.said, least);
            answers.push_back(Answer { at: call.at + ROUND_TRIP / 2, node: call.node, seq: call.said.seq, told });
        }
        while answers.front().is_some_and(|answer| answer.at <= now) {
            let Answer { at, node, seq, told } = answers.pop_front().unwrap();
            let node = &mut nodes[node];
            if node.holding.hear(seq, told.holding, told.ttl) {
                node.asked = None;
                // Who got nothing does not ask again at once, nor all at the same time.
                let pause = scenario.ahead * random.pick(&[50, 75, 100, 125, 150]) / 100;
                node.quiet_until = match told.retry_after {
                    RetryAfter::Millis(0) => at,
                    RetryAfter::Millis(millis) => at + pause.max(millis * 1_000),
                    RetryAfter::Never => u64::MAX,
                };
            }
        }
        // A node sees four times as much as another, and every second it is another.
        let hot = (now / SECOND) as usize % scenario.nodes;
        let index = match random.below(scenario.nodes as u64 + 3) as usize {
            any if any < scenario.nodes => any,
            _ => hot,
        };
        offered += 1;
        let outcome = limiter.decide(single, Micros::new(now).unwrap(), Cost::ONE);
        single = outcome.next.or(single);
        by_single += u64::from(outcome.decision.allowed);

        let node = &mut nodes[index];
        node.seen += 1;
        if node.holding.spend(clock(now), 1) {
            admitted += 1;
            budget.admit(now, 1);
        }
        // Demand in a time of T, by what came in the last tenth of a second.
        if (now - BEGIN) % 100_000 < 2 * gap.max(1) {
            for node in &mut nodes {
                node.want = (node.want + node.seen * scenario.ahead / 100_000).div_ceil(2).clamp(1, most);
                node.seen = 0;
            }
        }
        let node = &mut nodes[index];
        let low = node.holding.left(clock(now)) * 2 <= node.want;
        let lost = node.asked.is_some_and(|at| now > at + 20_000);
        if low && now >= node.quiet_until && (node.asked.is_none() || lost) {
            node.asked = Some(now);
            let said = node.holding.ask(clock(now), node.want);
            calls.push_back(Call { at: now + ROUND_TRIP / 2, node: index, said });
        }
    }
    assert_eq!(budget.excess(), 0);
    (by_single, admitted, server.calls as f64 / offered as f64)
}

#[test]
fn nodes_get_what_a_single_bucket_would_admit() {
    println!(
        "{:>5} {:>8} {:>8} {:>5} {:>9} {:>12} {:>6}",
        "nodes", "capacity", "a second", "RT/C", "admitted", "of a bucket", "calls"
    );
    for (nodes, capacity, per_second, millis) in [
        (10, 200, 1_000, 50),
        (40, 2_000, 10_000, 50),
        (10, 1_000, 1_000, 50),
        (4, 40, 100, 100),
        (10, 200, 1_000, 200),
    ] {
        let scenario = Scenario { nodes, capacity, per_second, ahead: millis * 1_000 };
        let (single, admitted, calls) = play(&scenario);
        let ratio = per_second as f64 * millis as f64 / 1_000.0 / capacity as f64;
        let used = admitted as f64 / single as f64;
        println!(
            "{nodes:>5} {capacity:>8} {per_second:>8} {ratio:>5.2} {admitted:>9} {:>10.2} % {:>4.1} %",
            100.0 * used,
            100.0 * calls
        );
        assert!(ratio > 0.25 || used >= 0.99, "only {:.2} %", 100.0 * used);
    }
}
