//! One bucket's lease: what this node holds of it, and when it asks for more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rl_limiter::lease::{Holding, Statement};
use rl_limiter::{Decision, Micros, RetryAfter, TokenBucket};
use tokio::sync::Notify;

use super::demand::Demand;
use super::round_trip::RoundTrip;
use super::size::{Conditions, Size};
use crate::error::Error;
use crate::servers::Grant;
use crate::table::Passing;

/// What nobody asked about for so long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// The least time between two looks at a lease.
const SHORTEST_LOOK: Duration = Duration::from_millis(50);
/// Looks are at most as far apart as a lease is long.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// Where Redis refuses to lease for reasons that stay, such as a missing permission, it decides each request for so long.
const AFTER_A_FAULT: Duration = Duration::from_secs(60);
/// After a call that failed no other follows sooner.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// What this node holds of one bucket. Times are this process's, since the limiter's clock began.
pub(crate) struct Lease {
    /// Its key.
    pub key: Box<str>,
    /// By what Redis knows who holds it: fresh for each lease, so none inherits what another had.
    pub node: String,
    /// The policy's name.
    pub policy: Arc<str>,
    bucket: TokenBucket,
    /// Capacity and rate as the command takes them.
    pub arguments: Arc<[String; 2]>,
    round_trip: Arc<RoundTrip>,
    /// Until when it is remembered, in microseconds of the wall clock.
    over_at: AtomicU64,
    state: Mutex<State>,
    /// Told when a call ends.
    ended: Notify,
}

struct State {
    holding: Holding,
    /// The number of the newest call.
    seq: u64,
    /// Until when the call that is under way is waited for.
    until: Option<Duration>,
    demand: Demand,
    /// Units that were asked for in vain since the newest call was sent.
    missed: u64,
    last_asked: Duration,
    /// Whether tokens are leased at all.
    is_on: bool,
    size: Size,
    /// By the last reply.
    nodes: u64,
    free: u64,
    /// No call until then: there is nothing to be had, …
    nothing_until: Duration,
    /// … or it would fail.
    fails_until: Duration,
    /// Nothing is leased until then.
    refused_until: Duration,
    error: Option<Error>,
    /// What was held when calls began to fail, until that is accounted for.
    held_at_failure: u64,
    /// When its keeper last looked at it.
    kept_at: Option<Duration>,
    /// What metrics were told.
    told: u64,
}

/// What a lease says to a check.
pub(crate) enum Take {
    /// It is allowed, and this is what it is told.
    Spent { decision: Decision, seq: u64 },
    /// There is nothing to be had.
    Denied(Decision),
    /// Redis is to be asked.
    Direct,
    /// Tokens have to be fetched.
    Wait,
}

/// A call that is to be sent.
pub(crate) struct Call {
    pub statement: Statement,
    pub size: Size,
}

/// What a keeper is to do.
pub(crate) enum Look {
    /// Come again.
    Later(Duration),
    /// Ask, and come again.
    Renew(Call, Duration),
    /// Give all back, and go.
    GiveBack(Call),
    /// Go.
    End,
}

impl Passing for Arc<Lease> {
    fn over_at(&self) -> Micros {
        Micros::new(self.over_at.load(Ordering::Relaxed)).unwrap_or(Micros::MAX)
    }
}

impl Lease {
    pub fn new(
        key: &str,
        node: String,
        policy: Arc<str>,
        bucket: TokenBucket,
        arguments: Arc<[String; 2]>,
        round_trip: &Arc<RoundTrip>,
        now: Duration,
    ) -> Self {
        let size = Size::of(bucket, Conditions { demand: 0.0, round_trip: round_trip.usual(), nodes: 1 });
        let state = State {
            holding: Holding::new(),
            seq: 0,
            until: None,
            demand: Demand::new(now),
            missed: 0,
            last_asked: now,
            is_on: false,
            size,
            nodes: 1,
            free: bucket.capacity().get(),
            nothing_until: Duration::ZERO,
            fails_until: Duration::ZERO,
            refused_until: Duration::ZERO,
            error: None,
            held_at_failure: 0,
            kept_at: None,
            told: 0,
        };
        Self {
            key: key.into(),
            node,
            policy,
            bucket,
            arguments,
            round_trip: Arc::clone(round_trip),
            over_at: AtomicU64::new(Micros::MAX.get()),
            state: Mutex::new(state),
            ended: Notify::new(),
        }
    }

    /// Whether it is of a bucket with these parameters.
    pub fn is_of(&self, bucket: TokenBucket) -> bool {
        self.bucket == bucket
    }

    /// Remembers it for a while from now on.
    pub fn remember(&self, now: Micros) {
        let over = now.get().saturating_add(FORGOTTEN_AFTER.as_micros() as u64);
        self.over_at.store(over, Ordering::Relaxed);
    }

    /// Spends what is held for a check of `cost` that is made now, and says whether more is to be fetched.
    pub fn ask_for(&self, now: Duration, cost: u64) -> (Take, Option<Call>) {
        let mut state = self.state();
        state.last_asked = now;
        if state.demand.add(now, cost) {
            self.resize(&mut state, now);
        }
        self.take_from(&mut state, now, cost)
    }

    /// The same once more, for a check that has waited.
    pub fn take(&self, now: Duration, cost: u64) -> (Take, Option<Call>) {
        self.take_from(&mut self.state(), now, cost)
    }

    fn take_from(&self, state: &mut State, now: Duration, cost: u64) -> (Take, Option<Call>) {
        if !state.is_on && state.holding.left(now) == 0 {
            return (Take::Direct, None);
        }
        if state.holding.spend(now, cost) {
            let left = state.holding.left(now);
            let decision = self.decision(left.saturating_add(state.free), RetryAfter::Millis(0), true);
            let call = if left <= self.mark(state) { self.call(state, now, 0) } else { None };
            return (Take::Spent { decision, seq: state.seq }, call);
        }
        if now < state.nothing_until {
            let wait = u64::try_from((state.nothing_until - now).as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
            let left = state.holding.left(now).min(cost.saturating_sub(1));
            return (Take::Denied(self.decision(left, RetryAfter::Millis(wait), false)), None);
        }
        if !state.is_on || cost > state.size.tokens {
            return (Take::Direct, None);
        }
        state.missed = state.missed.saturating_add(cost);
        (Take::Wait, self.call(state, now, cost))
    }

    /// With so few tokens more are fetched: hardly any call takes longer than these last.
    fn mark(&self, state: &State) -> u64 {
        let meanwhile = 1.5 * state.demand.per_second() * self.round_trip.longest().as_secs_f64();
        (meanwhile as u64).min(state.size.tokens / 2)
    }

    /// The call that is to be sent now, if one is.
    fn call(&self, state: &mut State, now: Duration, cost: u64) -> Option<Call> {
        let is_under_way = state.until.is_some_and(|until| now < until);
        if is_under_way || !state.is_on || now < state.nothing_until || now < state.fails_until {
            return None;
        }
        // Those who wait are served, too, where a demand that has just begun is not yet known.
        let want = state.size.tokens.max(cost).max(state.missed.min(state.size.most));
        Some(state.begin(now, want))
    }

    /// Until when a check may wait for the call under way; `None` if there is none.
    pub fn under_way(&self) -> Option<Duration> {
        self.state().until
    }

    /// Why the last call failed, if one would fail again now.
    pub fn failure(&self, now: Duration) -> Option<Error> {
        let state = self.state();
        state.error.clone().filter(|_| now < state.fails_until)
    }

    /// Waits until a call ends that is under way when this is first polled or enabled.
    pub fn ended(&self) -> tokio::sync::futures::Notified<'_> {
        self.ended.notified()
    }

    /// A call was sent, and is waited for until then.
    pub fn sent(&self, until: Duration) {
        self.state().until = Some(until);
    }

    /// What came of a call.
    pub fn heard(&self, seq: u64, now: Duration, heard: Result<Grant, Error>) {
        let mut state = self.state();
        if seq != state.seq {
            return;
        }
        state.until = None;
        match heard {
            Ok(grant) => {
                state.error = None;
                state.held_at_failure = 0;
                if state.holding.hear(seq, grant.holding, grant.ttl) {
                    state.nodes = grant.nodes;
                    state.free = grant.free;
                    let pause = state.size.length.mul_f64(0.5 + fastrand::f64());
                    let wait = match grant.retry_after {
                        RetryAfter::Millis(0) => Duration::ZERO,
                        RetryAfter::Millis(millis) => Duration::from_millis(millis).max(pause),
                        RetryAfter::Never => pause,
                    };
                    state.nothing_until = if wait.is_zero() { Duration::ZERO } else { now.saturating_add(wait) };
                    self.resize(&mut state, now);
                }
            }
            Err(error) if !error.is_outage() => {
                state.refused_until = now + AFTER_A_FAULT;
                state.is_on = false;
            }
            Err(error) => {
                if state.error.is_none() {
                    state.held_at_failure = state.holding.left(now);
                }
                state.error = Some(error);
                state.fails_until = now + FAILURE_PAUSE;
            }
        }
        drop(state);
        self.ended.notify_waiters();
    }

    /// What was held when calls began to fail, told once.
    pub fn held_at_failure(&self) -> u64 {
        std::mem::take(&mut self.state().held_at_failure)
    }

    /// Takes a spend back, if it was made since the newest call was sent: what was spent before is gone from what Redis knows.
    pub fn restore(&self, now: Duration, seq: u64, tokens: u64) -> bool {
        self.state().holding.restore(now, seq, tokens)
    }

    /// Whether it needs a keeper, as it does when tokens are leased and none has looked at it for long.
    pub fn needs_keeper(&self, now: Duration) -> bool {
        let mut state = self.state();
        let is_kept = state.kept_at.is_some_and(|at| now < at + 2 * LONGEST_LOOK);
        let needs = state.is_on && !is_kept;
        if needs {
            state.kept_at = Some(now);
        }
        needs
    }

    /// What its keeper is to do now.
    pub fn look(&self, now: Duration) -> Look {
        let mut state = self.state();
        state.kept_at = Some(now);
        if state.demand.add(now, 0) {
            self.resize(&mut state, now);
        }
        let pause = state.size.length.max(SHORTEST_LOOK);
        let is_idle = now.saturating_sub(state.last_asked) > pause;
        if is_idle || !state.is_on {
            state.is_on = false;
            state.kept_at = None;
            return match state.holding.left(now) {
                0 => Look::End,
                _ => Look::GiveBack(state.begin(now, 0)),
            };
        }
        // Half of the time that Redis keeps the row has passed.
        let is_old = state.holding.deadline() < now + state.size.ttl / 2 && state.holding.left(now) > 0;
        match is_old.then(|| self.call(&mut state, now, 0)).flatten() {
            Some(call) => Look::Renew(call, pause),
            None => Look::Later(pause),
        }
    }

    /// Says that it gives all back, where there is something.
    pub fn leave(&self, now: Duration) -> Option<Call> {
        let mut state = self.state();
        state.is_on = false;
        (state.holding.left(now) > 0).then(|| state.begin(now, 0))
    }

    /// How many more tokens are held than metrics were told, who are told now.
    pub fn more_than_told(&self, now: Duration) -> f64 {
        let mut state = self.state();
        let left = state.holding.left(now);
        let more = left as f64 - state.told as f64;
        state.told = left;
        more
    }

    fn resize(&self, state: &mut State, now: Duration) {
        let conditions =
            Conditions { demand: state.demand.per_second(), round_trip: self.round_trip.usual(), nodes: state.nodes };
        state.size = Size::of(self.bucket, conditions);
        state.is_on = now >= state.refused_until && state.size.pays(state.is_on);
    }

    /// As of a bucket of which so many tokens are left; those of other nodes count as used.
    fn decision(&self, left: u64, retry_after: RetryAfter, allowed: bool) -> Decision {
        let (capacity, rate) = (self.bucket.capacity().get(), self.bucket.rate());
        let remaining = left.min(capacity);
        let parts = u128::from(capacity - remaining) * u128::from(rate.micros());
        let reset_after = parts.div_ceil(u128::from(rate.units()) * 1_000);
        let reset_after = u64::try_from(reset_after).unwrap_or(u64::MAX);
        Decision { allowed, limit: capacity, remaining, retry_after, reset_after }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin(&mut self, now: Duration, want: u64) -> Call {
        let statement = self.holding.ask(now, want);
        self.seq = statement.seq;
        self.missed = 0;
        // Until the one who sends it says for how long it is waited for.
        self.until = Some(now + FAILURE_PAUSE);
        Call { statement, size: self.size }
    }
}
