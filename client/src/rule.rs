//! An algorithm with its parameters, as it is decided here and as Redis is asked.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use rl_limiter::{Capacity, FixedWindow, Limit, Rate, SlidingLog, SlidingWindow, TokenBucket};

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Algorithm {
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindow),
    SlidingLog(SlidingLog),
    TokenBucket(TokenBucket),
    LeakyBucket { capacity: Capacity, rate: Rate },
}

impl Algorithm {
    /// The most that can be had at once.
    pub fn limit(self) -> Limit {
        match self {
            Self::FixedWindow(limiter) => limiter.limit(),
            Self::SlidingWindow(limiter) => limiter.limit(),
            Self::SlidingLog(limiter) => limiter.limit(),
            Self::TokenBucket(limiter) => limiter.capacity(),
            Self::LeakyBucket { capacity, .. } => capacity,
        }
    }

    /// The window, or how long an empty bucket takes to refill.
    pub fn window(self) -> Duration {
        let window = match self {
            Self::FixedWindow(limiter) => limiter.window(),
            Self::SlidingWindow(limiter) => limiter.window(),
            Self::SlidingLog(limiter) => limiter.window(),
            Self::TokenBucket(limiter) => return until_full(limiter.capacity(), limiter.rate()),
            Self::LeakyBucket { capacity, rate } => return until_full(capacity, rate),
        };
        Duration::from_micros(window.as_micros())
    }

    /// When a limiter of which nothing is left has its next unit, if it is as good as unused after `reset_after`; `None` where
    /// that depends on when the others were taken.
    #[cfg(feature = "tower")]
    pub fn next_unit_after(self, reset_after: Duration) -> Option<Duration> {
        match self {
            Self::FixedWindow(_) => Some(reset_after),
            Self::SlidingWindow(_) | Self::SlidingLog(_) => None,
            Self::TokenBucket(limiter) => {
                Some(reset_after.saturating_sub(time_of_all_but_one(limiter.capacity(), limiter.rate())))
            }
            Self::LeakyBucket { capacity, rate } => {
                Some(reset_after.saturating_sub(time_of_all_but_one(capacity, rate)))
            }
        }
    }

    /// The same, but of a leaky bucket no more places than have their turn within `longest`, as it is counted in whole
    /// milliseconds.
    #[cfg(feature = "tower")]
    pub fn with_turns_within(self, longest: Duration) -> Self {
        let Self::LeakyBucket { capacity, rate } = self else { return self };
        // Before the turn of the last place all others drain.
        let parts = longest.as_millis().saturating_mul(1_000).saturating_mul(rate.units().into());
        let places = u64::try_from(parts / u128::from(rate.micros())).unwrap_or(u64::MAX).saturating_add(1);
        Self::LeakyBucket { capacity: Capacity::new(places.min(capacity.get())).unwrap_or(capacity), rate }
    }

    /// The part of it that one of so many nodes may give out: its limit or capacity is divided and rounded down, but at least 1
    /// (unless it is 0), and its rate is divided exactly.
    pub fn share(self, nodes: NonZeroU32) -> Self {
        let limit = self.limit();
        let part = limit.get() / u64::from(nodes.get());
        let limit = Limit::new(part.max(1).min(limit.get())).unwrap_or(limit);
        let slower = |rate: Rate| {
            let micros = rate.micros().checked_mul(nodes.get().into());
            micros.and_then(|micros| Rate::new(rate.units(), micros))
        };
        match self {
            Self::FixedWindow(limiter) => Self::FixedWindow(FixedWindow::new(limit, limiter.window())),
            Self::SlidingWindow(limiter) => Self::SlidingWindow(SlidingWindow::new(limit, limiter.window())),
            Self::SlidingLog(limiter) => Self::SlidingLog(SlidingLog::new(limit, limiter.window())),
            Self::TokenBucket(limiter) => {
                let rate = slower(limiter.rate()).unwrap_or(limiter.rate());
                Self::TokenBucket(TokenBucket::new(limit, rate))
            }
            Self::LeakyBucket { rate, .. } => Self::LeakyBucket { capacity: limit, rate: slower(rate).unwrap_or(rate) },
        }
    }
}

/// An algorithm with its parameters, and how Redis is asked to decide by it.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub algorithm: Algorithm,
    /// The limit or capacity and the window or rate, as the command takes them.
    pub arguments: Arc<[String; 2]>,
}

impl Rule {
    pub fn new(algorithm: Algorithm, pace: String) -> Self {
        Self { algorithm, arguments: Arc::new([algorithm.limit().get().to_string(), pace]) }
    }

    /// See [`Algorithm::with_turns_within`].
    #[cfg(feature = "tower")]
    pub fn with_turns_within(&self, longest: Duration) -> Self {
        let [_, pace] = &*self.arguments;
        Self::new(self.algorithm.with_turns_within(longest), pace.clone())
    }

    /// The command that decides by it.
    pub fn command(&self) -> &'static str {
        match self.algorithm {
            Algorithm::FixedWindow(_) => "RL.FIXED",
            Algorithm::SlidingWindow(_) => "RL.SLIDING",
            Algorithm::SlidingLog(_) => "RL.SLIDINGLOG",
            Algorithm::TokenBucket(_) => "RL.TOKENBUCKET",
            Algorithm::LeakyBucket { .. } => "RL.LEAKY",
        }
    }

    /// The name by which `RL.MULTI` knows it: that of the command without `RL.`.
    pub fn kind(&self) -> &'static str {
        self.command().trim_start_matches("RL.")
    }

    /// Whether what is allowed is told to wait for its turn.
    pub fn queues(&self) -> bool {
        matches!(self.algorithm, Algorithm::LeakyBucket { .. })
    }
}

/// Rounded up to microseconds.
fn until_full(capacity: Capacity, rate: Rate) -> Duration {
    let parts = u128::from(capacity.get()) * u128::from(rate.micros());
    Duration::from_micros(u64::try_from(parts.div_ceil(rate.units().into())).unwrap_or(u64::MAX))
}

/// Rounded down to microseconds.
#[cfg(feature = "tower")]
fn time_of_all_but_one(capacity: Capacity, rate: Rate) -> Duration {
    let parts = u128::from(capacity.get().saturating_sub(1)) * u128::from(rate.micros());
    Duration::from_micros(u64::try_from(parts / u128::from(rate.units())).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::Algorithm;
    use crate::policy::{Policy, Rate};

    const SECOND: Duration = Duration::from_secs(1);

    fn policies(limit: u64, units: u64) -> [Policy; 5] {
        [
            Policy::fixed_window("p", limit, SECOND),
            Policy::sliding_window("p", limit, SECOND),
            Policy::sliding_log("p", limit, SECOND),
            Policy::token_bucket("p", limit, Rate::per(units, SECOND)),
            Policy::leaky_bucket("p", limit, Rate::per(units, SECOND)),
        ]
        .map(Result::unwrap)
    }

    fn rate(algorithm: Algorithm) -> Option<rl_limiter::Rate> {
        match algorithm {
            Algorithm::TokenBucket(bucket) => Some(bucket.rate()),
            Algorithm::LeakyBucket { rate, .. } => Some(rate),
            _ => None,
        }
    }

    proptest! {
        #[cfg(feature = "tower")]
        #[test]
        fn all_places_that_have_their_turn_in_time_and_no_others(
            capacity in 0..1_u64 << 53, units in 1..1_000_000_000_u64, millis in 0..1_u64 << 50, nanos in 0..1_000_000_u64
        ) {
            let [others @ .., leaky] = policies(capacity, units);
            let longest = Duration::from_millis(millis) + Duration::from_nanos(nanos);
            for other in others {
                let limit = other.rule().algorithm.with_turns_within(longest).limit();
                prop_assert_eq!(limit.get(), capacity);
            }
            let places = leaky.rule().algorithm.with_turns_within(longest).limit().get();
            // One place drains in a second / units.
            let turn_is_in_time = |place: u64| u128::from(place - 1) * 1_000 <= u128::from(millis) * u128::from(units);
            prop_assert!(places <= capacity);
            prop_assert!(places == 0 || turn_is_in_time(places));
            prop_assert!(places == capacity || !turn_is_in_time(places + 1));
        }

        #[test]
        fn the_parts_of_all_nodes_are_the_limit(limit in 0..1_u64 << 53, units in 1..1_000_000_000_u64, nodes in 1..=u32::MAX) {
            for policy in policies(limit, units) {
                let whole = policy.rule().algorithm;
                let part = whole.share(NonZeroU32::new(nodes).unwrap());
                let (sum, nodes) = (u128::from(part.limit().get()) * u128::from(nodes), u128::from(nodes));
                let limit = u128::from(limit);
                prop_assert!(sum <= limit.max(nodes).min(limit * nodes), "{sum} of {limit}");
                prop_assert!(sum + nodes > limit, "{sum} of {limit}: more than a unit for each node is lost");
                if let (Some(whole), Some(part)) = (rate(whole), rate(part)) {
                    let (whole_units, part_units) = (u128::from(whole.units()), u128::from(part.units()));
                    // part × nodes = whole, as fractions.
                    let left = part_units * nodes * u128::from(whole.micros());
                    prop_assert_eq!(left, whole_units * u128::from(part.micros()));
                }
            }
        }
    }
}
