//! The layer for HTTP servers: what callers are told byte for byte, whom a request is counted for, and that a service
//! is called only when it is ready.
//!
//! The parts with a server need its feature: `cargo test -p redis-rl-client --test http --all-features`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancelled;
mod casebook;
mod delays;
mod dialects;
#[cfg(feature = "tonic")]
mod grpc;
mod identity;
mod readiness;
mod refusals;
#[cfg(feature = "axum")]
mod server;
mod several;
mod support;
