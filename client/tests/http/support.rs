//! Requests through a layer, without a socket.

use std::convert::Infallible;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use redis_rl_client::http::{RateLimitLayer, Refuse};
use redis_rl_client::{Limiter, Outage, Policy};
use tower::{Layer as _, ServiceExt as _, service_fn};

pub type Body = Full<Bytes>;

/// The casebook's t0: a multiple of every window that is used here.
pub const T0: u64 = 1_814_400_000;

pub fn limiter() -> Limiter {
    Limiter::in_memory_at(UNIX_EPOCH + Duration::from_secs(T0))
}

pub fn unreachable(outage: Outage) -> Limiter {
    Limiter::builder("redis://127.0.0.1:1").on_outage(outage).nodes(1).connect_lazy().unwrap()
}

pub fn get() -> Request<Body> {
    Request::new(Body::default())
}

/// With `name: value` as header lines.
pub fn get_with(lines: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder();
    for &(name, value) in lines {
        request = request.header(name, value);
    }
    request.body(Body::default()).unwrap()
}

/// What a caller gets.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// `name: value`, sorted.
    pub headers: Vec<String>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub fn is_served(&self) -> bool {
        (self.status, self.body.as_str()) == (200, "served")
    }
}

/// One request through the layer, to a service that says `served`.
pub async fn ask<R: Refuse<Body> + Clone + Send + 'static>(
    layer: &RateLimitLayer<R>,
    request: Request<Body>,
) -> Answer {
    let serve = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Body::from("served"))) });
    read(layer.layer(serve).oneshot(request).await.unwrap()).await
}

pub async fn read(response: Response<Body>) -> Answer {
    let (head, body) = response.into_parts();
    let mut headers: Vec<_> =
        head.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    headers.sort();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status.as_u16(), headers, body: String::from_utf8(body.to_vec()).unwrap() }
}

/// How many units of a policy a subject has used.
pub async fn used(limiter: &Limiter, policy: &Policy, subject: &str) -> u64 {
    policy.limit() - limiter.peek(policy, subject).await.unwrap().remaining.unwrap()
}

/// Lets what runs in the background end.
pub async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
