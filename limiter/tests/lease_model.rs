//! Random calls to a bucket with leases, each answer held against a model that follows the promise word by word.
//!
//! `LEASE_SEED` in the environment repeats a run, `LEASE_RUNS` sets how many there are: `LEASE_RUNS=5000 cargo test --release`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "lease/model.rs"]
mod model;
mod sequence;
#[path = "lease/subject.rs"]
#[allow(dead_code)]
mod subject;

use std::time::{SystemTime, UNIX_EPOCH};

use model::{Model, NEVER, Params, Said};
use num_bigint::BigInt;
use rl_limiter::lease::{Answer, Ask, Seq, Ttl};
use rl_limiter::{Age, Cost, Decision, Micros, Name, Rate, RetryAfter, TokenBucket};
use sequence::Random;
use subject::Subject;

/// Calls of a run.
const CALLS: u64 = 40;
const NOON: u64 = 1_796_040_000_000_000;

/// What may happen besides calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditions {
    Steady,
    Changing,
    Stepping,
}

struct Run {
    random: Random,
    conditions: Conditions,
    now: u64,
    subject: Subject,
    model: Model,
    params: Params,
    seq: u64,
    last: Option<Said>,
}

impl Run {
    fn new(seed: u64, conditions: Conditions) -> Self {
        let mut random = Random(seed);
        let params = any_params(&mut random);
        Self {
            random,
            conditions,
            now: NOON,
            subject: Subject::default(),
            model: Model::default(),
            params,
            seq: 0,
            last: None,
        }
    }

    fn step(&mut self) {
        self.pass_time();
        if self.conditions != Conditions::Steady && self.random.one_in(4) {
            self.params = match self.random.below(3) {
                0 => any_params(&mut self.random),
                1 => Params { capacity: any_capacity(&mut self.random), ..self.params.clone() },
                _ => Params { rate: any_params(&mut self.random).rate, ..self.params.clone() },
            };
        }
        let params =
            if self.random.one_in(12) { Params { capacity: 0, ..self.params.clone() } } else { self.params.clone() };
        let limiter = limiter(&params);
        let now = Micros::new(self.now).unwrap();
        let most = params.capacity.max(1);
        let amount = self.any_amount(most);
        match self.random.below(13) {
            0..=6 => self.lease(&params),
            7..=8 => {
                let told = decision(self.subject.take(limiter, now, cost(amount)));
                assert_eq!(told, self.model.take(self.now, &params, amount), "take {amount}");
            }
            9 => {
                let (told, rest) = self.subject.debit(limiter, now, cost(amount));
                assert_eq!((decision(told), rest), self.model.debit(self.now, &params, amount), "debit {amount}");
            }
            10 => {
                let age = if self.random.one_in(2) { 0 } else { self.random.below(3_000_000) };
                let told = self.subject.refund(now, cost(amount), Age::from_micros(age).unwrap());
                assert_eq!(told.map(decision), self.model.refund(self.now, amount, age), "refund {amount}, age {age}");
            }
            11 if self.random.one_in(4) => {
                self.subject.forget();
                self.model = Model::default();
            }
            _ => {
                let told = self.subject.peek(now, cost(amount)).map(decision);
                let used = self.model.remembered().filter(|_| !self.model.is_unused(self.now)).cloned();
                assert_eq!(told, used.map(|params| self.model.look(self.now, &params, amount)), "peek {amount}");
            }
        }
        assert_eq!(self.subject.outstanding(now), self.model.outstanding(self.now));
        if let Some(unused_at) = self.subject.unused_at()
            && self.random.one_in(4)
            && !self.model.is_later_than(self.now)
        {
            let wait = unused_at.get().saturating_sub(self.now).min(model::FAR);
            assert_eq!(wait, self.model.micros_until_unused(self.now));
        }
    }

    fn lease(&mut self, params: &Params) {
        let most = params.capacity.max(1);
        self.seq += u64::from(!self.random.one_in(8));
        let said = Said {
            // Names of one word and of two: with the first of those the slots become longer.
            node: vec![b'a' + u8::try_from(self.random.below(4)).unwrap(); self.random.pick(&[1, 1, 9])],
            seq: self.seq.max(1),
            have: self.any_amount(most),
            want: self.any_amount(most),
            ttl: self.random.pick(&[10_000, 10_000, 50_001, 1_000_000, 1_234_567, 3_600_000_000]),
            min: if self.random.one_in(2) { self.any_amount(most) } else { 0 },
        };
        // Now and then the same wish again: a node may be put off once in a row only.
        let said = match self.last.take().filter(|_| self.random.one_in(3)) {
            Some(last) => Said { seq: self.seq.max(1), ..last },
            None => said,
        };
        self.last = Some(said.clone());
        let ask = Ask {
            node: Name::new(&said.node).unwrap(),
            seq: Seq::new(said.seq).unwrap(),
            have: cost(said.have),
            want: cost(said.want),
            ttl: Ttl::from_micros(said.ttl).unwrap(),
            min: cost(said.min),
        };
        let told = self.subject.lease(limiter(params), Micros::new(self.now).unwrap(), &ask);
        assert_eq!(answer(told), self.model.lease(self.now, params, &said), "{said:?}");
    }

    fn pass_time(&mut self) {
        let most = self.random.pick(&[1, 1_000, 100_000, 2_000_000, 60_000_000]);
        self.now += self.random.below(most);
        if self.random.one_in(12) {
            self.now += self.random.below(7_200_000_000);
        }
        if self.random.one_in(8) {
            // At an expiry, or a microsecond off.
            let next = self.subject.expiries().into_iter().map(Micros::get).find(|at| *at > self.now);
            self.now = next.map_or(self.now, |at| at - 1 + self.random.below(3));
        }
        if self.conditions == Conditions::Stepping && self.random.one_in(6) {
            self.now -= self.random.pick(&[1, 1_000, 500_000, 30_000_000, 3_000_000_000]);
        }
    }

    fn any_amount(&mut self, most: u64) -> u64 {
        match self.random.below(6) {
            0 => 0,
            1 => 1,
            2 => most,
            3 => self.random.below(most.saturating_mul(2)).min((1 << 53) - 1),
            4 => self.random.below(most.min(8) + 1),
            _ => self.random.below(most + 1),
        }
    }
}

fn any_capacity(random: &mut Random) -> u64 {
    random.pick(&[1, 2, 3, 10, 10, 25, 100, 1_000, 1_000_000, (1 << 53) - 1])
}

fn any_params(random: &mut Random) -> Params {
    let (tokens, micros) = random.pick(&[
        (1_u64, 1_000_000_u64),
        (1, 1_000),
        (7, 3_000_000),
        (1_000, 1_000_000),
        (100, 60_000_000),
        (1, 86_400_000_000),
        (999_999_999_999, 1_000_003),
        (3, i64::MAX.unsigned_abs()),
        (i64::MAX.unsigned_abs(), 2),
    ]);
    let rate = model::Exact::new(BigInt::from(tokens), BigInt::from(micros));
    Params { capacity: any_capacity(random), rate }
}

fn limiter(params: &Params) -> TokenBucket {
    let [units, micros] = [params.rate.numer(), params.rate.denom()].map(|term| u64::try_from(term).unwrap());
    TokenBucket::new(cost(params.capacity), Rate::new(units, micros).unwrap())
}

fn cost(amount: u64) -> Cost {
    Cost::new(amount).unwrap()
}

fn retry_after(told: RetryAfter) -> i64 {
    match told {
        RetryAfter::Millis(millis) => i64::try_from(millis).unwrap(),
        RetryAfter::Never => NEVER,
    }
}

fn answer(told: Answer) -> model::Lease {
    model::Lease {
        holding: told.holding,
        free: told.free,
        outstanding: told.outstanding,
        retry_after: retry_after(told.retry_after),
        ttl: told.ttl,
        nodes: told.nodes,
    }
}

fn decision(told: Decision) -> model::Decision {
    model::Decision {
        allowed: told.allowed,
        limit: told.limit,
        remaining: told.remaining,
        retry_after: retry_after(told.retry_after),
        reset: told.reset_after,
    }
}

fn compare(conditions: Conditions) {
    let runs = std::env::var("LEASE_RUNS").map_or(20, |runs| runs.parse().unwrap());
    let first = match std::env::var("LEASE_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into(),
    };
    for seed in first..first + runs {
        let run = || {
            let mut run = Run::new(seed, conditions);
            (0..CALLS).for_each(|_| run.step());
        };
        if std::panic::catch_unwind(run).is_err() {
            panic!("To repeat it: LEASE_SEED={seed}");
        }
    }
}

#[test]
fn a_lease_keeps_its_promise() {
    compare(Conditions::Steady);
}

#[test]
fn a_lease_whose_parameters_change_keeps_its_promise() {
    compare(Conditions::Changing);
}

#[test]
fn a_lease_whose_clock_steps_keeps_its_promise() {
    compare(Conditions::Stepping);
}
