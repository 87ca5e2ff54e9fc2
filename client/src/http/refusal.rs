//! A request that may not go on.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Response, StatusCode};

use super::dialect::seconds;
use super::rules::Checked;
use crate::decision::Decision;

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
    /// A refusal as the layer makes it, for a test of a [`Refuse`].
    pub fn new<P: Into<Arc<str>>>(
        reason: Reason,
        retry_after: Option<Duration>,
        policies: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { reason, retry_after, policies: policies.into_iter().map(Into::into).collect() }
    }

    pub(super) fn missing(identity: String, policy: Arc<str>) -> Self {
        Self::new(Reason::MissingIdentity(identity), None, [policy])
    }

    /// If a limit can't tell whom it counts.
    pub(super) fn impossible(policy: Arc<str>) -> Self {
        Self::new(Reason::Unavailable, None, [policy])
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

    /// The status that HTTP has for the reason: 429, 503 or 400.
    pub fn status(&self) -> StatusCode {
        match self.reason {
            Reason::Denied => StatusCode::TOO_MANY_REQUESTS,
            Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Reason::MissingIdentity(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The wait in whole seconds, as `Retry-After` tells it: rounded up, and at least 1.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| seconds(wait).max(1))
    }
}

/// Makes the response to a request that may not go on, with a body of type `B`. For answers of your own:
///
/// ```
/// use http::header::{CACHE_CONTROL, RETRY_AFTER};
/// use http::request::Parts;
/// use http::{HeaderValue, Request, Response};
/// use redis_rl_client::SECOND;
/// use redis_rl_client::http::{RateLimitLayer, Reason, Refusal, Refuse};
///
/// /// No body, but all that caches and callers have to know.
/// #[derive(Clone)]
/// struct Terse;
///
/// impl<B: Default> Refuse<B> for Terse {
///     fn refuse(&self, refusal: &Refusal, _request: &Parts) -> Response<B> {
///         let mut response = Response::new(B::default());
///         *response.status_mut() = refusal.status();
///         let headers = response.headers_mut();
///         headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
///         if let Some(seconds) = refusal.retry_after_seconds() {
///             headers.insert(RETRY_AFTER, seconds.into());
///         }
///         response
///     }
/// }
///
/// # let limiter = redis_rl_client::Limiter::in_memory();
/// let layer = RateLimitLayer::new(limiter).refuse_with(Terse);
///
/// let (request, ()) = Request::new(()).into_parts();
/// let identity = Reason::MissingIdentity("the header x-api-key".to_owned());
/// for (reason, retry_after, status) in
///     [(Reason::Denied, Some(7 * SECOND), 429), (Reason::Unavailable, Some(SECOND), 503), (identity, None, 400)]
/// {
///     let refusal = Refusal::new(reason, retry_after, ["api"]);
///     let response: Response<String> = Terse.refuse(&refusal, &request);
///     assert_eq!(response.status(), status);
///     assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
///     assert_eq!(response.headers().contains_key(RETRY_AFTER), retry_after.is_some());
/// }
/// ```
pub trait Refuse<B> {
    /// The response to a request with this head. The layer adds the fields of its [`Dialect`](super::Dialect)s to it.
    fn refuse(&self, refusal: &Refusal, request: &Parts) -> Response<B>;
}
