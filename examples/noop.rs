//! A module with a command of the same shape as a decision that decides nothing: the wall for measurements, against which
//! `scripts/gate` holds the real commands. And one that panics, to show that the server outlives it.
//!
//! It is made of the server layer of redis-rl alone, which knows no limiter.

#[path = "../src/server/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    missing_docs,
    reason = "it uses but a part of the layer"
)]
mod server;

use redis_module::{Context, RedisString, Status};
use server::{Access, Argument, ArgumentKind, Call, Command, EntryPoint, Error, Handler};
use server::{SERVER_CHECK, ServerAllocator};

struct Integers;

impl Handler for Integers {
    fn run(call: &Call<'_>) -> Result<(), Error> {
        call.reply_integers(&[1, 100, 99, 0, 60_000]);
        Ok(())
    }
}

struct Panic;

impl Handler for Panic {
    fn run(_: &Call<'_>) -> Result<(), Error> {
        panic!("on demand, with %s and %n");
    }
}

const KEY: Argument = Argument {
    name: c"key",
    kind: ArgumentKind::Key,
    optional: false,
};
const TEXT: Argument = Argument {
    name: c"text",
    kind: ArgumentKind::Text,
    optional: false,
};

const INTEGERS: Command = Command {
    name: c"noop.integers",
    arity: -4,
    flags: c"write fast",
    access: Access::ReadWrite,
    categories: c"write fast",
    summary: c"Replies with five integers.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arguments: &[KEY, TEXT, TEXT],
    entry_point: EntryPoint::of::<Integers>(),
};

const TABLE: [Command; 2] = [
    INTEGERS,
    Command {
        name: c"noop.panic",
        arity: 2,
        summary: c"Panics.",
        arguments: &[KEY],
        entry_point: EntryPoint::of::<Panic>(),
        ..INTEGERS
    },
];

fn init(context: &Context, arguments: &[RedisString]) -> Status {
    server::set_up(context, arguments.len(), &TABLE)
}

#[allow(missing_docs, reason = "the macro writes functions without docs")]
mod entry {
    use super::{SERVER_CHECK, ServerAllocator, init};
    use redis_module::redis_module;

    redis_module! {
        name: "noop",
        version: 1,
        allocator: (ServerAllocator, ServerAllocator),
        data_types: [SERVER_CHECK],
        init: init,
        commands: [],
    }
}
