//! The limiter: asks, and decides in every case.

mod acquire;
mod all;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rl_limiter::{Age, Cost, RetryAfter};
use tokio::task::coop::consume_budget;

use crate::builder::{Builder, Settings};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::decision::{Decision, Source};
use crate::deny_cache::DenyCache;
use crate::error::{Error, ErrorKind};
use crate::fallback::{LocalShare, Outage};
use crate::fleet::Fleet;
use crate::key::key;
use crate::lease::{Leases, Spent};
use crate::memory::Memory;
use crate::observe::Observer;
use crate::places::Places;
use crate::policy::Policy;
use crate::rule::Algorithm;
use crate::servers::{Address, Command, Reply, Servers};

/// When to come back while nobody can decide: outages are looked at ten times a second.
const CLOSED_FOR_MILLIS: u64 = 1_000;

/// Checks requests against policies. Cheap to clone; clones share connections and all that is remembered.
///
/// A check costs one round trip to Redis, or none if the policy is [leased](Policy::leased), and never more than the deadline. What Redis denied is denied here for as long as it said,
/// at most a second, without asking again. When Redis can't be asked, the [`Outage`] policy decides.
///
/// Dropping the last clone gives back what is leased, in a task if there is a runtime, and ends its connections and its tasks, those that are just
/// asking when the deadline of that has passed. Guards of [`Limiter::acquire`] live on.
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    backend: Backend,
    settings: Settings,
    clock: Clock,
    deny_cache: DenyCache,
    local_share: LocalShare,
    places: Arc<Places>,
    observer: Observer,
}

enum Backend {
    Redis(Redis),
    Memory(Memory),
}

/// What is done with Redis.
struct Redis {
    calls: Arc<Calls>,
    leases: Arc<Leases>,
    fleet: Option<Arc<Fleet>>,
}

/// What became of a debit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Debit {
    /// What a check of cost 1 would now be told.
    pub decision: Decision,
    /// Units that did not fit any more: a bucket's debt ends at its capacity.
    pub rest: u64,
}

impl Limiter {
    /// For one server, by its URL: `redis://[[user]:password@]host[:port][/database]`. It is spoken to by version 3 of the protocol.
    ///
    /// With the feature `tls` the URL may begin with `rediss://`. The server's certificate must then be for the host in the URL (in a cluster,
    /// for the host that the cluster tells), and signed by somebody whom this machine trusts, or who is in the file that the environment
    /// variable `SSL_CERT_FILE` names; these are read for each new connection. One that can't be trusted counts as no connection. The
    /// cryptography is what the program made rustls' default for the process before, or else ring, which then becomes that.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder::new(Address::Single(url.into()))
    }

    /// For a cluster, by the URLs of some of its nodes; the others are found through them.
    pub fn cluster<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Builder {
        Builder::new(Address::Cluster(urls.into_iter().map(Into::into).collect()))
    }

    /// For the primary that sentinels know under a name, by the URLs of the sentinels. They are asked again when a call fails, and once a
    /// second while there are calls.
    ///
    /// User and password in the URLs are for the sentinels; see [`Builder::primary_login`] for those at the primary.
    pub fn sentinel<U: Into<String>>(urls: impl IntoIterator<Item = U>, name: impl Into<String>) -> Builder {
        Builder::new(Address::Sentinel { urls: urls.into_iter().map(Into::into).collect(), name: name.into() })
    }

    /// For a user's own unit tests: decides by the same algorithms in this process, without Redis. Time is tokio's, so a test that
    /// [pauses](https://docs.rs/tokio/latest/tokio/time/fn.pause.html) it can let hours pass at once. A leased bucket is a bucket here.
    ///
    /// ```
    /// use redis_rl_client::{HOUR, Limiter, Policy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), redis_rl_client::PolicyError> {
    /// let limiter = Limiter::in_memory();
    /// let logins = Policy::sliding_log("logins", 2, HOUR)?;
    /// assert!(limiter.check(&logins, "alice").await.allowed);
    /// assert!(limiter.check(&logins, "alice").await.allowed);
    /// assert!(!limiter.check(&logins, "alice").await.allowed);
    /// assert!(limiter.check(&logins, "bob").await.allowed);
    ///
    /// tokio::time::pause();
    /// tokio::time::advance(HOUR).await;
    /// assert!(limiter.check(&logins, "alice").await.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_memory() -> Self {
        Self::in_memory_at(SystemTime::now())
    }

    /// The same, with a clock that starts at `time`: windows are aligned to it.
    pub fn in_memory_at(time: SystemTime) -> Self {
        let settings = Settings::default();
        let memory = Memory::new(settings.most_local_keys);
        Self::new(Backend::Memory(memory), settings, Clock::starting_at(time), Observer::default())
    }

    pub(crate) fn with_servers(servers: Servers, settings: Settings, observer: Observer) -> Self {
        let (clock, calls) = (Clock::new(), Arc::new(Calls::new(servers, observer.clone())));
        let leases = Arc::new(Leases::new(&calls, clock, settings.deadline, settings.most_local_keys));
        let fleet = settings.fleet.as_ref();
        let fleet = fleet.map(|name| Arc::new(Fleet::new(&calls, &settings.prefix, name, settings.deadline)));
        Self::new(Backend::Redis(Redis { calls, leases, fleet }), settings, clock, observer)
    }

    fn new(backend: Backend, settings: Settings, clock: Clock, observer: Observer) -> Self {
        let most = settings.most_local_keys;
        let (deny_cache, local_share) = (DenyCache::new(most), LocalShare::new(most));
        let places = Arc::default();
        Self(Arc::new(Inner { backend, settings, clock, deny_cache, local_share, places, observer }))
    }

    /// Decides a request of a subject: a user, an API key, an address; any bytes, though not a missing identity, which is nobody
    /// in particular.
    #[must_use = "who is denied must not go on"]
    pub async fn check(&self, policy: &Policy, subject: impl AsRef<[u8]>) -> Decision {
        self.check_n(policy, subject, 1).await
    }

    /// Decides a request that costs `cost` units, from 0 to 2^53 − 1. A cost of 0 takes nothing and is answered as a cost of 1 would be.
    #[must_use = "who is denied must not go on"]
    pub async fn check_n(&self, policy: &Policy, subject: impl AsRef<[u8]>, cost: u64) -> Decision {
        self.check_spending(policy, subject.as_ref(), cost).await.0
    }

    /// Decides as [`Limiter::check`] does, but says why Redis could not be asked instead of falling back.
    pub async fn try_check(&self, policy: &Policy, subject: impl AsRef<[u8]>) -> Result<Decision, Error> {
        self.try_check_n(policy, subject, 1).await
    }

    /// Decides as [`Limiter::check_n`] does, but says why Redis could not be asked instead of falling back.
    pub async fn try_check_n(&self, policy: &Policy, subject: impl AsRef<[u8]>, cost: u64) -> Result<Decision, Error> {
        let key = self.key(policy, subject.as_ref());
        let (decision, _) = self.decide(policy, &key, cost).await?;
        Ok(self.shown(policy, decision))
    }

    /// What a check would be told now, by this policy's numbers, with nothing taken: `remaining` and `reset_after` are those before it.
    pub async fn peek(&self, policy: &Policy, subject: impl AsRef<[u8]>) -> Result<Decision, Error> {
        let key = self.key(policy, subject.as_ref());
        let decision = self.ask(policy, &key, Cost::ZERO).await?;
        Ok(self.answer(policy, decision, self.source()))
    }

    /// Gives back what turned out not to be used, never beyond unused: of `amount` units taken `age` ago, what has not come back by
    /// itself since. Without an age they count as taken just now. What a check of cost 1 is then told.
    ///
    /// Give back only what Redis took (see [`Decision::source`]). Leaky buckets take nothing back: [`ErrorKind::Invalid`]. Is never sent
    /// twice; after [`ErrorKind::Deadline`] it may have happened.
    pub async fn refund(
        &self,
        policy: &Policy,
        subject: impl AsRef<[u8]>,
        amount: u64,
        age: Option<Duration>,
    ) -> Result<Decision, Error> {
        let key = self.key(policy, subject.as_ref());
        let amount = units(amount)?;
        let age = age.map(self::age).transpose()?;
        if policy.rule().queues() {
            return Err(Error::new(ErrorKind::Invalid, "a leaky bucket limiter takes nothing back"));
        }
        let refunded = match &self.0.backend {
            Backend::Memory(memory) => memory.refund(&key, amount, age, self.0.clock.now()),
            Backend::Redis(redis) => {
                let (amount, age) = (amount.get().to_string(), age.map(in_millis));
                let mut arguments = vec![amount.as_str()];
                if let Some(age) = &age {
                    arguments.extend(["AGE", age]);
                }
                let reply = redis.send(Command::new("RL.REFUND", &key, &arguments)).await;
                reply.and_then(|reply| reply.map(|reply| reply.decision()).transpose())
            }
        };
        self.0.deny_cache.forget(&key);
        let decision = self.noted(refunded)?.unwrap_or_else(|| unused(policy));
        Ok(self.answer(policy, decision, self.source()))
    }

    /// Takes `amount` from a token bucket whatever is there, as costs that are known only afterwards are, down to a balance of
    /// −capacity. Other algorithms have no debts: [`ErrorKind::Invalid`].
    ///
    /// Is never sent twice; after [`ErrorKind::Deadline`] it may have happened.
    pub async fn debit(&self, policy: &Policy, subject: impl AsRef<[u8]>, amount: u64) -> Result<Debit, Error> {
        let key = self.key(policy, subject.as_ref());
        let amount = units(amount)?;
        let rule = policy.rule();
        let Algorithm::TokenBucket(bucket) = rule.algorithm else {
            return Err(Error::new(ErrorKind::Invalid, "only a token bucket can be debited"));
        };
        let debited = match &self.0.backend {
            Backend::Memory(memory) => memory.debit(bucket, &key, amount, self.0.clock.now()),
            Backend::Redis(redis) => {
                let [capacity, rate] = &*rule.arguments;
                let amount = amount.get().to_string();
                let command = Command::new("RL.DEBIT", &key, &[capacity, rate, &amount]);
                redis.send(command).await.and_then(|reply| reply.unwrap_or_default().debit())
            }
        };
        let (decision, rest) = self.noted(debited)?;
        Ok(Debit { decision: self.answer(policy, decision, self.source()), rest })
    }

    /// The time by which this limiter's answers are meant: the wall clock's, or that of a limiter in memory.
    #[cfg(feature = "tower")]
    pub(crate) fn wall_clock(&self) -> SystemTime {
        match self.0.backend {
            Backend::Redis(_) => SystemTime::now(),
            Backend::Memory(_) => self.0.clock.wall_clock(),
        }
    }

    /// Waits until Redis is reached.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        match &self.0.backend {
            Backend::Redis(redis) => redis.calls.servers().reach().await,
            Backend::Memory(_) => Ok(()),
        }
    }

    fn key(&self, policy: &Policy, subject: &[u8]) -> String {
        key(&self.0.settings.prefix, subject, policy.name())
    }

    fn source(&self) -> Source {
        match self.0.backend {
            Backend::Redis(_) => Source::Redis,
            Backend::Memory(_) => Source::Memory,
        }
    }

    /// A check, and what it took of a lease.
    async fn check_spending(&self, policy: &Policy, subject: &[u8], cost: u64) -> (Decision, Option<Spent>) {
        let key = self.key(policy, subject);
        let (decision, spent) = match self.decide(policy, &key, cost).await {
            Ok(decided) => decided,
            Err(error) => (self.fall_back(policy, &key, cost, &error), None),
        };
        (self.shown(policy, decision), spent)
    }

    /// From what is leased, from the deny cache, or else by asking.
    async fn decide(&self, policy: &Policy, key: &str, cost: u64) -> Result<(Decision, Option<Spent>), Error> {
        let units = self.noted(units(cost))?;
        if let (Backend::Redis(redis), Some(bucket), 1..) = (&self.0.backend, policy.leased_bucket(), cost)
            && let Some(decided) = redis.leases.decide(policy, bucket, key, cost).await
        {
            return decided.map(|(decision, spent)| (self.answer(policy, decision, Source::Lease), spent));
        }
        Ok((self.decide_alone(policy, key, units).await?, None))
    }

    async fn decide_alone(&self, policy: &Policy, key: &str, units: Cost) -> Result<Decision, Error> {
        let cost = units.get();
        let Inner { deny_cache, clock, .. } = &*self.0;
        let may_cache = self.may_cache(cost);
        let denial = if may_cache { deny_cache.find(key, cost, clock.now()) } else { None };
        if let Some(denial) = denial {
            // Who asks again and again without a pause gets all answers from here, and must let others run.
            consume_budget().await;
            return Ok(self.answer(policy, denial, Source::DenyCache));
        }
        let decision = self.ask(policy, key, units).await?;
        if may_cache {
            deny_cache.remember(key, cost, decision, clock.now());
        }
        Ok(self.answer(policy, decision, self.source()))
    }

    /// Memory needs no cache, and what takes nothing is to see what is.
    fn may_cache(&self, cost: u64) -> bool {
        self.0.settings.deny_cache && cost > 0 && matches!(self.0.backend, Backend::Redis(_))
    }

    async fn ask(&self, policy: &Policy, key: &str, cost: Cost) -> Result<rl_limiter::Decision, Error> {
        let rule = policy.rule();
        let decided = match &self.0.backend {
            Backend::Memory(memory) => memory.decide(rule.algorithm, key, cost, self.0.clock.now()),
            Backend::Redis(redis) => {
                let [limit, pace] = &*rule.arguments;
                let cost = cost.get().to_string();
                let command = Command::new(rule.command(), key, &[limit, pace, &cost]);
                redis.send(command).await.and_then(|reply| reply.unwrap_or_default().decision())
            }
        };
        self.noted(decided)
    }

    /// How many servers share the limits.
    fn nodes(&self) -> NonZeroU32 {
        let fleet = match &self.0.backend {
            Backend::Redis(redis) => redis.fleet.as_ref(),
            Backend::Memory(_) => None,
        };
        fleet.and_then(|fleet| fleet.nodes()).unwrap_or_else(|| self.0.settings.nodes())
    }

    /// Reports an error on its way to the caller.
    fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.inspect_err(|error| self.0.observer.failed(error))
    }

    /// Decides without Redis.
    fn fall_back(&self, policy: &Policy, key: &str, cost: u64, error: &Error) -> Decision {
        let settings = &self.0.settings;
        let outage = if error.is_outage() { policy.outage().unwrap_or(settings.on_outage) } else { settings.on_fault };
        let share = match outage {
            Outage::LocalShare => self.local_decision(policy, key, cost),
            Outage::Open | Outage::Closed => None,
        };
        match (outage, share) {
            (Outage::LocalShare, Some(decision)) => self.degraded(policy, decision, outage),
            (Outage::Open, _) => self.degraded(policy, undecided(policy, true, 0), outage),
            _ => self.closed(policy),
        }
    }

    /// A denial because nobody can tell.
    fn closed(&self, policy: &Policy) -> Decision {
        self.degraded(policy, undecided(policy, false, CLOSED_FOR_MILLIS), Outage::Closed)
    }

    fn degraded(&self, policy: &Policy, decision: rl_limiter::Decision, outage: Outage) -> Decision {
        let source = Source::Fallback(outage);
        Decision { remaining: None, reset_after: None, ..self.answer(policy, decision, source) }
    }

    fn local_decision(&self, policy: &Policy, key: &str, cost: u64) -> Option<rl_limiter::Decision> {
        let (cost, algorithm, nodes, now) =
            (Cost::new(cost)?, policy.rule().algorithm, self.nodes(), self.0.clock.now());
        let share = &self.0.local_share;
        if let (Backend::Redis(redis), true) = (&self.0.backend, policy.is_leased())
            && let Some(held @ 1..) = Some(redis.leases.held_at_failure(key))
        {
            // What was leased when the outage began is spent beside this.
            share.debit(algorithm, nodes, key, Cost::new(held)?, now);
        }
        let mut decision = share.decide(algorithm, nodes, key, cost, now)?;
        // More than this server's part, but not more than the limit: Redis may allow it when it is back.
        if decision.retry_after == RetryAfter::Never && cost.get() <= policy.limit() {
            decision.retry_after = RetryAfter::Millis(CLOSED_FOR_MILLIS);
        }
        Some(rl_limiter::Decision { limit: policy.limit(), ..decision })
    }

    fn answer(&self, policy: &Policy, decision: rl_limiter::Decision, source: Source) -> Decision {
        let wait = match decision.retry_after {
            RetryAfter::Millis(millis) => Some(Duration::from_millis(millis)),
            RetryAfter::Never => None,
        };
        let (retry_after, delay) = if decision.allowed {
            let delay = wait.filter(|_| policy.rule().queues());
            (Some(Duration::ZERO), delay.unwrap_or_default())
        } else {
            (wait, Duration::ZERO)
        };
        Decision {
            allowed: decision.allowed,
            limit: decision.limit,
            remaining: Some(decision.remaining),
            retry_after,
            reset_after: Some(Duration::from_millis(decision.reset_after)),
            delay,
            source,
            shadow_denied: false,
            policy: policy.shared_name(),
        }
    }

    /// A decision as the caller gets it.
    fn shown(&self, policy: &Policy, decision: Decision) -> Decision {
        let decision = if policy.is_shadow() { decision.shadowed() } else { decision };
        self.0.observer.decided(&decision);
        decision
    }
}

impl Redis {
    async fn send(&self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        if let Some(fleet) = &self.fleet {
            fleet.join();
        }
        self.calls.send(command).await
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// An answer by no algorithm.
fn undecided(policy: &Policy, allowed: bool, millis: u64) -> rl_limiter::Decision {
    let retry_after = RetryAfter::Millis(millis);
    rl_limiter::Decision { allowed, limit: policy.limit(), remaining: 0, retry_after, reset_after: 0 }
}

/// What a policy answers where nothing was taken.
fn unused(policy: &Policy) -> rl_limiter::Decision {
    let limit = policy.limit();
    let (allowed, retry_after) = match limit {
        0 => (false, RetryAfter::Never),
        _ => (true, RetryAfter::Millis(0)),
    };
    rl_limiter::Decision { allowed, limit, remaining: limit, retry_after, reset_after: 0 }
}

fn units(units: u64) -> Result<Cost, Error> {
    Cost::new(units)
        .ok_or_else(|| Error::new(ErrorKind::Invalid, "a cost or amount must be from 0 to 9007199254740991"))
}

fn age(age: Duration) -> Result<Age, Error> {
    let micros = u64::try_from(age.as_micros()).ok();
    let allowed = "an age must be a duration from 0 to 36500 days";
    micros.and_then(Age::from_micros).ok_or_else(|| Error::new(ErrorKind::Invalid, allowed))
}

/// As the commands take it.
fn in_millis(age: Age) -> String {
    let micros = age.as_micros();
    format!("{}.{:03}ms", micros / 1_000, micros % 1_000)
}
