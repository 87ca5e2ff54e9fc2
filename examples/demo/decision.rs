//! A limiter's answer to one request, and how it is told over HTTP.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

pub const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// How many seconds an admitted request should wait for its turn. A server that keeps it would do the waiting itself.
pub const X_RATELIMIT_TURN: HeaderName = HeaderName::from_static("x-ratelimit-turn");

pub const PROBLEM_JSON: &str = "application/problem+json";

pub struct Decision {
    pub allowed: bool,
    pub limit: u64,
    pub remaining: u64,
    /// How long a refused caller should wait; none if no wait would help.
    pub retry_after: Option<Duration>,
    /// How long an admitted caller should wait for its turn, if there is a queue.
    pub turn_after: Option<Duration>,
    pub reset_after: Duration,
}

impl IntoResponse for Decision {
    fn into_response(self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(X_RATELIMIT_LIMIT, self.limit.into());
        headers.insert(X_RATELIMIT_REMAINING, self.remaining.into());
        headers.insert(X_RATELIMIT_RESET, whole_seconds(self.reset_after).into());
        if let Some(wait) = self.turn_after {
            headers.insert(X_RATELIMIT_TURN, whole_seconds(wait).into());
        }
        if self.allowed {
            return (StatusCode::OK, headers, "hello\n").into_response();
        }

        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(wait) = self.retry_after {
            // 0 would say "at once", which is what the caller has just done in vain.
            headers.insert(RETRY_AFTER, whole_seconds(wait).max(1).into());
        }
        let body = format!(
            r#"{{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"The limit is {} requests an hour."}}"#,
            self.limit
        );
        (StatusCode::TOO_MANY_REQUESTS, headers, Body::from(body)).into_response()
    }
}

/// Rounded up: a caller who waits a little too long is served, one who waits too little is refused again.
pub fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
