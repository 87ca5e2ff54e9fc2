//! Acts 1 to 3: the same traffic on the same fleet, counted in another way each time.

pub mod hot_key;
pub mod outage;

use std::time::Duration;

use crate::Fallible;
use crate::checks::{self, Faults, Tally};
use crate::clock::{Moment, away_from_the_edge};
use crate::fleet::Fleet;
use crate::limiters::Counting;
use crate::limiters::algorithm::Algorithm;
use crate::options::Options;
use crate::redis_server::RedisServer;
use crate::result::RunResult;
use crate::traffic::{self, Load};
use crate::work::{LONGEST_MS, SHORTEST_MS};

pub async fn play(options: &Options, redis: &RedisServer) -> Fallible<Vec<RunResult>> {
    let stage = Stage { options, redis };
    let mut results = Vec::new();

    println!("\nact 1  Each server counts in its own memory.");
    results.push(stage.each_alone().await?);

    println!("\nact 2  Each server reads the count in Redis, compares, serves, and then counts up");
    println!("       (to serve takes {SHORTEST_MS} to {LONGEST_MS} ms, in every act).");
    results.push(stage.check_then_act().await?);

    println!("\nact 3  redis-rl: one call checks and counts in one step.");
    for algorithm in Algorithm::ALL {
        results.push(stage.redis_rl(algorithm).await?);
    }
    Ok(results)
}

/// What every act has at hand.
struct Stage<'a> {
    options: &'a Options,
    redis: &'a RedisServer,
}

impl Stage<'_> {
    /// A server knows its own share only, and admits up to the whole limit of it.
    async fn each_alone(&self) -> Fallible<RunResult> {
        let mut result = self.run(1, "each server for itself", Counting::Memory).await?;
        let shares = checks::shares(self.options.requests);
        let admitted = shares.map(|share| share.min(self.options.limit)).iter().sum();
        checks::admitted(admitted..=admitted, &result.tally, &mut result.faults);
        Ok(result)
    }

    /// Even with nothing to do between check and act, nine runs in ten admit too many; the work makes it ten.
    async fn check_then_act(&self) -> Fallible<RunResult> {
        let mut result = self.run(2, "GET, compare, INCR", Counting::CheckThenAct).await?;
        let too_many = self.options.limit + 1..=self.options.requests;
        checks::admitted(too_many, &result.tally, &mut result.faults);
        Ok(result)
    }

    async fn redis_rl(&self, algorithm: Algorithm) -> Fallible<RunResult> {
        let mut redis = self.redis.connect().await?;
        away_from_the_edge(&mut redis).await?;

        let began = Moment::now(&mut redis).await?;
        let mut result = self.run(3, algorithm.command(), Counting::RedisRl(algorithm)).await?;
        let ended = Moment::now(&mut redis).await?;

        let limit = self.options.limit;
        let waits = algorithm.waits(limit, began, ended);
        checks::admitted(limit..=limit, &result.tally, &mut result.faults);
        checks::each_remainder_once(limit, &result.traffic, &mut result.faults);
        checks::waits(waits, &result.traffic, &mut result.faults);
        if algorithm.queues() {
            let took = ended.since(began).as_secs() + 1;
            checks::turns(limit, took, &result.traffic, &mut result.faults);
        }
        Ok(result)
    }

    /// The user's requests through a fresh fleet, with the checks that hold in all acts.
    async fn run(&self, act: u8, who_counts: &'static str, counting: Counting) -> Fallible<RunResult> {
        let Options { requests, limit, concurrency, .. } = *self.options;
        let fleet = Fleet::start(counting, limit, self.redis.address()).await?;
        let load = Load { requests, concurrency, every: Duration::ZERO };
        let traffic = traffic::send(fleet.address(), load).await?;

        let tally = Tally::of(&traffic);
        let mut faults = Faults::default();
        checks::dealt_out(requests, &tally, &mut faults);
        checks::headers(limit, &traffic, &mut faults);
        let result = RunResult { act, who_counts, limit, traffic, tally, faults };
        result.report();
        Ok(result)
    }
}
