//! **redis-rl**: rate limits that hold across a fleet, as native commands of Redis and Valkey.
//!
//! The algorithms are in the crate [`rl_limiter`], which knows nothing of Redis. Here is the thin module around them:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`command`] | the commands, one file each, and the table that lists them; no unsafe code |
//! | [`top`] | which keys are denied most: heavy hitters in fixed memory, which knows no server |
//! | [`server`] | the server made safe; all the unsafe code; knows no limiter |
//!
//! A call goes one way: the arguments are read in place, the clock once, the key is opened, its state checked, the limiter
//! decides; only if something was taken it is written in place, replicated as plain Redis commands and signalled; five integers
//! go out.

#![deny(unsafe_code)]

#[cfg(any(
    lease_without_capacity_rule,
    lease_without_latest_expiry,
    lease_without_sequence,
    lease_without_piecewise_refill
))]
compile_error!("no module is built without a rule of the lease: these flags are for the limiters' tests");

pub mod command;
pub mod server;
pub mod top;

/// 10000 × major + 100 × minor + patch.
const VERSION: std::ffi::c_int = 100;

/// What the server is told about the module.
const MODULE: server::Module = server::Module {
    name: c"rl",
    version: VERSION,
    commands: &command::TABLE,
    settings: &command::SETTINGS,
    informer: server::Informer::of::<command::Info>(),
};

entry!(MODULE);
