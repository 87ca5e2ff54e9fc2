//! The crate in the place of a server: keys with bytes under them.

use std::collections::HashMap;
use std::convert::Infallible;

use rl_limiter::concurrency::{self, MOST_HOLDERS};
use rl_limiter::layout::{State, Stored};
use rl_limiter::quantity::ArgumentError;
use rl_limiter::{
    Capacity, Concurrency, Cost, Decision, FixedWindow, JointVerdict, LeakyBucket, Limit, Limiter, Micros, Name, Plan,
    Rate, RetryAfter, SlidingLog, SlidingWindow, TokenBucket, Vote, Window,
};

use super::case::{Case, Kind, Request};
use super::expectation::{NEVER, Reply};

/// What there is of the casebook's algorithms.
pub const BUILT: [Kind; 7] = [
    Kind::FixedWindow,
    Kind::SlidingWindow,
    Kind::SlidingLog,
    Kind::TokenBucket,
    Kind::LeakyBucket,
    Kind::Concurrency,
    Kind::Release,
];

/// States by key. Nothing is kept of a state but its bytes.
#[derive(Clone)]
pub struct Shelf {
    states: HashMap<Vec<u8>, Vec<u8>>,
    collects: bool,
}

impl Shelf {
    /// One that drops every key the moment it is unused if `collects` is set, else none ever: that must make no
    /// difference.
    pub fn new(collects: bool) -> Self {
        Self { states: HashMap::new(), collects }
    }

    /// Answers a call at `now`, in µs since the Unix epoch.
    pub fn call(&mut self, request: &Request, now: i64) -> Reply {
        self.try_call(request, Micros::saturating(now)).unwrap_or_else(Reply::Error)
    }

    fn try_call(&mut self, request: &Request, now: Micros) -> Result<Reply, String> {
        let limit = || Limit::parse("limit", request.most.as_bytes()).map_err(refused);
        let capacity = || Capacity::parse("capacity", request.most.as_bytes()).map_err(refused);
        let window = || Window::parse("window", request.pace.as_bytes()).map_err(refused);
        let rate = || Rate::parse("rate", request.pace.as_bytes()).map_err(refused);
        match request.kind {
            Kind::FixedWindow => self.decide(FixedWindow::new(limit()?, window()?), request, now),
            Kind::SlidingWindow => self.decide(SlidingWindow::new(limit()?, window()?), request, now),
            Kind::TokenBucket => self.decide(TokenBucket::new(capacity()?, rate()?), request, now),
            Kind::LeakyBucket => self.decide(LeakyBucket::new(capacity()?, rate()?), request, now),
            Kind::SlidingLog => self.decide_log(SlidingLog::new(limit()?, window()?), request, now),
            Kind::Concurrency => {
                let ttl = Window::parse("ttl", request.pace.as_bytes()).map_err(refused)?;
                self.decide_place(Concurrency::new(limit()?, ttl), request, now)
            }
            Kind::Release => self.release(request, now),
            // Another algorithm goes here and into `BUILT`; the test then tells which cases it frees.
        }
    }

    fn decide<L: Limiter>(&mut self, limiter: L, request: &Request, now: Micros) -> Result<Reply, String> {
        let cost = Cost::parse("cost", request.cost.as_bytes()).map_err(refused)?;
        let state = match self.stored(&request.key, now)? {
            Some(other) if other.is_unused(now) => None,
            Some(Stored::State(state)) => Some(L::State::try_from(state).map_err(|other| wrong_type(other.kind()))?),
            Some(other) => return Err(wrong_type(other.kind())),
            None => None,
        };
        let outcome = limiter.decide(state, now, cost);
        if let Some(next) = outcome.next {
            self.states.insert(request.key.clone(), next.into().encode().to_vec());
        }
        Ok(Reply::Decision(integers(outcome.decision)))
    }

    fn decide_log(&mut self, limiter: SlidingLog, request: &Request, now: Micros) -> Result<Reply, String> {
        let cost = Cost::parse("cost", request.cost.as_bytes()).map_err(refused)?;
        let log = match self.stored(&request.key, now)? {
            Some(other) if other.is_unused(now) => None,
            Some(Stored::SlidingLog(log)) => Some(log),
            Some(other) => return Err(wrong_type(other.kind())),
            None => None,
        };
        let outcome = limiter.decide(log, now, cost, u32::MAX).map_err(|full| format!("ERR {full:?}"))?;
        if let Some(plan) = outcome.next {
            self.carry_out(&request.key, &plan);
        }
        Ok(Reply::Decision(integers(outcome.decision)))
    }

    /// Asks the limits of the case that has several: what the one is told that is named.
    pub fn call_several(&mut self, now: i64) -> Reply {
        let now = Micros::saturating(now);
        let votes = Case::SEVERAL.map(|(key, limit, window)| {
            let limit = Limit::parse("limit", limit.as_bytes()).expect("a limit");
            let limiter = FixedWindow::new(limit, Window::parse("window", window.as_bytes()).expect("a window"));
            let state = match self.stored(key.as_bytes(), now) {
                Ok(Some(Stored::State(state))) => state.try_into().ok(),
                _ => None,
            };
            limiter.judge::<_, Infallible>(state, now, Cost::ONE, |state| state)
        });
        let verdict = JointVerdict::of(votes.iter().map(Vote::summary));
        let outcomes = votes.iter().filter_map(|vote| vote.outcome(verdict.allowed).ok());
        for ((key, ..), outcome) in Case::SEVERAL.iter().zip(outcomes.clone()) {
            if let Some(next) = outcome.next {
                self.states.insert(key.as_bytes().to_vec(), State::from(*next).encode().to_vec());
            }
        }
        let named = outcomes.map(|outcome| outcome.decision).nth(verdict.index);
        Reply::Decision(integers(named.expect("as many outcomes as limits")))
    }

    fn decide_place(&mut self, limiter: Concurrency, request: &Request, now: Micros) -> Result<Reply, String> {
        let cost = Cost::parse("cost", request.cost.as_bytes()).map_err(refused)?;
        let holder = Name::parse("holder", request.holder.as_bytes()).map_err(refused)?;
        let asked = concurrency::Request { cost, ..concurrency::Request::of(holder) };
        let holders = self.holders(&request.key, now)?;
        let outcome = limiter.decide(holders, now, asked, MOST_HOLDERS).map_err(|full| format!("ERR {full:?}"))?;
        if let Some(plan) = outcome.next {
            self.carry_out(&request.key, &plan);
        }
        Ok(Reply::Decision(integers(outcome.decision)))
    }

    fn release(&mut self, request: &Request, now: Micros) -> Result<Reply, String> {
        let holder = Name::parse("holder", request.holder.as_bytes()).map_err(refused)?;
        let released = self.holders(&request.key, now)?.map(|holders| holders.release(now, holder));
        let (units, plan) = released.unwrap_or((0, None));
        if let Some(plan) = plan {
            self.carry_out(&request.key, &plan);
        }
        Ok(Reply::Plain(units.into()))
    }

    fn holders(&mut self, key: &[u8], now: Micros) -> Result<Option<concurrency::State<'_>>, String> {
        match self.stored(key, now)? {
            Some(other) if other.is_unused(now) => Ok(None),
            Some(Stored::Concurrency(holders)) => Ok(Some(holders)),
            Some(other) => Err(wrong_type(other.kind())),
            None => Ok(None),
        }
    }

    fn carry_out(&mut self, key: &[u8], plan: &impl Plan) {
        let mut bytes = self.states.remove(key).unwrap_or_default();
        if plan.leaves_nothing() {
            return;
        }
        if plan.fits() {
            plan.carry_out(&mut bytes);
        } else {
            bytes = plan.make(&bytes);
        }
        self.states.insert(key.to_vec(), bytes);
    }

    /// What a look with the remembered parameters is told, if there is something to look at.
    pub fn peek(&self, key: &[u8], now: i64) -> Option<Reply> {
        let state = Stored::read(self.bytes(key)?).ok()?;
        Some(Reply::Decision(integers(state.peek(Micros::saturating(now), Cost::ONE))))
    }

    /// Whether there is a state under the key at `now`.
    pub fn exists(&mut self, key: &[u8], now: i64) -> bool {
        self.stored(key, Micros::saturating(now)).is_ok_and(|stored| stored.is_some())
    }

    /// The bytes under the key, if there are any.
    pub fn bytes(&self, key: &[u8]) -> Option<&[u8]> {
        self.states.get(key).map(Vec::as_slice)
    }

    /// Puts any bytes under a key.
    pub fn plant(&mut self, key: &[u8], bytes: &[u8]) {
        self.states.insert(key.to_vec(), bytes.to_vec());
    }

    fn stored(&mut self, key: &[u8], now: Micros) -> Result<Option<Stored<'_>>, String> {
        if self.collects
            && self.bytes(key).is_some_and(|bytes| Stored::read(bytes).is_ok_and(|it| unused_at(&it, now) <= now))
        {
            self.states.remove(key);
        }
        self.bytes(key).map(Stored::read).transpose().map_err(|why| format!("WRONGTYPE {why:?}"))
    }
}

fn unused_at(stored: &Stored<'_>, now: Micros) -> Micros {
    match stored {
        Stored::State(state) => state.unused_at(),
        Stored::SlidingLog(log) => log.unused_at(),
        Stored::Concurrency(holders) => holders.unused_at(now),
        Stored::Leases(leases) => leases.unused_at(),
    }
}

fn wrong_type(kind: &str) -> String {
    format!("WRONGTYPE the key holds a {kind} limiter")
}

fn refused(error: ArgumentError) -> String {
    format!("ERR {error}")
}

/// The reply of a server to a decision.
fn integers(decision: Decision) -> [i64; 5] {
    let integer = |number: u64| i64::try_from(number).expect("at most 2^53 - 1");
    let retry_after = match decision.retry_after {
        RetryAfter::Millis(millis) => integer(millis),
        RetryAfter::Never => NEVER,
    };
    [
        decision.allowed.into(),
        integer(decision.limit),
        integer(decision.remaining),
        retry_after,
        integer(decision.reset_after),
    ]
}
