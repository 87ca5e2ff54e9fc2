//! The algorithms, each with ten units a minute: how they are called, and what steps of the clock may cost by the contract.

use super::history::{Event, Stretch};
use crate::support::SECOND;

pub const LIMIT: i64 = 10;
pub const WINDOW: i64 = 60 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fixed,
    Sliding,
    SlidingLog,
    TokenBucket,
    Leaky,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Fixed, Self::Sliding, Self::SlidingLog, Self::TokenBucket, Self::Leaky];

    /// A call of `cost` on a key.
    pub fn call(self, key: &str, cost: i64) -> String {
        self.call_of(key, LIMIT, cost)
    }

    /// A call by another limit a minute.
    pub fn call_of(self, key: &str, limit: i64, cost: i64) -> String {
        match self {
            Self::Fixed => format!("RL.FIXED {key} {limit} 1m {cost}"),
            Self::Sliding => format!("RL.SLIDING {key} {limit} 1m {cost}"),
            Self::SlidingLog => format!("RL.SLIDINGLOG {key} {limit} 1m {cost}"),
            Self::TokenBucket => format!("RL.TOKENBUCKET {key} {limit} {limit}/m {cost}"),
            Self::Leaky => format!("RL.LEAKY {key} {limit} {limit}/m {cost}"),
        }
    }

    /// The longest that anybody may have to wait, in milliseconds: one full window or refill; two for a sliding window.
    pub fn longest_wait(self) -> i64 {
        let windows = if self == Self::Sliding { 2 } else { 1 };
        windows * WINDOW / 1_000
    }

    /// Fails unless what was admitted is what the contract allows, however the clock went. It counts by definition: what was taken in each
    /// stretch between two calls, against what the clock's way forward brings back in it. Its way back brings nothing back.
    pub fn assert_kept(self, history: &[Event], limit: i64) {
        if self == Self::Sliding {
            return assert_estimate_kept(history, limit);
        }
        for (end, _) in history.iter().enumerate().filter(|(_, event)| matches!(event, Event::Admitted(_))) {
            let mut stretch = Stretch::default();
            for (start, event) in history[..=end].iter().enumerate().rev() {
                stretch.extend(event);
                let most = match self {
                    Self::Fixed => limit * (1 + stretch.edges),
                    Self::SlidingLog if stretch.forward >= WINDOW => break,
                    Self::SlidingLog | Self::Sliding => limit,
                    Self::TokenBucket | Self::Leaky => limit + stretch.forward * limit / WINDOW,
                };
                let (taken, most) = (stretch.taken, most + stretch.given);
                assert!(taken <= most, "{self:?}: {taken} instead of {most} in {:?}", &history[start..=end]);
            }
        }
    }
}

/// A sliding window's own measure, at each call that was admitted: `current + previous × part` is at most the limit, as fractions.
/// The clock that goes back over an edge makes what is still covered of `previous`, rounded up, part of `current`.
fn assert_estimate_kept(history: &[Event], limit: i64) {
    let (mut current, mut previous, mut left) = (0_i64, 0_i64, WINDOW);
    for (at, event) in history.iter().enumerate() {
        match *event {
            Event::Moved { from, to } => {
                match to.div_euclid(WINDOW) - from.div_euclid(WINDOW) {
                    0 => {}
                    1 => (current, previous) = (0, current),
                    2.. => (current, previous) = (0, 0),
                    _ => (current, previous) = (current + (previous * left + WINDOW - 1) / WINDOW, 0),
                }
                left = WINDOW - to.rem_euclid(WINDOW);
            }
            Event::Given(units) => (current, previous) = ((current - units).max(0), (previous - units).max(0)),
            Event::Taken(units) => current += units,
            Event::Admitted(units) => {
                current += units;
                let estimate = current * WINDOW + previous * left;
                assert!(estimate <= limit * WINDOW, "{current} + {previous} × {left}: {:?}", &history[..=at]);
            }
        }
    }
}
