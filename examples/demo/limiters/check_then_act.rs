//! The counter that everybody writes first: read it, compare, and count the request up once it is served. Between the
//! read and the write others have read the same number, and all of them are let in.

use std::net::SocketAddr;
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use crate::Fallible;
use crate::decision::Decision;
use crate::limiters::{WINDOW, key};
use crate::redis_server::connect;

pub struct CheckThenAct {
    limit: u64,
    redis: MultiplexedConnection,
}

impl CheckThenAct {
    pub async fn connect(limit: u64, redis: SocketAddr) -> Fallible<Self> {
        Ok(CheckThenAct { limit, redis: connect(redis).await? })
    }

    /// The check.
    pub async fn decide(&self, user: &str) -> Fallible<Decision> {
        let key = key(user, "check-then-act");
        let (count, left): (Option<u64>, i64) =
            redis::pipe().get(&key).pttl(&key).query_async(&mut self.redis.clone()).await?;
        let count = count.unwrap_or(0);
        // Negative: there is no counter yet, so the window opens with this request.
        let left = u64::try_from(left).map_or(WINDOW, Duration::from_millis);
        let allowed = count < self.limit;
        Ok(Decision {
            allowed,
            limit: self.limit,
            remaining: self.limit.saturating_sub(count + 1),
            retry_after: Some(if allowed { Duration::ZERO } else { left }),
            turn_after: None,
            reset_after: left,
        })
    }

    /// The act.
    pub async fn served(&self, user: &str) -> Fallible<()> {
        let key = key(user, "check-then-act");
        let mut count_up = redis::pipe();
        count_up.incr(&key, 1).ignore();
        count_up.cmd("EXPIRE").arg(&key).arg(WINDOW.as_secs()).arg("NX").ignore();
        Ok(count_up.query_async(&mut self.redis.clone()).await?)
    }
}
