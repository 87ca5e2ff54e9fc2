//! The module in real servers, over real sockets. One file a concern.
//!
//! `RL_SERVER` chooses the server (a path; else `redis-server`). Times are set, not waited for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, unused_imports, reason = "shared with the tests of the client, which need other parts")]
#[path = "../support/mod.rs"]
mod support;

mod access;
mod announcement;
mod atomicity;
mod casebook;
mod chain;
mod clock_steps;
mod cluster;
mod commands;
mod concurrent;
mod crashes;
mod failover;
mod fleet;
mod golden;
mod hostile;
mod image;
mod info;
mod installing;
mod io_threads;
mod keyspace;
mod known;
mod lease;
mod lifetime;
mod loading;
mod losses;
mod memory;
mod monitoring;
mod multi;
mod newer_layout;
mod notifications;
mod persistence;
mod quiet;
mod refusals;
mod replication;
mod resharding;
mod settling;
mod shard_failover;
mod sliding_log;
mod top;
mod traffic;
mod upgrading;
mod vectors;
mod wait_price;
mod wrong_input;
