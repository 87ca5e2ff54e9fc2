//! How a rate limit is told over HTTP, written by servers and read by the user.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::Fallible;

pub const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// How many seconds an admitted request should wait for its turn, if it isn't at once. A server that keeps it would do the
/// waiting itself.
pub const X_RATELIMIT_TURN: HeaderName = HeaderName::from_static("x-ratelimit-turn");

pub const PROBLEM_JSON: &str = "application/problem+json";

/// What is left of a limit.
pub struct Budget {
    pub limit: u64,
    pub remaining: u64,
    /// In so many seconds the limit is as good as unused.
    pub reset: u64,
}

impl Budget {
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(X_RATELIMIT_LIMIT, self.limit.into());
        headers.insert(X_RATELIMIT_REMAINING, self.remaining.into());
        headers.insert(X_RATELIMIT_RESET, self.reset.into());
    }

    /// None if nothing of it is told.
    pub fn read(headers: &HeaderMap) -> Fallible<Option<Self>> {
        let names = [X_RATELIMIT_LIMIT, X_RATELIMIT_REMAINING, X_RATELIMIT_RESET];
        if !names.iter().any(|name| headers.contains_key(name)) {
            return Ok(None);
        }
        Ok(Some(Budget {
            limit: number(headers, &X_RATELIMIT_LIMIT)?,
            remaining: number(headers, &X_RATELIMIT_REMAINING)?,
            reset: number(headers, &X_RATELIMIT_RESET)?,
        }))
    }
}

/// `retry_after` is none if no wait would help.
pub fn refusal(status: StatusCode, retry_after: Option<Duration>) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    let body = format!(r#"{{"type":"about:blank","title":"{title}","status":{}}}"#, status.as_u16());
    let mut response = (status, [(CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
    if let Some(wait) = retry_after {
        // 0 would say "at once", which is what the caller has just done in vain.
        response.headers_mut().insert(RETRY_AFTER, whole_seconds(wait).max(1).into());
    }
    response
}

/// Rounded up: a caller who waits a little too long is served, one who waits too little is refused again.
pub fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Fallible<&'a str> {
    let value = headers.get(name).ok_or_else(|| format!("an answer has no {name}"))?;
    Ok(value.to_str()?)
}

pub fn number(headers: &HeaderMap, name: &HeaderName) -> Fallible<u64> {
    let value = text(headers, name)?;
    value.parse().map_err(|_| format!("an answer has {name}: {value}, which is no number").into())
}
