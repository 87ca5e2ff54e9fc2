//! Limits in front of an HTTP or gRPC service, as a [tower layer](RateLimitLayer).
//!
//! ```no_run
//! use axum::{Router, routing::get};
//! use redis_rl_client::http::{KeyBy, RateLimitLayer};
//! use redis_rl_client::{Limiter, MINUTE, Policy, Rate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::builder("redis://127.0.0.1:6379").connect_lazy()?;
//! let per_key = Policy::token_bucket("api", 100, Rate::per(100, MINUTE))?;
//! let site = Policy::token_bucket("site", 40_000, Rate::per_second(100_000))?;
//! let layer = RateLimitLayer::new(limiter)
//!     .limit(per_key, KeyBy::header("x-api-key").hashed())
//!     .limit_untold(site, KeyBy::constant("all"));
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(layer);
//! # Ok(())
//! # }
//! ```
//!
//! # Answers
//!
//! | | status | `Retry-After` |
//! | --- | --- | --- |
//! | a limit denies | 429 | seconds, rounded up, at least 1: the longest wait of all limits that deny; none if one of them never allows it |
//! | nobody could tell, and the policy then is [`Outage::Closed`](crate::Outage::Closed) | 503 | the same |
//! | the request lacks what a limit counts by | 400 | none |
//! | a limit counts by a header whose name is invalid | 503 | none |
//!
//! Where one limit denies and another can't tell, the answer is 429: that the caller did too much is known. The body is
//! `application/problem+json`, and no refusal may be stored by a cache.
//!
//! [`Dialect`]s tell in header fields how much is left. What a fallback decided carries none, for the numbers are
//! unknown.

mod dialect;
mod fault;
mod forwarded;
#[cfg(feature = "tonic")]
mod grpc;
mod key_by;
mod layer;
mod peer;
mod problem;
mod refusal;
mod rules;
mod service;
mod source;

pub use dialect::{Dialect, EXPOSED_HEADERS};
#[cfg(feature = "tonic")]
pub use grpc::GrpcStatus;
pub use ipnet::IpNet;
pub use key_by::KeyBy;
pub use layer::RateLimitLayer;
pub use peer::PeerAddress;
pub use problem::ProblemJson;
pub use refusal::{Reason, Refusal, Refuse};
pub use service::{RateLimit, ResponseFuture};
