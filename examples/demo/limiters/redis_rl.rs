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
    TokenBucket,
}

impl Algorithm {
    pub const ALL: [Algorithm; 2] = [Algorithm::FixedWindow, Algorithm::TokenBucket];

    pub fn command(self) -> &'static str {
        match self {
            Algorithm::FixedWindow => "RL.FIXED",
            Algorithm::TokenBucket => "RL.TOKENBUCKET",
        }
    }

    /// The argument behind the limit that makes it "so many an hour".
    fn an_hour(self, limit: u64) -> String {
        match self {
            Algorithm::FixedWindow => "1h".to_owned(),
            Algorithm::TokenBucket => format!("{limit}/h"),
        }
    }

    /// The waits, in seconds, that can be right for requests refused between two moments, of a run that began with an
    /// unused limiter. None if so much time has passed that more than the limit was rightly admitted.
    pub fn waits(self, limit: u64, began: Moment, ended: Moment) -> Option<RangeInclusive<u64>> {
        let (longest, shortest) = match self {
            Algorithm::FixedWindow => (began.left_of_window_at(began), ended.left_of_window_at(began)),
            Algorithm::TokenBucket => {
                let token = WINDOW.div_f64(limit as f64);
                (token, token.saturating_sub(ended.since(began)))
            }
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
        Ok(Decision {
            allowed,
            limit,
            remaining,
            // -1: never.
            retry_after: u64::try_from(retry_after_ms).ok().map(Duration::from_millis),
            reset_after: Duration::from_millis(reset_ms),
        })
    }
}
