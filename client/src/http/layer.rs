//! The layer, as users set it up.

use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use super::dialect::Dialect;
use super::key_by::KeyBy;
use super::problem::ProblemJson;
use super::rules::{Limit, Rules};
use super::service::RateLimit;
use crate::limiter::Limiter;
use crate::policy::Policy;

/// Holds requests against limits before a service sees them. See [the module](crate::http) for what callers are told.
///
/// With several limits a request passes if all allow it, and if one denies, nothing is taken of the others, as by
/// [`Limiter::check_all`]: those that count a request by the same subject are decided by one call, the others at the
/// same time, and what they took is given back. Leaky buckets take nothing back, so they are asked last, by one more round
/// trip, when all others have allowed, unless all limits share the call; of several of them those that allow keep a place for a
/// request that another one refuses. While one denies from memory ([`Source::DenyCache`](crate::Source::DenyCache)) the
/// others are not asked at all. A limit that all callers share is best [leased](crate::Policy::leased).
///
/// Layers outside see refusals too. CORS belongs there: preflights carry no identity.
///
/// Shadow policies are asked and counted like the others, but refuse and delay nothing, a missing identity included.
///
/// [`RateLimitLayer::new`] is for HTTP services whose response bodies can be made from [`bytes::Bytes`], as axum's and
#[cfg_attr(feature = "tonic", doc = "`http_body_util::Full` can. [`RateLimitLayer::grpc`] is for tonic.")]
#[cfg_attr(
    not(feature = "tonic"),
    doc = "`http_body_util::Full` can. `RateLimitLayer::grpc` is for tonic, with that feature."
)]
#[derive(Clone, Debug)]
#[must_use]
pub struct RateLimitLayer<R = ProblemJson> {
    rules: Rules,
    max_delay: Duration,
    refuse: R,
}

impl RateLimitLayer {
    /// A layer without limits, for HTTP.
    pub fn new(limiter: Limiter) -> Self {
        let rules = Rules { limiter, limits: Vec::new(), dialects: vec![Dialect::XRateLimit] };
        Self { rules, max_delay: Duration::from_secs(1), refuse: ProblemJson }
    }
}

#[cfg(feature = "tonic")]
impl RateLimitLayer<super::GrpcStatus> {
    /// A layer without limits, for gRPC. Its responses have no header fields of [`Dialect`]s unless asked for.
    pub fn grpc(limiter: Limiter) -> Self {
        RateLimitLayer::new(limiter).headers([]).refuse_with(super::GrpcStatus)
    }
}

impl<R> RateLimitLayer<R> {
    /// One more limit. Each request costs 1.
    pub fn limit(mut self, policy: Policy, key_by: KeyBy) -> Self {
        self.rules.limits.push(Limit { policy, key_by, is_told: true });
        self
    }

    /// One more limit, of which callers are not told the numbers: no [`Dialect`] speaks of it. For a limit that a caller
    /// shares with others, such as that of a whole site, whose numbers are not its own and nobody's business.
    ///
    /// A refusal by it names the policy and has its `Retry-After`.
    pub fn limit_untold(mut self, policy: Policy, key_by: KeyBy) -> Self {
        self.rules.limits.push(Limit { policy, key_by, is_told: false });
        self
    }

    /// In which header fields callers are told how much is left: by default [`Dialect::XRateLimit`]; `[]` for none. Of
    /// two that share fields the first counts.
    ///
    /// A field that the response of the inner service has already is kept, and with it the others of that dialect.
    pub fn headers(mut self, dialects: impl IntoIterator<Item = Dialect>) -> Self {
        self.rules.dialects = dialects.into_iter().collect();
        self
    }

    /// The longest that a request is kept waiting for its turn in a leaky bucket, in whole milliseconds; by default 1 s.
    ///
    /// Of a bucket only the places that have their turn by then are given out: rate times this, rounded down, and one
    /// that waits for nobody; never more than its capacity. So Redis refuses who would have to wait longer, keeps no
    /// place for it, and tells when a place is free. That number is also the limit that callers are told.
    ///
    /// Layers that share a bucket should agree in this: what one of them is denied, another in the same process is for
    /// up to a second.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Refuses in another way.
    pub fn refuse_with<T>(self, refuse: T) -> RateLimitLayer<T> {
        RateLimitLayer { rules: self.rules, max_delay: self.max_delay, refuse }
    }
}

impl<S, R: Clone> Layer<S> for RateLimitLayer<R> {
    type Service = RateLimit<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        let rules = self.rules.clone().with_turns_within(self.max_delay);
        RateLimit::new(inner, Arc::new(rules), self.refuse.clone())
    }
}
