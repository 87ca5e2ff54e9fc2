//! Places for what goes on at the same time.

use std::time::Duration;

use rl_limiter::{Cost, Decision as Said, RetryAfter};

use super::{Backend, CLOSED_FOR_MILLIS, Limiter, units};
use crate::concurrency::ConcurrencyPolicy;
use crate::decision::{Decision, Source};
use crate::error::{Error, ErrorKind};
use crate::fallback::Outage;
use crate::guard::{Guard, Seat, no_runtime};
use crate::key::key;
use crate::places::Place;

/// What came of asking for a place.
enum Asked {
    Given(Said, Option<Place>, Option<Seat>),
    Denied(Said),
}

impl Limiter {
    /// Asks for a place for something that goes on for a while, such as a request that is expensive to serve, and holds it until the guard is
    /// dropped. If there is none, the decision that says so.
    ///
    /// ```
    /// use std::time::Duration;
    /// use redis_rl_client::{Limiter, Policy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), redis_rl_client::PolicyError> {
    /// # let limiter = Limiter::in_memory();
    /// let exports = Policy::concurrent("exports", 2, Duration::from_secs(30))?;
    ///
    /// match limiter.acquire(&exports, "user:42").await {
    ///     Ok(place) => tokio::select! {
    ///         () = export() => {}
    ///         () = place.lost() => println!("others may be at it by now"),
    ///     },
    ///     Err(denied) => println!("429, Retry-After: {:?}", denied.retry_after),
    /// }
    /// # async fn export() {}
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each guard is a holder by itself, under a name that nobody else has. `retry_after` of a denial is when a place would be free if no holder
    /// renewed his; they mostly do, or release it earlier. A denial is never answered from memory.
    ///
    /// While Redis is away the [`Outage`] policy decides. `Open` gives places to all and `Closed` to none. By `LocalShare` this server gives
    /// places as long as it holds less than its part of the limit, those that Redis gave it included; over the fleet there may be up to
    /// twice the limit then. What is given in an outage is made known to Redis when that can be asked again, as far as there is room. Places that
    /// Redis gave are renewed as soon as it answers, and are [lost](Guard::lost) if that takes longer than the ttl, whatever the policy.
    ///
    /// A caller who goes away while this waits for Redis leaves no place taken. [`Limiter::in_memory`] counts the guards of this process.
    pub async fn acquire(&self, policy: &ConcurrencyPolicy, subject: impl AsRef<[u8]>) -> Result<Guard, Decision> {
        self.acquire_n(policy, subject, 1).await
    }

    /// The same for so many units, from 1 to 2^53 − 1, which are held and given back together.
    pub async fn acquire_n(
        &self,
        policy: &ConcurrencyPolicy,
        subject: impl AsRef<[u8]>,
        units: u64,
    ) -> Result<Guard, Decision> {
        let key = key(&self.0.settings.prefix, subject.as_ref(), &policy.name);
        let (asked, source) = self.place(policy, &key, units).await;
        let (said, place, seat) = match asked {
            Asked::Given(said, place, seat) => (said, place, seat),
            Asked::Denied(said) => (said, None, None),
        };
        let decision = told(policy, said, source);
        let decision = if policy.is_shadow() { decision.shadowed() } else { decision };
        self.0.observer.decided(&decision);
        match (decision.allowed, seat) {
            (false, _) => Err(decision),
            (true, Some(seat)) => Ok(Guard::renewed(decision, place, seat)),
            (true, None) => Ok(Guard::local(decision, place)),
        }
    }

    async fn place(&self, policy: &ConcurrencyPolicy, key: &str, units: u64) -> (Asked, Source) {
        let settings = &self.0.settings;
        let fallen_back = |error: &Error| match error.is_outage() {
            true => policy.outage.unwrap_or(settings.on_outage),
            false => settings.on_fault,
        };
        let units = match self.noted(places(units)) {
            Ok(units) => units,
            Err(error) => return (denied(policy, 0, CLOSED_FOR_MILLIS), Source::Fallback(fallen_back(&error))),
        };
        let redis = match &self.0.backend {
            Backend::Redis(redis) => redis,
            Backend::Memory(_) => {
                return (
                    self.place_here(policy, key, units, policy.limit(), millis(policy.ttl()), None),
                    Source::Memory,
                );
            }
        };
        let Some(seat) = Seat::new(&redis.calls, key, policy, units) else {
            let error = self.noted::<()>(Err(no_runtime())).err();
            let outage = error.as_ref().map_or(Outage::Closed, fallen_back);
            return (self.without_redis(policy, key, units, outage, None), Source::Fallback(outage));
        };
        match self.noted(seat.ask(false).await) {
            Ok(said) if said.allowed => {
                let place = self.0.places.take(key, units.get(), u64::MAX).ok();
                (Asked::Given(said, place, Some(seat)), Source::Redis)
            }
            Ok(said) => (Asked::Denied(said), Source::Redis),
            Err(error) => {
                let outage = fallen_back(&error);
                let seat = error.is_outage().then_some(seat);
                (self.without_redis(policy, key, units, outage, seat), Source::Fallback(outage))
            }
        }
    }

    fn without_redis(
        &self,
        policy: &ConcurrencyPolicy,
        key: &str,
        units: Cost,
        outage: Outage,
        seat: Option<Seat>,
    ) -> Asked {
        match outage {
            Outage::Closed => denied(policy, 0, CLOSED_FOR_MILLIS),
            Outage::Open => self.place_here(policy, key, units, u64::MAX, CLOSED_FOR_MILLIS, seat),
            Outage::LocalShare => {
                let part = policy.limit() / u64::from(self.nodes().get());
                let part = part.max(1).min(policy.limit());
                self.place_here(policy, key, units, part, CLOSED_FOR_MILLIS, seat)
            }
        }
    }

    /// A place that this process counts, if it then holds no more than so many units; else it is to be asked for after so many milliseconds.
    fn place_here(
        &self,
        policy: &ConcurrencyPolicy,
        key: &str,
        units: Cost,
        most: u64,
        wait: u64,
        seat: Option<Seat>,
    ) -> Asked {
        match self.0.places.take(key, units.get(), most) {
            Ok(place) => {
                let remaining = most.saturating_sub(self.0.places.held(key)).min(policy.limit());
                let retry_after = RetryAfter::Millis(0);
                let said = Said { allowed: true, limit: policy.limit(), remaining, retry_after, reset_after: 0 };
                Asked::Given(said, Some(place), seat)
            }
            // More than there is room for at any time.
            Err(held) if units.get() > policy.limit() => {
                let remaining = most.saturating_sub(held);
                let retry_after = RetryAfter::Never;
                Asked::Denied(Said { allowed: false, limit: policy.limit(), remaining, retry_after, reset_after: 0 })
            }
            Err(held) => denied(policy, most.saturating_sub(held), wait),
        }
    }
}

fn denied(policy: &ConcurrencyPolicy, remaining: u64, wait: u64) -> Asked {
    let retry_after = RetryAfter::Millis(wait.max(1));
    Asked::Denied(Said { allowed: false, limit: policy.limit(), remaining, retry_after, reset_after: wait })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

fn places(number: u64) -> Result<Cost, Error> {
    match units(number)? {
        Cost::ZERO => Err(Error::new(ErrorKind::Invalid, "a place is of 1 unit at least")),
        units => Ok(units),
    }
}

fn told(policy: &ConcurrencyPolicy, said: Said, source: Source) -> Decision {
    let is_known = !matches!(source, Source::Fallback(_));
    let retry_after = match said.retry_after {
        _ if said.allowed => Some(Duration::ZERO),
        RetryAfter::Millis(millis) => Some(Duration::from_millis(millis)),
        RetryAfter::Never => None,
    };
    Decision {
        allowed: said.allowed,
        limit: said.limit,
        remaining: is_known.then_some(said.remaining),
        retry_after,
        reset_after: is_known.then(|| Duration::from_millis(said.reset_after)),
        delay: Duration::ZERO,
        source,
        shadow_denied: false,
        policy: policy.name.clone(),
    }
}
