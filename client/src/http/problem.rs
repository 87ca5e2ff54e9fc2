//! Refusals in HTTP.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Response};

use super::refusal::{Reason, Refusal, Refuse};

/// Refuses by 429, 503 or 400 with a body of `application/problem+json` (RFC 9457), of the types that the IETF's
/// draft-ietf-httpapi-ratelimit-headers-10 defines:
///
/// ```json
/// {
///   "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
///   "title": "Request cannot be satisfied as assigned quota has been exceeded",
///   "status": 429,
///   "violated-policies": ["api"]
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemJson;

impl<B: From<Bytes>> Refuse<B> for ProblemJson {
    fn refuse(&self, refusal: &Refusal, _request: &Parts) -> Response<B> {
        let body = match &refusal.reason {
            Reason::Denied => {
                quota(refusal, "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded")
            }
            Reason::Unavailable => quota(
                refusal,
                "temporary-reduced-capacity",
                "Request cannot be satisfied due to temporary server capacity constraints",
            ),
            Reason::MissingIdentity(identity) => missing(identity),
        };
        let mut response = Response::new(B::from(Bytes::from(body)));
        *response.status_mut() = refusal.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = refusal.retry_after_seconds() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// No text in it needs an escape: names of policies and of headers have neither quotes nor backslashes.
fn quota(refusal: &Refusal, kind: &str, title: &str) -> String {
    let policies = refusal.policies.join(r#"",""#);
    format!(
        r#"{{"type":"https://iana.org/assignments/http-problem-types#{kind}","title":"{title}","status":{},"violated-policies":["{policies}"]}}"#,
        refusal.status().as_u16()
    )
}

fn missing(identity: &str) -> String {
    format!(
        r#"{{"type":"about:blank","title":"Bad Request","status":400,"detail":"needed once, to count the request by: {identity}"}}"#
    )
}
