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
//!     .nodes(4) // servers that share the limits, until Redis has told how many there are
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
//! | the bucket is [leased](Policy::leased), and hot | here, with tokens that Redis granted ahead of time | [`Source::Lease`] |
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
//! # More than one check a request
//!
//! | | |
//! | --- | --- |
//! | [`Limiter::check`] | one limit |
//! | [`Limiter::check_all`] | several: all allow it, or nothing is taken. Those of one subject are one call, which decides all or nothing |
//! | [`Limiter::acquire`] | a place for what goes on for a while, by a [`Policy::concurrent`]: a [`Guard`] that is renewed until it is dropped |
//! | [`Limiter::refund`], [`Limiter::debit`] | what turns out later to have cost less, or more |
//!
//! # Leases
//!
//! A limit that all requests share, such as a site's, would cost a call to one key for each. A token bucket that is [leased](Policy::leased) is
//! decided in this process instead, from tokens that Redis grants it for a fraction of a second, before those that it has are used up. The sum
//! over all servers stays within capacity + rate × time, whatever is lost, late, or crashes: tokens leave the bucket when they are granted, no
//! server spends what it was not granted or what may have been forfeited, and the bucket refills only to its capacity less what is granted.
//!
//! With the demand λ of this server, the capacity C, the rate R and K servers a lease lasts T = clamp(max(50 ms, 4 / λ), 2 round trips, min(C / 4R, 1 s)),
//! is of clamp(λT, 1, C / 2K) tokens, and is kept by Redis for clamp(4T, 500 ms, 5 s) without news. That costs about 1.5 K / T calls a second however many
//! requests there are. Nothing is leased where that does not pay: where λT < 2 (1 once it is leased), C < 4 K (2 K), or a call takes more than a quarter
//! of the time that Redis keeps a lease. Then, and for the requests of the first milliseconds, Redis decides each by itself.
//!
//! An outage that is shorter than a lease is kept is not noticed. In a longer one the [`Outage`] policy decides, and what was leased when it began counts
//! as used of this server's part. Where Redis loses its data, as it may in a failover, the bucket starts full while leases are out: up to capacity + what
//! is leased is admitted on top, once.
//!
//! When the last clone of a limiter is dropped, or a key is idle, what is left goes back; of a process that ends without that, when the time has passed.
//!
//! # The number of servers
//!
//! [`Outage::LocalShare`] divides limits by the number of servers. Each says once a second at Redis that it is there ([`Builder::fleet`]) and is told how many
//! are, so that is known when Redis is gone. Who is silent for two seconds is no longer counted.
//!
//! # Permissions
//!
//! A user at Redis needs the commands that are used, as in `+rl.fixed +rl.refund`, on the keys `rl:*`; `+rl.multi` for several limits at once, without
//! which each is asked by itself; `+rl.lease` for leases and for the number of servers, which is else what [`Builder::nodes`] says; `+rl.concurrent` and
//! `+rl.release` for places. `+ping`, by which a silent server is looked at, may be missing; in a cluster also `+cluster|slots` and `+asking`.
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
//! | `ratelimit_decisions_total` | `policy`; `outcome`: `allowed`, `denied`, `shadow_denied`; `source`: `redis`, `lease`, `deny_cache`, `memory`, `fallback_open`, `fallback_closed`, `fallback_local_share` | counter |
//! | `ratelimit_redis_seconds` | | histogram: how long Redis was waited for, whatever came of it |
//! | `ratelimit_redis_errors_total` | `kind`, as in [`ErrorKind`] | counter |
//! | `ratelimit_lease_requests_total` | `policy` | counter: calls that lease |
//! | `ratelimit_lease_tokens_held` | `policy` | gauge: tokens that this process held when it last asked, of all keys |
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
