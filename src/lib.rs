//! **redis-rl**: rate limits that hold across a fleet, as native commands of Redis and Valkey.
//!
//! The algorithms are in the crate [`rl_limiter`], which knows nothing of Redis. Here is the thin module around them:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`command`] | the commands, one file each, and the table that lists them; no unsafe code |
//! | [`server`] | the server made safe; all the unsafe code; knows no limiter |
//!
//! A call goes one way: the arguments are read in place, the clock once, the key is opened, its state checked, the limiter
//! decides; only if something was taken it is written in place, replicated as plain Redis commands and signalled; five integers
//! go out.

#![deny(unsafe_code)]

pub mod command;
pub mod server;

/// What the server calls to load and unload the module.
#[allow(missing_docs, reason = "the macro writes functions without docs")]
mod entry {
    use redis_module::{Context, RedisString, Status, redis_module};

    use crate::command::TABLE;
    use crate::server::{self, SERVER_CHECK, ServerAllocator, may_unload};

    /// The module's version as `MODULE LIST` shows it: 10000 × major + 100 × minor + patch.
    const VERSION: i32 = 100;

    fn init(context: &Context, arguments: &[RedisString]) -> Status {
        server::set_up(context, arguments.len(), &TABLE)
    }

    redis_module! {
        name: "rl",
        version: VERSION,
        allocator: (ServerAllocator, ServerAllocator),
        data_types: [SERVER_CHECK],
        init: init,
        deinit: may_unload,
        commands: [],
    }
}
