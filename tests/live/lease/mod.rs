//! Leases: nodes that hold slices of a token bucket.

mod numbers;
mod rows;
mod world;

use redis::Connection;

use crate::support::ask;

/// The six integers of a lease: holding, free, outstanding, retry_after_ms, ttl_ms, nodes.
fn lease(redis: &mut Connection, line: &str) -> [i64; 6] {
    let reply: Vec<i64> = ask(redis, &format!("RL.LEASE {line}"));
    reply.try_into().unwrap_or_else(|reply| panic!("{line}: {reply:?} are not six integers"))
}
