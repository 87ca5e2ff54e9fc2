//! The answer to a check.

use std::sync::Arc;
use std::time::Duration;

use crate::fallback::Outage;

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Redis, now.
    Redis,
    /// Redis, at most a second ago: it denied the same key the same cost or less, and the wait that it told is not over.
    DenyCache,
    /// This process, with tokens that Redis granted it ahead of time, or because Redis just said that there are none; see
    /// [`Policy::leased`](crate::Policy::leased). `remaining` is what is left of these and what was free when they were granted, and
    /// `reset_after` is computed from that: estimates.
    Lease,
    /// This process alone, for [`Limiter::in_memory`](crate::Limiter::in_memory).
    Memory,
    /// This process, by this policy, because Redis could not be asked. The decision is degraded.
    Fallback(Outage),
}

impl Source {
    /// For metrics.
    #[cfg(feature = "metrics")]
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::DenyCache => "deny_cache",
            Self::Lease => "lease",
            Self::Memory => "memory",
            Self::Fallback(Outage::Open) => "fallback_open",
            Self::Fallback(Outage::Closed) => "fallback_closed",
            Self::Fallback(Outage::LocalShare) => "fallback_local_share",
        }
    }
}

/// The answer to a check. There is one in every case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request may go on.
    pub allowed: bool,
    /// The most that can be had at once, in units: the policy's limit or capacity.
    pub limit: u64,
    /// What a further check could take right now, in units, rounded down. `None` where Redis did not say: a fallback knows
    /// no more than this server's part, and invents no numbers.
    pub remaining: Option<u64>,
    /// Denied: after this long the same check is allowed, if nobody else takes budget meanwhile; `None` if no wait helps, because the
    /// cost exceeds the limit. Allowed: zero.
    pub retry_after: Option<Duration>,
    /// How long until the limiter is as good as unused. `None` where Redis did not say.
    pub reset_after: Option<Duration>,
    /// How long an allowed request has to wait for its turn: zero, except for leaky buckets.
    pub delay: Duration,
    /// Who decided.
    pub source: Source,
    /// The policy was a shadow and would have denied. `allowed` is true.
    pub shadow_denied: bool,
    /// The name of the policy.
    pub policy: Arc<str>,
}

impl Decision {
    /// Whether this process decided because Redis could not be asked.
    pub fn is_degraded(&self) -> bool {
        matches!(self.source, Source::Fallback(_))
    }

    /// Whether it was denied not because too much was used, but because nobody could tell: an HTTP server answers 503, not 429.
    pub fn is_unavailable(&self) -> bool {
        !self.allowed && self.source == Source::Fallback(Outage::Closed)
    }

    /// A shadow policy's denial becomes a permission that says so.
    pub(crate) fn shadowed(self) -> Self {
        if self.allowed {
            return self;
        }
        Self { allowed: true, shadow_denied: true, retry_after: Some(Duration::ZERO), ..self }
    }
}
