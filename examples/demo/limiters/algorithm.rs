//! The algorithms of redis-rl, each as "so many an hour".

use std::ops::RangeInclusive;
use std::time::Duration;

use redis_rl_client::{Policy, PolicyError, Rate};

use crate::answer::whole_seconds;
use crate::clock::Moment;
use crate::limiters::WINDOW;

#[derive(Clone, Copy)]
pub enum Algorithm {
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    TokenBucket,
    LeakyBucket,
}

impl Algorithm {
    pub const ALL: [Algorithm; 5] = [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
    ];

    /// For runs that compare other things: it has no edges at the clock's hours, and gives nothing back before an hour is
    /// over, however long a run takes.
    pub const EXACT: Algorithm = Algorithm::SlidingLog;

    /// The command that the client sends for it.
    pub fn command(self) -> &'static str {
        match self {
            Algorithm::FixedWindow => "RL.FIXED",
            Algorithm::SlidingWindow => "RL.SLIDING",
            Algorithm::SlidingLog => "RL.SLIDINGLOG",
            Algorithm::TokenBucket => "RL.TOKENBUCKET",
            Algorithm::LeakyBucket => "RL.LEAKY",
        }
    }

    /// Whether an admitted request is told when its turn comes.
    pub fn queues(self) -> bool {
        matches!(self, Algorithm::LeakyBucket)
    }

    /// `limit` an hour. The name is part of the keys.
    pub fn policy(self, name: &str, limit: u64) -> Result<Policy, PolicyError> {
        let rate = Rate::per(limit, WINDOW);
        match self {
            Algorithm::FixedWindow => Policy::fixed_window(name, limit, WINDOW),
            Algorithm::SlidingWindow => Policy::sliding_window(name, limit, WINDOW),
            Algorithm::SlidingLog => Policy::sliding_log(name, limit, WINDOW),
            Algorithm::TokenBucket => Policy::token_bucket(name, limit, rate),
            Algorithm::LeakyBucket => Policy::leaky_bucket(name, limit, rate),
        }
    }

    /// The waits, in seconds, that can be right for requests refused between two moments, of a run that began with an
    /// unused limiter. None if so much time has passed that more than the limit was rightly admitted.
    pub fn waits(self, limit: u64, began: Moment, ended: Moment) -> Option<RangeInclusive<u64>> {
        let share = WINDOW.div_f64(limit as f64);
        let since_began = |wait: Duration| (wait, wait.saturating_sub(ended.since(began)));
        let (longest, shortest) = match self {
            Algorithm::FixedWindow => (began.left_of_window_at(began), ended.left_of_window_at(began)),
            // The window that is full must end, and then so much of it be covered no more that one unit comes free.
            Algorithm::SlidingWindow => {
                (began.left_of_window_at(began) + share, ended.left_of_window_at(began).saturating_add(share))
            }
            Algorithm::SlidingLog => since_began(WINDOW),
            Algorithm::TokenBucket | Algorithm::LeakyBucket => since_began(share),
        };
        (!shortest.is_zero()).then(|| whole_seconds(shortest)..=whole_seconds(longest))
    }
}
