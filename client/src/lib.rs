//! Rate limits that hold across a fleet, from a Rust API server.
//!
//! Any number of servers share each limit: the count is in Redis, where the module redis-rl decides atomically, in one round trip, on
//! one clock. This crate asks it, and answers the question that a shared counter brings to every request: what if Redis is slow, or
//! gone?
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use redis_rl_client::{Limiter, MINUTE, Outage, Policy, Rate};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::builder("redis://127.0.0.1:6379")
//!     .deadline(Duration::from_millis(20)) // hard: covers connecting, too
//!     .on_outage(Outage::LocalShare) // or Open, or Closed
//!     .nodes(4) // servers that share the limits
//!     .connect_lazy()?; // starts even if Redis is down
//!
//! let per_user = Policy::token_bucket("api", 100, Rate::per(100, MINUTE))?;
//!
//! let decision = limiter.check(&per_user, "user:42").await; // never fails: there is a decision in every case
//! if !decision.allowed {
//!     println!("429, Retry-After: {:?}", decision.retry_after);
//! }
//! # Ok(())
//! # }
//! ```
//!
#![cfg_attr(
    feature = "tower",
    doc = "In front of an HTTP or gRPC service it is a layer of tower: see [`http`], and `examples/axum.rs` and `examples/grpc.rs`."
)]
//!
//! # What happens when
//!
//! | | a check is decided | |
//! | --- | --- | --- |
//! | Redis answers in time | by Redis | [`Source::Redis`] |
//! | Redis denied the same a moment ago | here, as Redis did, for as long as it said but at most a second | [`Source::DenyCache`] |
//! | no connection, no answer before the deadline, or one like `LOADING`, `OOM` or `CLUSTERDOWN` | by the [`Outage`] policy | [`Source::Fallback`] |
//! | no permission, no module, a key of another type | by [`Builder::on_fault`]: nothing is allowed; logged as an error | [`Source::Fallback`] |
//!
//! **A check is sent once.** What ran into its deadline may have been counted, so it is not sent again; only where a server says that another
//! one is to be asked (`MOVED`, `ASK`, `READONLY`) it did not run, and the other one is asked. So nobody is charged twice.
//!
//! **A server that does not answer is left alone**: after five failures in a row, spread over 100 ms at least, or when half of twenty calls within a
//! second fail, no call reaches it. Ten times a second it is looked at, and asked again once it answers. In a cluster this is so for each
//! server by itself.
//!
//! **A decision tells when it is degraded** ([`Decision::is_degraded`]): then it has no numbers of what remains, since nobody knows.
//!
//! # Permissions
//!
//! A user at Redis needs the commands that are used, as in `+rl.fixed +rl.refund`, on the keys `rl:*`; `+ping`, by which a silent server is looked
//! at, may be missing; in a cluster also `+cluster|slots` and `+asking`.
//!
//! # Keys
//!
//! A check of subject `user:42` by policy `api` counts under `rl:{user:42}:api`. The braces make all limits of one subject share a slot of a
//! cluster. Subjects may be any bytes: they are escaped, so that none can choose its slot or share the count of another, and
//! hashed where they are long. A missing identity is nobody in particular: don't check it as an empty subject, by which all who lack one
//! would share a limit.
//!
//! # Features
//!
//! | | |
//! | --- | --- |
//! | `tower` (default) | the layer for HTTP servers |
//! | `axum`, `tonic` | addresses of peers as these know them; `tonic` also answers gRPC |
//! | `tls` | URLs that begin with `rediss://`: encrypted connections, see [`Limiter::builder`] |
//! | `tracing` (default) | log lines: outages as warnings and faults of configuration as errors, each kind once a minute; servers that are left alone, and asked again |
//! | `metrics` | through the `metrics` facade, see below |
//!
//! | metric | labels | |
//! | --- | --- | --- |
//! | `ratelimit_decisions_total` | `policy`; `outcome`: `allowed`, `denied`, `shadow_denied`; `source`: `redis`, `deny_cache`, `memory`, `fallback_open`, `fallback_closed`, `fallback_local_share` | counter |
//! | `ratelimit_redis_seconds` | | histogram: how long Redis was waited for, whatever came of it |
//! | `ratelimit_redis_errors_total` | `kind`, as in [`ErrorKind`] | counter |
//! | `ratelimit_breaker_state` | `server` | gauge: 1 while a server is left alone |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod builder;
mod calls;
mod check;
mod clock;
mod concurrency;
mod decision;
mod deny_cache;
mod error;
mod fallback;
mod fleet;
mod guard;
#[cfg(feature = "tower")]
pub mod http;
mod key;
mod lease;
mod limiter;
mod memory;
mod observe;
mod places;
mod policy;
mod rule;
mod servers;
mod table;

pub use builder::Builder;
pub use check::{Check, Verdict};
pub use concurrency::ConcurrencyPolicy;
pub use decision::{Decision, Source};
pub use error::{Error, ErrorKind};
pub use fallback::Outage;
pub use guard::Guard;
pub use limiter::{Debit, Limiter};
pub use policy::{DAY, HOUR, MINUTE, Policy, PolicyError, Rate, SECOND};
