//! Counting with the module: one command checks and takes in one step.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use crate::Fallible;
use crate::clock::Moment;
use crate::decision::{Decision, whole_seconds};
use crate::limiters::{WINDOW, key};
use crate::redis_server::connect;

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

    /// The argument behind the limit that makes it "so many an hour".
    fn an_hour(self, limit: u64) -> String {
        match self {
            Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog => "1h".to_owned(),
            Algorithm::TokenBucket | Algorithm::LeakyBucket => format!("{limit}/h"),
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

pub struct RedisRl {
    algorithm: Algorithm,
    limit: u64,
    redis: MultiplexedConnection,
}

impl RedisRl {
    pub async fn connect(algorithm: Algorithm, limit: u64, redis: SocketAddr) -> Fallible<Self> {
        Ok(RedisRl { algorithm, limit, redis: connect(redis).await? })
    }

    pub async fn decide(&self, user: &str) -> Fallible<Decision> {
        let command = self.algorithm.command();
        let (allowed, limit, remaining, retry_after_ms, reset_ms): (bool, u64, u64, i64, u64) = redis::cmd(command)
            .arg(key(user, command))
            .arg(self.limit)
            .arg(self.algorithm.an_hour(self.limit))
            .query_async(&mut self.redis.clone())
            .await?;
        // -1: never.
        let wait = u64::try_from(retry_after_ms).ok().map(Duration::from_millis);
        Ok(Decision {
            allowed,
            limit,
            remaining,
            retry_after: wait,
            turn_after: wait.filter(|_| allowed && self.algorithm.queues()),
            reset_after: Duration::from_millis(reset_ms),
        })
    }
}
