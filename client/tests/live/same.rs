//! A limiter in memory decides as Redis does.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use redis_rl_client::{Decision, Error, Limiter, Policy, Rate, Source};
use tokio::runtime::Builder;
use tokio::time::advance;

use crate::answers::builder_for;
use crate::support::{NOON, Options, SECOND};

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    /// Below `sides`.
    fn throw(&mut self, sides: u64) -> usize {
        // Knuth's multiplier; the low bits of such a generator are poor, so the high ones are used.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides) as usize
    }
}

fn policies() -> [Policy; 5] {
    let window = Duration::from_secs(10);
    [
        Policy::fixed_window("fixed", 8, window),
        Policy::sliding_window("sliding", 8, window),
        Policy::sliding_log("log", 8, window),
        Policy::token_bucket("bucket", 20, Rate::per(7, Duration::from_secs(3))),
        Policy::leaky_bucket("leaky", 20, Rate::per(7, Duration::from_secs(3))),
    ]
    .map(Result::unwrap)
}

/// All of an answer but who gave it.
fn told(answer: Result<Decision, Error>) -> String {
    match answer {
        Err(error) => format!("{:?}", error.kind()),
        Ok(decision) => {
            assert!(matches!(decision.source, Source::Redis | Source::Memory), "{decision:?}");
            let Decision { allowed, limit, remaining, retry_after, reset_after, delay, .. } = decision;
            format!("{allowed} {limit} {remaining:?} {retry_after:?} {reset_after:?} {delay:?}")
        }
    }
}

#[test]
fn a_limiter_in_memory_decides_as_redis_does() {
    const CALLS: usize = 6_000;

    // The one waits for a real server, which in paused time would let the time of the other run on.
    let real = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let paused = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();

    let mut server = Options::new().with_clock().start();
    let in_redis = builder_for(&server).deny_cache(false).connect_lazy().unwrap();
    let noon = UNIX_EPOCH + Duration::from_micros(NOON.unsigned_abs());
    let in_memory = paused.block_on(async { Limiter::in_memory_at(noon) });

    let mut dice = Dice(42);
    let mut kinds_of_answers = BTreeSet::new();
    for call in 0..CALLS {
        let step = [0, 0, 0, 0, 0, 1, 1_000, 250_001, SECOND.unsigned_abs(), 4 * SECOND.unsigned_abs()][dice.throw(10)];
        server.clock().advance(step.cast_signed());
        paused.block_on(advance(Duration::from_micros(step)));

        let policy = &policies()[dice.throw(5)];
        let subject = ["alice", "bob"][dice.throw(2)];
        let (what, units) = (dice.throw(10), dice.throw(8) as u64);
        let age = (dice.throw(2) == 0).then(|| Duration::from_micros(dice.throw(5_000_000) as u64));
        let ask = async |limiter: &Limiter| match what {
            0 => told(limiter.peek(policy, subject).await),
            1 => told(limiter.refund(policy, subject, units, age).await),
            2 => match limiter.debit(policy, subject, 3 * units).await {
                Ok(debit) => format!("{} {}", told(Ok(debit.decision)), debit.rest),
                Err(error) => told(Err(error)),
            },
            _ => told(limiter.try_check_n(policy, subject, units).await),
        };
        let (expected, seen) = (real.block_on(ask(&in_redis)), paused.block_on(ask(&in_memory)));
        assert_eq!(seen, expected, "call {call}: {} {subject}, {what} {units} {age:?}", policy.name());
        kinds_of_answers.insert((policy.name().to_owned(), what.min(3), seen.starts_with("true")));
    }
    assert!(kinds_of_answers.len() >= 32, "too few kinds of answers came up: {kinds_of_answers:?}");
}
