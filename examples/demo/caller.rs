//! Who calls.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};

pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Part of a Redis key, so it is held to a plain alphabet: braces would choose the key's slot in a cluster.
pub struct Caller(pub String);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let user = parts.headers.get(X_API_KEY).and_then(|value| value.to_str().ok());
        user.filter(|user| (1..=64).contains(&user.len()) && user.bytes().all(plain))
            .map(|user| Caller(user.to_owned()))
            .ok_or((StatusCode::UNAUTHORIZED, "x-api-key must be 1 to 64 letters, digits, - or _\n"))
    }
}
