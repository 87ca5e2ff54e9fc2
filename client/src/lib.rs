//! Rate limits that hold across a fleet, from a Rust API server.
//!
//! Asks [redis-rl], a Redis module that decides atomically, and answers the question that a shared counter brings to each request: what if
//! Redis is slow, or gone?
//!
//! [redis-rl]: https://docs.rs/redis-rl

#![forbid(unsafe_code)]

mod builder;
mod clock;
mod decision;
mod deny_cache;
mod error;
mod fallback;
#[cfg(feature = "tower")]
pub mod http;
mod key;
mod limiter;
mod memory;
mod observe;
mod policy;
mod redis;
mod rule;
mod table;

pub use builder::Builder;
pub use decision::{Decision, Source};
pub use error::{Error, ErrorKind};
pub use fallback::Outage;
pub use limiter::{Debit, Limiter};
pub use policy::{DAY, HOUR, MINUTE, Policy, PolicyError, Rate, SECOND};
