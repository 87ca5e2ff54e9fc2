//! The client against real servers, over real sockets. One file a concern.
//!
//! `RL_SERVER` chooses the server (a path; else `redis-server`).
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, unused_imports, reason = "shared with the tests of the module, which need other parts")]
#[path = "../../../tests/support/mod.rs"]
mod support;

mod answers;
mod casebook;
mod cluster;
mod deny_cache;
mod examples;
mod failover;
mod fake;
mod fleet;
mod layer;
mod leased;
mod lifecycle;
mod load;
mod local_share;
#[cfg(all(feature = "metrics", feature = "tracing"))]
mod observed;
mod outage;
mod places;
mod processes;
#[allow(dead_code, reason = "shared with the test of the README, which needs other parts")]
mod programs;
#[path = "../recorded/mod.rs"]
mod recorded;
mod runtimes;
mod same;
mod seeds;
mod setting_up;
mod several;
mod states;
mod subjects;
#[cfg(feature = "tls")]
mod tls;
