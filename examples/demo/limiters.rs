//! The ways to count that the acts compare.

mod check_then_act;
mod memory;
pub mod redis_rl;

use std::net::SocketAddr;
use std::time::Duration;

use crate::Fallible;
use crate::decision::Decision;
use crate::limiters::check_then_act::CheckThenAct;
use crate::limiters::memory::Memory;
use crate::limiters::redis_rl::{Algorithm, RedisRl};

/// Limits are "so many an hour": long enough that hardly anything comes back during a run.
pub const WINDOW: Duration = Duration::from_secs(3_600);

/// A way to count.
#[derive(Clone, Copy)]
pub enum Counting {
    Memory,
    CheckThenAct,
    RedisRl(Algorithm),
}

impl Counting {
    /// For an API server's command line.
    pub fn name(self) -> &'static str {
        match self {
            Counting::Memory => "memory",
            Counting::CheckThenAct => "check-then-act",
            Counting::RedisRl(algorithm) => algorithm.command(),
        }
    }

    /// For a person.
    pub fn description(self) -> &'static str {
        match self {
            Counting::Memory => "each server for itself",
            Counting::CheckThenAct => "GET, compare, INCR",
            Counting::RedisRl(algorithm) => algorithm.command(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let mut all =
            [Counting::Memory, Counting::CheckThenAct].into_iter().chain(Algorithm::ALL.map(Counting::RedisRl));
        all.find(|counting| counting.name() == name)
    }
}

/// A way to count, ready to decide.
pub enum Limiter {
    Memory(Memory),
    CheckThenAct(CheckThenAct),
    RedisRl(RedisRl),
}

impl Limiter {
    pub async fn new(counting: Counting, limit: u64, redis: SocketAddr) -> Fallible<Self> {
        Ok(match counting {
            Counting::Memory => Limiter::Memory(Memory::new(limit)),
            Counting::CheckThenAct => Limiter::CheckThenAct(CheckThenAct::connect(limit, redis).await?),
            Counting::RedisRl(algorithm) => Limiter::RedisRl(RedisRl::connect(algorithm, limit, redis).await?),
        })
    }

    pub async fn decide(&self, user: &str) -> Fallible<Decision> {
        match self {
            Limiter::Memory(limiter) => Ok(limiter.decide(user)),
            Limiter::CheckThenAct(limiter) => limiter.decide(user).await,
            Limiter::RedisRl(limiter) => limiter.decide(user).await,
        }
    }

    /// Told after a request was served.
    pub async fn served(&self, user: &str) -> Fallible<()> {
        match self {
            Limiter::CheckThenAct(limiter) => limiter.served(user).await,
            // The others have counted it when they decided.
            Limiter::Memory(_) | Limiter::RedisRl(_) => Ok(()),
        }
    }
}

/// The braces are a cluster's hash tag: all limits of one user live on one node.
fn key(user: &str, policy: &str) -> String {
    format!("rl:{{{user}}}:{policy}")
}
