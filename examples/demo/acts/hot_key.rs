//! Act 5: one bucket for all requests, asked for each of them, and leased.

use std::time::Duration;

use crate::Fallible;
use crate::checks::{self, Faults, Tally};
use crate::clock::Moment;
use crate::fleet::Fleet;
use crate::limiters::Counting;
use crate::redis_server::RedisServer;
use crate::result::hot_key::HotKeyResult;
use crate::traffic::{self, Load};

/// What the bucket holds, and what flows back in a second.
pub const BUCKET: u64 = 300;
/// Three times as much as flows back, for three seconds.
const LOAD: Load = Load { requests: 2_700, concurrency: 64, every: Duration::from_micros(1_111) };

pub async fn play(redis: &RedisServer) -> Fallible<Vec<HotKeyResult>> {
    println!("\nact 5  A bucket that all requests share: {BUCKET} at once, {BUCKET} a second flow back.");
    let direct = run(Counting::Direct, redis).await?;
    let mut leased = run(Counting::Leased, redis).await?;
    // A fifth or so, mostly because a bucket this small is soon empty, and each server then asks for what flows back.
    if leased.calls * 2 > direct.calls {
        leased.faults.add(format!("{} calls where {} are made without leases", leased.calls, direct.calls));
    }
    Ok(vec![direct, leased])
}

async fn run(counting: Counting, redis: &RedisServer) -> Fallible<HotKeyResult> {
    let mut connection = redis.connect().await?;
    let fleet = Fleet::start(counting, BUCKET, redis.address()).await?;
    let calls = redis.calls().await?;
    let began = Moment::now(&mut connection).await?;
    let traffic = traffic::send(fleet.address(), LOAD).await?;
    let took = Moment::now(&mut connection).await?.since(began);
    let calls = redis.calls().await? - calls;

    let tally = Tally::of(&traffic);
    let mut faults = Faults::default();
    checks::dealt_out(LOAD.requests, &tally, &mut faults);
    let most = BUCKET + (BUCKET as f64 * took.as_secs_f64()) as u64;
    // A node holds tokens that another could use, and callers that are denied come too soon.
    checks::admitted(most * 7 / 10..=most, &tally, &mut faults);
    let result = HotKeyResult { counting, most, tally, calls, faults };
    result.report();
    Ok(result)
}
