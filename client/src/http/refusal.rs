//! A request that may not go on.

use std::sync::Arc;
use std::time::Duration;

use http::Response;

use super::dialect::seconds;
use crate::decision::Decision;
use crate::limiter::Checked;

/// Why a request may not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Too much was used.
    Denied,
    /// Nobody could tell, and the policy is then to refuse.
    Unavailable,
    /// The request lacks what a limit counts by, or says it several times. The text says what: `the header x-api-key`.
    MissingIdentity(String),
}

/// A request that may not go on, and what to tell its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The longest wait that a limit asks for; `None` if no wait helps.
    pub retry_after: Option<Duration>,
    /// The names of the policies that refuse, for this reason.
    pub policies: Vec<Arc<str>>,
}

impl Refusal {
    pub(super) fn missing(identity: String, policy: Arc<str>) -> Self {
        Self { reason: Reason::MissingIdentity(identity), retry_after: None, policies: vec![policy] }
    }

    /// If a limit can't tell whom it counts.
    pub(super) fn impossible(policy: Arc<str>) -> Self {
        Self { reason: Reason::Unavailable, retry_after: None, policies: vec![policy] }
    }

    /// If one of the limits denies. That too much was used outweighs that nobody could tell, because it is known.
    pub(super) fn by(checked: &[Checked]) -> Option<Self> {
        let denials = || checked.iter().map(|checked| &checked.decision).filter(|decision| !decision.allowed);
        let reason = match denials().all(Decision::is_unavailable) {
            true => Reason::Unavailable,
            false => Reason::Denied,
        };
        let policies: Vec<_> = denials()
            .filter(|denial| denial.is_unavailable() == (reason == Reason::Unavailable))
            .map(|denial| Arc::clone(&denial.policy))
            .collect();
        let waits: Option<Vec<_>> = denials().map(|denial| denial.retry_after).collect();
        let retry_after = waits.and_then(|waits| waits.into_iter().max());
        (!policies.is_empty()).then_some(Self { reason, retry_after, policies })
    }

    /// The wait in whole seconds, as `Retry-After` tells it: rounded up, and at least 1.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| seconds(wait).max(1))
    }
}

/// Makes the response to a request that may not go on, with a body of type `B`. For answers of your own:
///
/// ```
/// use http::{Response, StatusCode};
/// use redis_rl_client::http::{RateLimitLayer, Refusal, Refuse};
///
/// #[derive(Clone)]
/// struct Terse;
///
/// impl<B: Default> Refuse<B> for Terse {
///     fn refuse(&self, _refusal: &Refusal) -> Response<B> {
///         let mut response = Response::new(B::default());
///         *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
///         response
///     }
/// }
///
/// # let limiter = redis_rl_client::Limiter::in_memory();
/// let layer = RateLimitLayer::new(limiter).refuse_with(Terse);
/// ```
pub trait Refuse<B> {
    /// The response. The layer adds the fields of its [`Dialect`](super::Dialect)s to it.
    fn refuse(&self, refusal: &Refusal) -> Response<B>;
}
