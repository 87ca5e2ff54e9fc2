//! The ways to count that the acts compare.

pub mod algorithm;
mod check_then_act;
mod redis_rl;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use redis_rl_client::{Limiter, Outage, Policy, Rate};

use crate::Fallible;
use crate::limiters::algorithm::Algorithm;

/// Limits are "so many an hour": long enough that hardly anything comes back during a run.
pub const WINDOW: Duration = Duration::from_secs(3_600);

/// A way to count.
#[derive(Clone, Copy)]
pub enum Counting {
    Memory,
    CheckThenAct,
    RedisRl(Algorithm),
    /// With redis-rl, and this when Redis is away.
    Through(Outage),
    /// A bucket that refills within a second, with redis-rl, which is asked for each request, …
    Direct,
    /// … or leases it to the servers.
    Leased,
}

impl Counting {
    /// For an API server's command line, and for keys: no two runs share one.
    pub fn name(self) -> &'static str {
        match self {
            Counting::Memory => "memory",
            Counting::CheckThenAct => "check-then-act",
            Counting::RedisRl(algorithm) => algorithm.command(),
            Counting::Through(Outage::Open) => "outage-open",
            Counting::Through(Outage::Closed) => "outage-closed",
            Counting::Through(Outage::LocalShare) => "outage-local-share",
            Counting::Direct => "hot-direct",
            Counting::Leased => "hot-leased",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let by_redis_rl = Algorithm::ALL.map(Counting::RedisRl);
        let through = [Outage::Open, Outage::Closed, Outage::LocalShare].map(Counting::Through);
        let others = [Counting::Memory, Counting::CheckThenAct, Counting::Direct, Counting::Leased];
        let mut all = others.into_iter().chain(by_redis_rl).chain(through);
        all.find(|counting| counting.name() == name)
    }

    /// Puts `limit` an hour, or for a hot key a second, before an app, counted this way.
    pub async fn layer(self, app: Router, limit: u64, redis: SocketAddr) -> Fallible<Router> {
        let policy = |algorithm: Algorithm| algorithm.policy(self.name(), limit);
        Ok(match self {
            Counting::CheckThenAct => check_then_act::layer(app, limit, redis).await?,
            Counting::Memory => redis_rl::layer(app, Limiter::in_memory(), policy(Algorithm::EXACT)?),
            Counting::RedisRl(algorithm) => {
                // The one whose answers nobody takes for a decision of Redis.
                let limiter = redis_rl::connect(redis, Outage::Closed).await?;
                redis_rl::layer(app, limiter, policy(algorithm)?)
            }
            Counting::Direct | Counting::Leased => {
                let bucket = Policy::token_bucket(self.name(), limit, Rate::per_second(limit))?;
                let policy = if matches!(self, Counting::Leased) { bucket.leased()? } else { bucket };
                redis_rl::layer(app, redis_rl::connect(redis, Outage::Closed).await?, policy)
            }
            Counting::Through(outage) => {
                redis_rl::layer(app, redis_rl::connect(redis, outage).await?, policy(Algorithm::EXACT)?)
            }
        })
    }
}
