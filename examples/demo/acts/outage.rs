//! Act 4: Redis is killed while a user sends requests, and comes back.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use redis_rl_client::Outage;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Fallible;
use crate::checks::{self, Faults, Tally};
use crate::clock::Moment;
use crate::fleet::{Fleet, SERVERS};
use crate::http_client::http_client;
use crate::limiters::Counting;
use crate::limiters::algorithm::Algorithm;
use crate::options::Options;
use crate::redis_server::RedisServer;
use crate::result::outage::OutageResult;
use crate::traffic::{self, Load, Outcome, Traffic, ask};

/// The user's pace. Redis is away for hundreds of milliseconds, in which the servers go from failing calls to making none.
const EVERY: Duration = Duration::from_millis(2);
/// An answer without Redis takes no longer than one with it, but slow machines run this too.
const SLOWEST_ANSWER: Duration = Duration::from_secs(1);
/// The servers look ten times a second whether Redis is back.
const BACK_WITHIN: Duration = Duration::from_secs(1);
const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);
/// A user whose requests show whether a server is back on Redis.
const PROBE: &str = "probe";

pub async fn play(options: &Options, redis: &mut RedisServer) -> Fallible<Vec<OutageResult>> {
    println!("\nact 4  Redis is killed (SIGKILL), and started again with its append-only file. While it is away:");
    let mut results = Vec::new();
    for outage in [Outage::Open, Outage::Closed, Outage::LocalShare] {
        results.push(run(outage, options, redis).await?);
    }
    Ok(results)
}

/// How many requests are sent while Redis is up, away, and up again. Each number is a multiple of that of the servers.
///
/// No request is in flight when Redis is killed: nobody could say whether it was counted. The first part leaves some of the
/// limit for the last one; the second is more than the limit, the last more than what is left of it.
struct Parts {
    before: u64,
    away: u64,
    after: u64,
}

impl Parts {
    fn of(options: &Options) -> Self {
        let servers = SERVERS.len() as u64;
        let rounds = options.requests / servers;
        let before = (options.limit * 3 / 5).div_ceil(servers).min(options.limit / servers);
        let after = rounds / servers;
        let away = rounds - before - after;
        Parts { before: before * servers, away: away * servers, after: after * servers }
    }
}

async fn run(outage: Outage, options: &Options, redis: &mut RedisServer) -> Fallible<OutageResult> {
    let limit = options.limit;
    let parts = Parts::of(options);
    let fleet = Fleet::start(Counting::Through(outage), limit, redis.address()).await?;
    let send = async |requests| {
        let load = Load { requests, concurrency: options.concurrency, every: EVERY };
        traffic::send(fleet.address(), load).await
    };

    let began = Moment::now(&mut redis.connect().await?).await?;
    let before = send(parts.before).await?;
    redis.kill().await?;
    let away = send(parts.away).await?;
    redis.start_again().await?;
    let back_after = back_on_redis(&fleet).await?;
    let after = send(parts.after).await?;
    let ended = Moment::now(&mut redis.connect().await?).await?;

    let mut faults = Faults::default();
    let tallies = [&before, &away, &after].map(Tally::of);
    for (sent, tally) in [parts.before, parts.away, parts.after].into_iter().zip(&tallies) {
        checks::dealt_out(sent, tally, &mut faults);
    }
    without_redis(outage, limit, &away, &tallies[1], &mut faults);
    if back_after > BACK_WITHIN {
        faults.add(format!("a server was back on Redis only after {} ms", back_after.as_millis()));
    }

    let left = limit - parts.before;
    checks::admitted(parts.before..=parts.before, &tallies[0], &mut faults);
    checks::admitted(left..=left, &tallies[2], &mut faults);
    let slowest_away = away.slowest();
    // Redis must have counted on as if it had never been away.
    let by_redis = before.and(after);
    checks::headers(limit, &by_redis, &mut faults);
    checks::each_remainder_once(limit, &by_redis, &mut faults);
    checks::waits(Algorithm::EXACT.waits(limit, began, ended), &by_redis, &mut faults);

    let [before, away, after] = tallies;
    let result = OutageResult { outage, limit, before, away, after, slowest_away, back_after, faults };
    result.report();
    Ok(result)
}

/// What must be true of the answers while Redis is away.
fn without_redis(outage: Outage, limit: u64, traffic: &Traffic, tally: &Tally, faults: &mut Faults) {
    // Each server rounds its part down, but to 1 at least.
    let part = (limit / SERVERS.len() as u64).max(1);
    let expected = tally.sent.map(|sent| match outage {
        Outage::Open => sent,
        Outage::Closed => 0,
        Outage::LocalShare => sent.min(part),
    });
    checks::admitted_by_each(expected, tally, faults);
    let right_refusal = |outcome: &Outcome| match outage {
        Outage::Open => false,
        Outage::Closed => matches!(outcome, Outcome::Unavailable { .. }),
        Outage::LocalShare => matches!(outcome, Outcome::TooMany { .. }),
    };
    checks::told_without_redis(right_refusal, traffic, faults);
    checks::answered_within(SLOWEST_ANSWER, traffic, faults);
}

/// How long it takes until each server decides by Redis again.
async fn back_on_redis(fleet: &Fleet) -> Fallible<Duration> {
    let mut servers: JoinSet<_> = fleet.servers().map(decides_by_redis_after).collect();
    let mut longest = Duration::ZERO;
    while let Some(after) = servers.join_next().await {
        longest = longest.max(after??);
    }
    Ok(longest)
}

/// From now to the first request that the server asks Redis about. What Redis then takes, for its disk, does not count.
async fn decides_by_redis_after(server: SocketAddr) -> Fallible<Duration> {
    let (client, began) = (http_client(), Instant::now());
    loop {
        let asked_after = began.elapsed();
        // A server that says what is left has it from Redis.
        if ask(&client, server, PROBE).await?.budget.is_some() {
            return Ok(asked_after);
        }
        if asked_after > GIVEN_UP_AFTER {
            return Err("a server did not go back to Redis".into());
        }
        sleep(Duration::from_millis(5)).await;
    }
}
