//! States to store, and calls to try on them.

use proptest::prelude::*;
use rl_limiter::layout::State;
use rl_limiter::{
    Capacity, Cost, FixedWindow, LeakyBucket, Limit, Limiter, Micros, Rate, SlidingWindow, TokenBucket, Window,
    fixed_window, sliding_window, token_bucket,
};

const MOST: u64 = (1 << 53) - 1;
const MOST_TERM: u64 = (1 << 63) - 1;
const LAST_MOMENT: u64 = (1 << 62) - 1;
const LONGEST_WINDOW: u64 = 36_500 * 86_400_000_000;

/// A fixed window's state: limit and microseconds, the last time, the count.
pub fn fixed(limiter: (u64, u64), last: u64, count: u64) -> State {
    fixed_window::State::new(fixed_window(limiter), Micros::new(last).unwrap(), count).unwrap().into()
}

/// A token bucket's state: capacity, units every so many microseconds, the last time, the parts spent.
pub fn bucket(limiter: (u64, u64, u64), last: u64, spent: u128) -> State {
    token_bucket::State::new(token_bucket(limiter), Micros::new(last).unwrap(), spent).unwrap().into()
}

/// A sliding window's state: limit and microseconds, the last time, the counts of its window and the one before.
pub fn sliding(limiter: (u64, u64), last: u64, current: u64, previous: u64) -> State {
    let last = Micros::new(last).unwrap();
    sliding_window::State::new(sliding_window(limiter), last, current, previous).unwrap().into()
}

/// A leaky bucket's state, as calls leave it: capacity, units every so many microseconds, the time, the units admitted.
pub fn leaky((capacity, units, micros): (u64, u64, u64), last: u64, admitted: u64) -> Option<State> {
    let limiter = LeakyBucket::new(Capacity::new(capacity).unwrap(), Rate::new(units, micros).unwrap());
    Some(limiter.decide(None, Micros::new(last).unwrap(), Cost::new(admitted).unwrap()).next?.into())
}

fn sliding_window((limit, window): (u64, u64)) -> SlidingWindow {
    SlidingWindow::new(Limit::new(limit).unwrap(), Window::from_micros(window).unwrap())
}

fn fixed_window((limit, window): (u64, u64)) -> FixedWindow {
    FixedWindow::new(Limit::new(limit).unwrap(), Window::from_micros(window).unwrap())
}

fn token_bucket((capacity, units, micros): (u64, u64, u64)) -> TokenBucket {
    TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::new(units, micros).unwrap())
}

/// Buckets around the edge between the forms: the last that is narrow, the first that is wide, and the extremes.
pub fn wide_and_narrow() -> [State; 6] {
    [
        bucket((1, 1, 1), 0, 0),
        bucket((MOST, 1, 1_024), 5, u128::from(u64::MAX) - 2_047),
        bucket((MOST, 1, 1_025), 5, 0),
        bucket((MOST, 1, 1_025), 5, u128::from(u64::MAX)),
        bucket((1, 1, MOST_TERM), 5, u128::from(u64::MAX) - 1),
        bucket((MOST, MOST_TERM - 1, MOST_TERM), LAST_MOMENT, 2 * u128::from(MOST) * u128::from(MOST_TERM)),
    ]
}

/// Any state that calls can lead to.
pub fn any_state() -> impl Strategy<Value = State> {
    let of_window = ((1..=MOST, 1_000..=LONGEST_WINDOW), moment(), any::<u64>())
        .prop_map(|(limiter, last, count)| fixed(limiter, last, count % (limiter.0 + 1)));
    let of_bucket =
        (limit(), term(), term(), moment(), any::<u128>()).prop_map(|(capacity, units, micros, last, spent)| {
            let reduced = Rate::new(units, micros).unwrap().micros();
            bucket((capacity, units, micros), last, spent % (2 * u128::from(capacity) * u128::from(reduced) + 1))
        });
    let of_sliding = ((1..=MOST, 1_000..=LONGEST_WINDOW), moment(), any::<u64>(), any::<u64>()).prop_map(
        |(limiter, last, current, previous)| {
            let most = limiter.0 + 1;
            sliding(limiter, last, current % most, previous % most)
        },
    );
    let of_leaky = (limit(), term(), term(), moment(), any::<u64>())
        .prop_filter_map("nothing admitted", |(capacity, units, micros, last, admitted)| {
            leaky((capacity, units, micros), last, admitted % (capacity + 1))
        });
    prop_oneof![1 => of_window, 2 => of_bucket, 1 => of_sliding, 1 => of_leaky]
}

/// Fields as somebody might plant them: in all sizes, at edges of ranges.
pub fn any_fields(count: usize) -> impl Strategy<Value = Vec<u64>> {
    let field = prop_oneof![
        2 => (0..64_u32, any::<u64>()).prop_map(|(bits, value)| value >> bits),
        1 => prop::sample::select(vec![0, 1, 2, 1_000, MOST, LAST_MOMENT, MOST_TERM, LONGEST_WINDOW]),
        1 => 1..10_u64,
    ];
    prop::collection::vec(field, count)
}

fn limit() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 1..10_u64, 1 => 1..=MOST, 1 => Just(MOST)]
}

fn term() -> impl Strategy<Value = u64> {
    prop_oneof![2 => 1..10_000_000_u64, 1 => 1..=MOST_TERM, 1 => Just(MOST_TERM)]
}

fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1_700_000_000_000_000..2_000_000_000_000_000_u64, 1 => 0..=LAST_MOMENT, 1 => Just(0), 1 => Just(LAST_MOMENT)]
}

/// Windows with nothing, little and most in them.
pub fn extreme_windows() -> Vec<FixedWindow> {
    [(0, 1_000), (1, 1_000), (1, LONGEST_WINDOW), (MOST, 1_000), (MOST, LONGEST_WINDOW), (10, 60_000_000)]
        .map(fixed_window)
        .into()
}

/// The same for sliding windows.
pub fn extreme_sliding_windows() -> Vec<SlidingWindow> {
    extreme_windows().into_iter().map(|one| SlidingWindow::new(one.limit(), one.window())).collect()
}

/// The same buckets as queues.
pub fn extreme_leaky_buckets() -> Vec<LeakyBucket> {
    extreme_buckets().into_iter().map(|one| LeakyBucket::new(one.capacity(), one.rate())).collect()
}

/// Buckets at the ends of every range.
pub fn extreme_buckets() -> Vec<TokenBucket> {
    let rates = [
        (1, 1),
        (1, MOST_TERM),
        (MOST_TERM, 1),
        (MOST_TERM, MOST_TERM - 1),
        (MOST_TERM - 1, MOST_TERM),
        (1, 86_400_000_000),
    ];
    rates
        .iter()
        .flat_map(|&(units, micros)| [0, 1, MOST].map(|capacity| token_bucket((capacity, units, micros))))
        .collect()
}

/// Costs that take nothing, little and most.
pub fn costs() -> [Cost; 4] {
    [0, 1, MOST - 1, MOST].map(|cost| Cost::new(cost).unwrap())
}
