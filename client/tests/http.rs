//! The layer for HTTP servers: what callers are told byte for byte, whom a request is counted for, and that a service
//! is called only when it is ready.
//!
//! The parts with a server need its feature: `cargo test -p redis-rl-client --test http --all-features`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "http/casebook.rs"]
mod casebook;
#[path = "http/delays.rs"]
mod delays;
#[path = "http/dialects.rs"]
mod dialects;
#[cfg(feature = "tonic")]
#[path = "http/grpc.rs"]
mod grpc;
#[path = "http/identity.rs"]
mod identity;
#[path = "http/readiness.rs"]
mod readiness;
#[path = "http/refusals.rs"]
mod refusals;
#[cfg(feature = "axum")]
#[path = "http/server.rs"]
mod server;
#[path = "http/several.rs"]
mod several;
#[path = "http/support.rs"]
mod support;
