//! The sliding window log against a list of entries that is judged by the definition; every step goes through bytes, and a copy
//! that is told only the touched ranges must stay equal.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "model/sliding_log.rs"]
mod model;
mod sequence;

use std::time::{Duration, Instant};

use rl_limiter::layout::Stored;
use rl_limiter::sliding_log::{Plan, State};
use rl_limiter::{
    Age, Cost, Decision, Fact, Limit, Micros, Plan as _, RetryAfter, SlidingLog, TooManyEntries, Touched, Window,
};

use model::Model;
use sequence::Random;

const MAX_EXACT: u64 = (1 << 53) - 1;
const DAY: u64 = 86_400_000_000;
const NOON: u64 = 1_796_040_000_000_000;

fn micros(micros: u64) -> Micros {
    Micros::new(micros).unwrap()
}

fn units(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

fn log(limit: u64, window: u64) -> SlidingLog {
    SlidingLog::new(Limit::new(limit).unwrap(), Window::from_micros(window).unwrap())
}

fn read(bytes: &[u8]) -> Option<State<'_>> {
    assert!(Stored::has_length(bytes.len()), "{} bytes", bytes.len());
    match Stored::read(bytes) {
        Ok(Stored::SlidingLog(log)) => Some(log),
        _ => None,
    }
}

/// A key that holds a log.
#[derive(Default)]
struct Key {
    bytes: Vec<u8>,
    /// A copy that is told the touched ranges only.
    replica: Option<Vec<u8>>,
    /// What the last change touched.
    touched: Touched,
    /// How often it was made anew, and of how many bytes in all.
    made: u64,
    made_bytes: usize,
}

impl Key {
    fn with_replica() -> Self {
        Self { replica: Some(Vec::new()), ..Self::default() }
    }

    fn state(&self) -> Option<State<'_>> {
        if self.bytes.is_empty() { None } else { Some(read(&self.bytes).expect("what was written is a log")) }
    }

    fn apply(&mut self, plan: &Plan) {
        self.touched = Touched::default();
        if plan.leaves_nothing() {
            self.bytes.clear();
        } else if plan.fits() {
            self.touched = plan.carry_out(&mut self.bytes);
        } else {
            self.bytes = plan.make(&self.bytes);
            assert_eq!(self.bytes.len(), plan.length());
            self.made += 1;
            self.made_bytes += self.bytes.len();
        }
        let Some(replica) = &mut self.replica else { return };
        if plan.leaves_nothing() || !plan.fits() {
            replica.clone_from(&self.bytes);
        }
        for range in self.touched.ranges() {
            replica[range.clone()].copy_from_slice(&self.bytes[range.clone()]);
        }
        assert!(self.bytes == *replica, "the touched ranges are not all that was touched");
    }

    fn decide(&mut self, log: SlidingLog, now: u64, cost: u64, most: u32) -> Result<Decision, TooManyEntries> {
        let now = micros(now);
        let state = self.state().filter(|state| !state.is_unused(now));
        let outcome = log.decide(state, now, units(cost), most)?;
        if let Some(plan) = outcome.next {
            self.apply(&plan);
        }
        Ok(outcome.decision)
    }

    fn take(&mut self, log: SlidingLog, now: u64, cost: u64) -> bool {
        self.decide(log, now, cost, u32::MAX).unwrap().allowed
    }

    fn refund(&mut self, now: u64, amount: u64, age: Option<u64>) {
        let age = age.map(|age| Age::from_micros(age).unwrap());
        if let Some(plan) = self.state().and_then(|state| state.refund(micros(now), units(amount), age)) {
            self.apply(&plan);
        }
    }

    fn fact(&self, wanted: &str) -> u64 {
        let mut told = 0;
        if let Some(state) = self.state() {
            state.describe(&mut |name, fact| {
                if name == wanted {
                    told = match fact {
                        Fact::Units(units) => units,
                        Fact::Moment(moment) => moment.get(),
                        Fact::Window(window) => window.as_micros(),
                        Fact::Rate(_) => unreachable!(),
                    }
                }
            });
        }
        told
    }
}

/// A kind of traffic.
#[derive(Debug)]
struct Traffic {
    gap: u64,
    cost: u64,
    policies: [(u64, u64); 2],
    most: u32,
    steps_back: bool,
    refunds: bool,
}

impl Traffic {
    fn any(random: &mut Random) -> Self {
        let window = 1_000 + random.any_size(36_500 * DAY - 1_000);
        let second = if random.one_in(2) { window } else { (window / (1 + random.below(4))).max(1_000) };
        let limit = random.any_size(MAX_EXACT).max(1);
        let limits = [limit, if random.one_in(2) { limit } else { limit / (1 + random.below(4)) }];
        // From a handful of entries in a window to some thousands.
        let gap = (window >> random.below(14)).min(window);
        let cost = (limits[0] >> random.below(14)).max(1);
        let most = if random.one_in(3) { u32::try_from(random.any_size(2_000)).unwrap() } else { u32::MAX };
        let (steps_back, refunds) = (random.one_in(2), random.one_in(2));
        Self { gap, cost, policies: [(limits[0], window), (limits[1], second)], most, steps_back, refunds }
    }
}

/// A wait is enough, and a millisecond less is not.
fn assert_waits(limiter: SlidingLog, key: &Key, now: u64, cost: u64, told: Decision, context: &dyn Fn() -> String) {
    let after = |millis: u64| limiter.peek(key.state(), micros(now + millis * 1_000), units(cost));
    if let RetryAfter::Millis(wait @ 1..) = told.retry_after {
        assert!(after(wait).allowed, "{}", context());
        assert!(!after(wait - 1).allowed, "{}", context());
    }
    if told.reset_after > 0 {
        assert_eq!(after(told.reset_after).reset_after, 0, "{}", context());
        assert_ne!(after(told.reset_after - 1).reset_after, 0, "{}", context());
    }
}

fn follow(random: &mut Random, traffic: &Traffic, steps: u64) {
    follow_on(random, traffic, steps, (Key::with_replica(), Model::default(), NOON));
}

fn follow_on(random: &mut Random, traffic: &Traffic, steps: u64, (mut key, mut model, mut now): (Key, Model, u64)) {
    for step in 0..steps {
        let gap = random.any_size(traffic.gap);
        now = if traffic.steps_back && random.one_in(50) { now.saturating_sub(gap * 3) } else { now + gap };
        let (limit, window) = if random.one_in(8) { traffic.policies[1] } else { traffic.policies[0] };
        let limiter = log(limit, window);
        let context = || format!("step {step} at {now} of {traffic:?}");

        let asked = random.any_size(traffic.cost);
        let peeked = limiter.peek(key.state(), micros(now), units(asked));
        assert_eq!(peeked, model.answer(limit, window, now, asked.max(1)), "peek, {}", context());

        if model.newest().is_none_or(|newest| newest <= now) {
            assert_waits(limiter, &key, now, asked, peeked, &context);
        }

        if traffic.refunds && random.one_in(4) {
            let age = match random.below(3) {
                0 => None,
                1 => Some(random.any_size(window)),
                _ => Some(random.any_size(traffic.gap * 4).min(36_500 * DAY)),
            };
            let amount = if random.one_in(10) { MAX_EXACT } else { random.any_size(traffic.cost * 4) }.min(MAX_EXACT);
            key.refund(now, amount, age);
            model.refund(now, amount, age);
        } else {
            let cost = if random.one_in(100) { random.any_size(MAX_EXACT) } else { asked };
            let decided = key.decide(limiter, now, cost, traffic.most);
            assert_eq!(decided, model.decide(limit, window, now, cost, traffic.most), "cost {cost}, {}", context());
        }
        assert_eq!(key.bytes.is_empty(), model.total() == 0, "{}", context());
        if let Some(state) = key.state() {
            assert_eq!(state.is_unused(micros(now)), model.is_unused(now), "{}", context());
            assert_eq!(state.unused_at().get(), model.newest().unwrap() + model.window, "{}", context());
            assert_eq!(key.fact("used"), model.total(), "{}", context());
            assert_eq!(key.fact("entries"), model.entries.len() as u64, "{}", context());
            let newest = model.entries.iter().rev().filter(|entry| entry.1 > 0).take(100);
            let told = state.newest_entries().map(|(time, cost)| (time.get(), cost)).take(100);
            assert!(told.eq(newest.copied()), "{}", context());
            assert_eq!([key.fact("limit"), key.fact("window")], [model.limit, model.window], "{}", context());
        }
    }
}

#[test]
fn it_answers_as_the_definition_does() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let traffic = Traffic::any(&mut random);
        follow(&mut random, &traffic, 1_500);
    }
}

#[test]
fn it_answers_as_the_definition_does_with_thousands_of_entries() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let traffic = Traffic {
            gap: 1_000,
            cost: random.pick(&[1, 1_000, 1 << 30]),
            policies: [(MAX_EXACT, 2_000_000), (MAX_EXACT >> 8, 1_000_000)],
            most: u32::MAX,
            steps_back: seed % 2 == 1,
            refunds: seed % 3 > 0,
        };
        follow(&mut random, &traffic, 12_000);
    }
}

#[test]
fn it_answers_as_the_definition_does_with_a_hundred_thousand_entries() {
    for seed in 0..4 {
        let mut random = Random(seed);
        let window = 10_000_000;
        let policies = [(MAX_EXACT, window), (MAX_EXACT >> 1, window / 3)];
        let (mut key, mut model, mut now) =
            (Key::default(), Model { limit: MAX_EXACT, window, entries: Vec::new() }, NOON);
        // So that the ring begins anywhere.
        for _ in 0..random.below(100_000) {
            now += 90;
            key.take(log(MAX_EXACT, window / 2), now, 1);
        }
        now += window;
        for _ in 0..100_000 {
            now += 90 + random.below(10);
            let cost = 1 + random.any_size(1 << 30);
            key.take(log(MAX_EXACT, window), now, cost);
            model.add(now, cost);
        }
        // Costs so large that a refund takes away a good part.
        let traffic =
            Traffic { gap: 50_000, cost: 1 << 43, policies, most: u32::MAX, steps_back: seed % 2 == 1, refunds: true };
        key.replica = Some(key.bytes.clone());
        follow_on(&mut random, &traffic, 250, (key, model, now));
    }
}

/// What Redis' allocator takes for a string of so many bytes, its header and terminator counted.
fn allocated(length: usize) -> usize {
    let header = match length {
        ..256 => 3,
        256..65_536 => 5,
        _ => 9,
    };
    let bytes = length + header + 1;
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
    }
    bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2))
}

/// A log in which steadily `entries` are live, after two windows.
fn steady(entries: u64, window: u64, most_cost: u64, jitter: bool, random: &mut Random) -> (Key, u64) {
    let (mut key, gap) = (Key::default(), window / entries);
    let limit = log(MAX_EXACT, gap * entries);
    let mut now = NOON;
    for call in 0..entries * 2 + entries / 7 {
        now = NOON + call * gap + if jitter { random.below(gap) } else { 0 };
        assert!(key.take(limit, now, 1 + random.below(most_cost)));
    }
    (key, now)
}

#[test]
fn an_entry_takes_at_most_ten_bytes() {
    let mut random = Random(1);
    for entries in [1_000, 10_000, 100_000] {
        for window in [1_000_000, 60_000_000, 3_600_000_000, DAY, 30 * DAY, 365 * DAY] {
            for (most_cost, jitter) in [(1, false), (1_000, true)] {
                let (key, _) = steady(entries, window, most_cost, jitter, &mut random);
                let live = key.fact("entries");
                let bytes = allocated(key.bytes.len());
                assert!(bytes as u64 <= 10 * live, "{bytes} bytes for {live} entries in {window} µs");
            }
        }
    }
}

#[test]
fn few_entries_take_little() {
    let mut key = Key::default();
    let mut sizes = Vec::new();
    for call in 0..200 {
        key.take(log(1_000, 60_000_000), NOON + call * 1_000, 1);
        sizes.push(allocated(key.bytes.len()));
    }
    assert_eq!([0, 4, 11, 25, 43, 61].map(|call| sizes[call]), [112, 160, 256, 384, 512, 1_024]);
    assert!(sizes[199] <= 2_048);
}

#[test]
fn even_the_least_fitting_entries_take_no_more_than_wide_ones() {
    // Years between, and costs that leave few bits for times.
    let mut key = Key::default();
    let entries = 3_000;
    for call in 0..entries {
        let cost = if call % 2 == 0 { 1 << 40 } else { 1 };
        assert!(key.take(log(MAX_EXACT, 36_500 * DAY), NOON + call * 10 * DAY, cost));
    }
    assert!(allocated(key.bytes.len()) as u64 <= entries * 22, "{} bytes", key.bytes.len());
}

#[test]
fn what_shrinks_gives_its_memory_back() {
    let (mut key, now) = steady(100_000, 100_000_000, 1, false, &mut Random(1));
    for call in 0..1_000 {
        key.take(log(MAX_EXACT, 1_000_000), now + call * 1_000, 1);
    }
    assert_eq!(key.fact("entries"), 1_000);
    assert!(allocated(key.bytes.len()) <= 10_240, "{} bytes", key.bytes.len());
    key.take(log(MAX_EXACT, 1_000_000), now + 1_900_000, 1);
    assert_eq!(key.fact("entries"), 100);
    assert!(allocated(key.bytes.len()) <= 2_048, "{} bytes", key.bytes.len());
}

#[test]
fn it_grows_by_a_part_of_itself() {
    let (key, _) = steady(100_000, 100_000_000, 1, false, &mut Random(1));
    assert!(key.made < 60, "{} times", key.made);
}

#[test]
fn making_it_anew_is_paid_for_by_many_calls() {
    let mut random = Random(5);
    // A few entries, steadily. (With one or two it is unused between calls, and new.)
    for entries in 3..200 {
        let (key, _) = steady(entries, 10_000_000, 1, true, &mut random);
        let (mut key, gap, now) = (key, 10_000_000 / entries, NOON + 20_000_000 * 2);
        (key.made, key.made_bytes) = (0, 0);
        for call in 0..1_000 {
            assert!(key.take(log(MAX_EXACT, gap * entries), now + call * gap + random.below(gap), 1));
        }
        assert!(key.made <= 250 && key.made_bytes <= 60_000, "{entries}: {} times, {} bytes", key.made, key.made_bytes);
    }
    // Traffic that swells and ebbs.
    let (mut key, mut now) = (Key::default(), NOON);
    let calls = 300_000;
    let mut gap = 1_000;
    for _ in 0..calls {
        if random.one_in(20_000) {
            gap = 10 << random.below(14);
        }
        now += 1 + random.below(gap);
        assert!(key.take(log(MAX_EXACT, 10_000_000), now, 1));
    }
    assert!(key.made_bytes < calls * 100, "{} bytes a call", key.made_bytes / calls);
}

#[test]
fn calls_touch_few_bytes_however_long_the_log_is() {
    let mut random = Random(7);
    for entries in [10, 1_000, 10_000, 100_000] {
        let (mut key, mut now) = steady(entries, 1_000_000_000, 1_000, false, &mut random);
        let (gap, window) = (1_000_000_000 / entries, 1_000_000_000);
        let (mut most, mut total, calls) = (0, 0, 1_000);
        for _ in 0..calls {
            now += gap;
            assert!(key.take(log(MAX_EXACT, window), now, 1 + random.below(1_000)));
            let touched: usize = key.touched.ranges().iter().map(|range| range.len()).sum();
            (most, total) = (most.max(touched), total + touched);
        }
        assert!(most <= 1_200 && total / calls <= 80, "{entries}: at most {most}, on average {}", total / calls);

        // A refund of a half, a step of the clock, and a call that drops most.
        let touched = |key: &Key| key.touched.ranges().iter().map(|range| range.len()).sum::<usize>();
        key.refund(now, key.fact("used") / 2, Some(window / 3));
        assert!(touched(&key) < 4_000, "{entries}: a refund touches {}", touched(&key));
        now -= window / 5;
        key.take(log(MAX_EXACT, window), now, 1);
        assert!(touched(&key) < 4_000, "{entries}: a step of the clock touches {}", touched(&key));
        key.take(log(MAX_EXACT, window / 2), now, 1);
        assert!(touched(&key) < 4_000, "{entries}: to drop many touches {}", touched(&key));
    }
}

/// The least of several measurements.
fn least_time(mut run: impl FnMut()) -> Duration {
    (0..15)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn no_call_takes_time_in_proportion_to_the_log() {
    let times = [1_000, 100_000].map(|entries| {
        let (key, now) = steady(entries, 1_000_000_000, 1_000, false, &mut Random(3));
        let state = key.state().unwrap();
        let later = micros(now + 1);
        let used = key.fact("used");
        [
            least_time(|| {
                for part in 1..100 {
                    // Denied until a part of the entries has left, in a window other than the remembered one.
                    let limit = log(used, 1_000_000_000 - part);
                    let told = limit.peek(Some(state), later, units(used * part / 100));
                    assert!(!told.allowed);
                }
            }),
            least_time(|| {
                for part in 1..100 {
                    let age = Age::from_micros(part * 1_000_000).unwrap();
                    assert!(state.refund(later, units(used / part), Some(age)).is_some());
                }
            }),
            least_time(|| {
                for part in 1..100 {
                    let limit = log(MAX_EXACT, part * 10_000_000);
                    assert!(limit.decide(Some(state), later, Cost::ONE, u32::MAX).unwrap().next.is_some());
                }
            }),
        ]
    });
    for (short, long) in times[0].into_iter().zip(times[1]) {
        assert!(long < short * 10, "{short:?} for a thousand entries, {long:?} for a hundred thousand");
    }
}

#[test]
fn beyond_the_most_entries_only_what_would_be_allowed_is_an_error() {
    let mut key = Key::default();
    let limit = log(10, 1_000_000);
    for call in 0..5 {
        assert!(key.decide(limit, NOON + call, 1, 5).unwrap().allowed);
    }
    assert_eq!(key.decide(limit, NOON + 5, 1, 5), Err(TooManyEntries));
    assert!(!key.decide(limit, NOON + 5, 6, 5).unwrap().allowed, "denied anyway");
    assert!(key.decide(limit, NOON + 4, 1, 5).unwrap().allowed, "shares an entry");
    assert!(key.decide(limit, NOON + 5, 0, 5).unwrap().allowed, "takes nothing");
    assert!(key.decide(limit, NOON + 1_000_000, 1, 5).unwrap().allowed, "one has left");
    assert_eq!(Key::default().decide(limit, NOON, 1, 0), Err(TooManyEntries));
}

#[test]
fn a_wait_is_exact_to_the_microsecond_of_the_entry() {
    let mut key = Key::default();
    let limit = log(3, 60_000_000);
    for (at, cost) in [(0, 1), (1_500, 1), (2_700, 1)] {
        assert!(key.take(limit, NOON + at, cost));
    }
    let denied = key.decide(limit, NOON + 10_000, 2, u32::MAX).unwrap();
    assert_eq!(denied.retry_after, RetryAfter::Millis(59_992), "the entry of 1.5 ms leaves 59.9915 s later");
    assert!(!key.take(limit, NOON + 60_001_499, 2));
    assert!(key.take(limit, NOON + 60_001_500, 2));
}

/// Does with bytes what commands could, whatever they are.
fn probe(bytes: &[u8], random: &mut Random) {
    let Some(state) = (if Stored::has_length(bytes.len()) { read(bytes) } else { None }) else { return };
    let mut told = 0;
    state.describe(&mut |_, _| told += 1);
    assert!(state.newest_entries().all(|(_, cost)| cost > 0));
    let window = state.limiter().window().as_micros();
    for _ in 0..3 {
        let span = 2 * window.min(DAY);
        let now =
            micros((state.unused_at().get() - random.below(span).min(state.unused_at().get())).min(Micros::MAX.get()));
        let limiter = match random.below(3) {
            0 => state.limiter(),
            1 => log(MAX_EXACT, window),
            _ => log(random.any_size(MAX_EXACT), 1_000 + random.any_size(window)),
        };
        let cost = units(random.any_size(MAX_EXACT));
        let decision = state.peek(now, cost);
        assert!(decision.remaining <= decision.limit && decision.reset_after <= MAX_EXACT);
        assert!(decision.allowed || decision.retry_after != RetryAfter::Millis(0), "{decision:?}");
        let age = [None, Age::from_micros(random.any_size(window))][usize::from(random.one_in(2))];
        let plans = [
            limiter.decide(Some(state), now, cost, u32::MAX).ok().and_then(|outcome| outcome.next),
            limiter.decide(Some(state), now, Cost::ONE, u32::MAX).ok().and_then(|outcome| outcome.next),
            state.refund(now, cost, age),
        ];
        for plan in plans.into_iter().flatten().filter(|plan| !plan.leaves_nothing()) {
            assert!(plan.length() <= 2 * bytes.len() + 1_024);
            let left = if plan.fits() {
                let mut changed = bytes.to_vec();
                plan.carry_out(&mut changed);
                changed
            } else {
                plan.make(bytes)
            };
            assert!(read_any(&left).is_some(), "what a call has left is no log: {}", left.escape_ascii());
        }
    }
}

/// Logs of all sizes and formats.
fn samples(random: &mut Random) -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    for calls in [1, 4, 12, 60, 62, 150, 700, 3_000, 9_000] {
        for costs in [1, 1_000, 1 << 35] {
            let mut key = Key::default();
            let limit = log(MAX_EXACT - calls, 10 * DAY);
            for call in 0..calls {
                key.take(limit, NOON + call * 1_000_000 + random.below(3), 1 + random.any_size(costs));
            }
            samples.push(key.bytes.clone());
            key.refund(NOON + calls * 1_000_000, key.fact("used") / 2, Some(calls * 300_000));
            key.take(log(MAX_EXACT - calls, calls * 900_000 + 1_000), NOON + calls * 1_000_000, 1);
            samples.push(key.bytes.clone());
        }
    }
    samples
}

#[test]
fn no_lie_in_the_bytes_does_harm() {
    let mut random = Random(11);
    let samples = samples(&mut random);
    for sample in &samples {
        // Every bit where there are few, else some.
        let bits = sample.len() * 8;
        let chosen = if bits < 6_000 {
            (0..bits).collect::<Vec<_>>()
        } else {
            (0..1_500)
                .map(|bit| if bit < 500 { bit } else { usize::try_from(random.below(bits as u64)).unwrap() })
                .collect()
        };
        for bit in chosen {
            let mut lie = sample.clone();
            lie[bit / 8] ^= 1 << (bit % 8);
            probe(&lie, &mut random);
        }
        for _ in 0..60 {
            // Behind the head anything, from somewhere on; and a head from elsewhere.
            let mut lie = sample.clone();
            let from = 25 + usize::try_from(random.below((lie.len() - 25) as u64)).unwrap();
            lie[from..].iter_mut().for_each(|byte| *byte = random.next().to_le_bytes()[0]);
            probe(&lie, &mut random);
            let mut lie = sample.clone();
            lie[62..].iter_mut().for_each(|byte| *byte = random.next().to_le_bytes()[0]);
            probe(&lie, &mut random);
            let fill = random.pick(&[0, 0x7F, 0xFF]);
            lie[62..].fill(fill);
            probe(&lie, &mut random);
            let other = &samples[usize::try_from(random.below(samples.len() as u64)).unwrap()];
            let cut = usize::try_from(random.below(sample.len().min(other.len()) as u64)).unwrap();
            probe(&[&sample[..cut], &other[cut..]].concat(), &mut random);
            let mut lie = sample.clone();
            lie[25..62].copy_from_slice(&other[25..62]);
            probe(&lie, &mut random);
        }
        for length in [sample.len() - 1, sample.len() / 2, 4, 3] {
            assert!(!matches!(Stored::read(&sample[..length]), Ok(Stored::SlidingLog(_))));
        }
        assert!(read_any(&[&sample[..], &[0]].concat()).is_none());
    }
}

fn read_any(bytes: &[u8]) -> Option<State<'_>> {
    match Stored::read(bytes) {
        Ok(Stored::SlidingLog(log)) => Some(log),
        _ => None,
    }
}

/// Rows, which come in thirteen sizes and any number, have lengths that are multiples of four; nearly all others have only logs.
#[test]
fn most_lengths_are_nothing_stored() {
    let stored: Vec<usize> = (0..1_000_000).filter(|&length| Stored::has_length(length)).collect();
    let logs = stored.iter().filter(|length| !length.is_multiple_of(4)).count();
    assert!(stored.len() < 100_000 && logs < 2_300, "{} and {logs}", stored.len());
}
