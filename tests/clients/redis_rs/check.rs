use std::error::Error;
use std::time::Duration;

use redis::aio::ConnectionLike;
use tokio::time::timeout;

pub enum Checked {
    Allowed,
    /// Answer 429, with this many seconds as `Retry-After`, if any.
    Denied {
        retry_after: Option<u64>,
    },
}

pub async fn check(
    redis: &mut impl ConnectionLike,
    user: &str,
    capacity: u64,
    rate: &str,
    cost: u64,
) -> Result<Checked, Box<dyn Error + Send + Sync>> {
    let mut command = redis::cmd("RL.TOKENBUCKET");
    command.arg(format!("limit:user:{user}")).arg(capacity).arg(rate).arg(cost);
    let reply = timeout(Duration::from_millis(250), command.query_async(redis)).await??;
    let (allowed, _limit, _remaining, retry_after_ms, _reset_ms): (bool, u64, u64, i64, u64) = reply;
    if allowed {
        return Ok(Checked::Allowed);
    }
    // -1: never, so there is nothing to wait for.
    let retry_after = u64::try_from(retry_after_ms).ok().map(|ms| ms.div_ceil(1000).max(1));
    Ok(Checked::Denied { retry_after })
}
