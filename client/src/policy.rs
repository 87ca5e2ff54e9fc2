//! What is limited, and how.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rl_limiter::{FixedWindow, Limit, SlidingLog, SlidingWindow, TokenBucket, Window};

use crate::concurrency::ConcurrencyPolicy;
use crate::fallback::Outage;
use crate::rule::{Algorithm, Rule};

/// A second.
pub const SECOND: Duration = Duration::from_secs(1);
/// A minute.
pub const MINUTE: Duration = Duration::from_secs(60);
/// An hour.
pub const HOUR: Duration = Duration::from_secs(60 * 60);
/// A day of 24 hours.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// So many units in so much time. Kept as it was given, so 100 a minute is exactly that.
///
/// Whether it is in range (more than 0 units, at most 15 digits of them; 1 ms to 36500 days, in whole microseconds) is checked by
/// the [`Policy`] that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    units: u64,
    time: Duration,
}

impl Rate {
    /// `units` in every `time`.
    pub const fn per(units: u64, time: Duration) -> Self {
        Self { units, time }
    }

    /// `units` a second.
    pub const fn per_second(units: u64) -> Self {
        Self::per(units, SECOND)
    }

    /// As the commands take it, and exactly.
    fn checked(self) -> Result<(rl_limiter::Rate, String), PolicyError> {
        let text = format!("{}/{}", self.units, window(self.time)?);
        let rate = rl_limiter::Rate::parse("rate", text.as_bytes()).map_err(PolicyError::new)?;
        Ok((rate, text))
    }
}

/// What is limited, by which algorithm, and with which numbers. Cheap to clone.
///
/// A policy's name is part of the key: two policies of one name share their counts, so give each its own. When a limit changes
/// while old and new servers run side by side, they share the key too and the laxer limit wins; to keep them apart, put a
/// version into the name, as in `api@2`.
///
/// ```
/// use redis_rl_client::{HOUR, MINUTE, Policy, Rate};
///
/// # fn main() -> Result<(), redis_rl_client::PolicyError> {
/// let api = Policy::token_bucket("api", 100, Rate::per(100, MINUTE))?;
/// let logins = Policy::sliding_log("logins", 5, HOUR)?.shadow();
/// assert_eq!(logins.name(), "logins");
///
/// let error = Policy::fixed_window("spaces are not", 100, HOUR).unwrap_err();
/// assert_eq!(error.to_string(), "a policy's name must be 1 to 64 letters, digits, or any of - _ . : / @");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    name: Arc<str>,
    rule: Rule,
    outage: Option<Outage>,
    shadow: bool,
    leased: bool,
}

impl Policy {
    /// `limit` in each `window` of the clock, aligned to the Unix epoch in UTC. Around an edge up to twice the limit passes.
    ///
    /// `limit` is at most 2^53 − 1, and 0 allows nothing; `window` is from 1 ms to 36500 days, in whole microseconds.
    pub fn fixed_window(name: &str, limit: u64, window: Duration) -> Result<Self, PolicyError> {
        let window = self::window(window)?;
        let limiter = FixedWindow::new(units("limit", limit)?, window);
        Self::new(name, Rule::new(Algorithm::FixedWindow(limiter), window.to_string()))
    }

    /// `limit` in the last `window`, estimated from the counts of two windows of the clock. Ranges as for
    /// [`Policy::fixed_window`].
    pub fn sliding_window(name: &str, limit: u64, window: Duration) -> Result<Self, PolicyError> {
        let window = self::window(window)?;
        let limiter = SlidingWindow::new(units("limit", limit)?, window);
        Self::new(name, Rule::new(Algorithm::SlidingWindow(limiter), window.to_string()))
    }

    /// `limit` in any stretch as long as `window`, exactly, at the price of some 10 bytes an admitted call. Ranges as for
    /// [`Policy::fixed_window`].
    pub fn sliding_log(name: &str, limit: u64, window: Duration) -> Result<Self, PolicyError> {
        let window = self::window(window)?;
        let limiter = SlidingLog::new(units("limit", limit)?, window);
        Self::new(name, Rule::new(Algorithm::SlidingLog(limiter), window.to_string()))
    }

    /// `capacity` at once, refilled continuously at `rate`. `capacity` is at most 2^53 − 1, and 0 allows nothing.
    pub fn token_bucket(name: &str, capacity: u64, rate: Rate) -> Result<Self, PolicyError> {
        let (rate, text) = rate.checked()?;
        let limiter = TokenBucket::new(units("capacity", capacity)?, rate);
        Self::new(name, Rule::new(Algorithm::TokenBucket(limiter), text))
    }

    /// A queue of `capacity` that drains at `rate`: what is allowed is told how long to wait for its turn
    /// ([`Decision::delay`](crate::Decision::delay)). Ranges as for [`Policy::token_bucket`].
    pub fn leaky_bucket(name: &str, capacity: u64, rate: Rate) -> Result<Self, PolicyError> {
        let (rate, text) = rate.checked()?;
        let capacity = units("capacity", capacity)?;
        Self::new(name, Rule::new(Algorithm::LeakyBucket { capacity, rate }, text))
    }

    /// At most `limit` at the same time, for [`Limiter::acquire`](crate::Limiter::acquire). `limit` is at most 2^53 − 1, and 0 allows nothing.
    ///
    /// `ttl` is how long Redis keeps the place of a holder of whom it does not hear, because it crashed or is cut off: from 1 ms to
    /// 36500 days, in whole microseconds. Places are renewed every third of it, so it should be some seconds at least, many times the deadline of
    /// a call.
    pub fn concurrent(name: &str, limit: u64, ttl: Duration) -> Result<ConcurrencyPolicy, PolicyError> {
        let (limit, ttl) = (units("limit", limit)?, span("ttl", ttl)?);
        Ok(ConcurrencyPolicy { name: checked(name)?, limit, ttl, outage: None, shadow: false })
    }

    fn new(name: &str, rule: Rule) -> Result<Self, PolicyError> {
        Ok(Self { name: checked(name)?, rule, outage: None, shadow: false, leased: false })
    }

    /// Lets this process decide by itself, from slices of the bucket that Redis grants it ahead of time: for a hot key, which is asked for more
    /// often than a round trip each is worth. An error for all but token buckets.
    ///
    /// All servers together still admit no more than capacity + rate × time. The price is that some tokens are with servers that don't need
    /// them at the moment: half of the bucket at most, and for seconds at most. So the bucket should hold a good part of a second's
    /// rate, and four times as many tokens as there are servers; what is below that, or is asked for less than twice in the time that a
    /// lease lasts (50 ms for a key that is hot, up to 1 s), is decided by Redis, call by call.
    ///
    /// A cost that is higher than what is leased at once is asked of Redis, too. What remains is an estimate then ([`Source::Lease`](crate::Source::Lease)).
    ///
    /// ```
    /// use redis_rl_client::{HOUR, Policy, Rate};
    ///
    /// # fn main() -> Result<(), redis_rl_client::PolicyError> {
    /// let site = Policy::token_bucket("site", 40_000, Rate::per_second(100_000))?.leased()?;
    /// assert!(site.is_leased());
    ///
    /// let error = Policy::fixed_window("window", 40_000, HOUR)?.leased().unwrap_err();
    /// assert_eq!(error.to_string(), "only a token bucket can be leased");
    /// # Ok(())
    /// # }
    /// ```
    pub fn leased(self) -> Result<Self, PolicyError> {
        match self.rule.algorithm {
            Algorithm::TokenBucket(_) => Ok(Self { leased: true, ..self }),
            _ => Err(PolicyError("only a token bucket can be leased".to_owned())),
        }
    }

    /// Decides and counts, but never blocks: for a limit that is to be tried before it is enforced. See
    /// [`Decision::shadow_denied`](crate::Decision::shadow_denied).
    #[must_use]
    pub fn shadow(self) -> Self {
        Self { shadow: true, ..self }
    }

    /// What decides this policy's calls while Redis is away, in place of what the limiter was built with.
    #[must_use]
    pub fn on_outage(self, outage: Outage) -> Self {
        Self { outage: Some(outage), ..self }
    }

    /// Its name: in keys, metrics and answers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The most that can be had at once: its limit or capacity.
    pub fn limit(&self) -> u64 {
        self.rule.algorithm.limit().get()
    }

    /// The time for which the limit holds: the window, or how long an empty bucket takes to refill, rounded up to microseconds.
    pub fn window(&self) -> Duration {
        self.rule.algorithm.window()
    }

    /// Whether it never blocks.
    pub fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Whether this process decides by slices that it is granted; see [`Policy::leased`].
    pub fn is_leased(&self) -> bool {
        self.leased
    }

    /// The bucket, if it is leased.
    pub(crate) fn leased_bucket(&self) -> Option<TokenBucket> {
        match self.rule.algorithm {
            Algorithm::TokenBucket(bucket) if self.leased => Some(bucket),
            _ => None,
        }
    }

    /// The same, but of a leaky bucket only the places that have their turn within `longest`. Redis then denies what would
    /// come later, takes nothing for it, and tells the wait after which it would be in time.
    #[cfg(feature = "tower")]
    #[must_use]
    pub(crate) fn with_turns_within(self, longest: Duration) -> Self {
        Self { rule: self.rule.with_turns_within(longest), ..self }
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(crate) fn outage(&self) -> Option<Outage> {
        self.outage
    }
}

/// A policy's numbers or name are out of range. The text names what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(String);

impl PolicyError {
    fn new(argument: rl_limiter::ArgumentError) -> Self {
        Self(argument.to_string())
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

/// Through the grammar of the commands, so that the error says what they would say.
fn units(argument: &'static str, units: u64) -> Result<Limit, PolicyError> {
    Limit::parse(argument, units.to_string().as_bytes()).map_err(PolicyError::new)
}

fn window(time: Duration) -> Result<Window, PolicyError> {
    span("window", time)
}

fn span(argument: &str, time: Duration) -> Result<Window, PolicyError> {
    let micros = u64::try_from(time.as_micros()).ok().filter(|_| time.subsec_nanos().is_multiple_of(1_000));
    let allowed = || format!("a {argument} must be a duration from 1 ms to 36500 days, in whole microseconds");
    micros.and_then(Window::from_micros).ok_or_else(|| PolicyError(allowed()))
}

fn checked(name: &str) -> Result<Arc<str>, PolicyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
        let allowed = "a policy's name must be 1 to 64 letters, digits, or any of - _ . : / @";
        return Err(PolicyError(allowed.to_owned()));
    }
    Ok(name.into())
}
