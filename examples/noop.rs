//! A module with a command of the same shape as a decision that decides nothing: the wall for measurements, against which
//! `scripts/gate` holds the real commands. And one that panics, to show that the server outlives it.
//!
//! It is made of the server layer of redis-rl alone, which knows no limiter.

#[macro_use]
#[path = "../src/server/mod.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "it uses but a part of the layer")]
mod server;

use server::{
    Access, Argument, ArgumentKind, Call, Command, EntryPoint, Error, Handler, Inform, Informer, Keys, Section, stats,
};

struct Integers;

impl Handler for Integers {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        call.reply_integers(&[1, 100, 99, 0, 60_000]);
        Ok(())
    }
}

struct Panic;

impl Handler for Panic {
    fn run(_: &mut Call<'_>) -> Result<(), Error> {
        panic!("on demand, with %s and %n");
    }
}

struct Info;

impl Inform for Info {
    fn tell(info: &mut Section<'_>) {
        info.number("errors", stats::ERRORS.get());
        info.number("panics_caught", stats::PANICS.get());
    }
}

const KEY: Argument = Argument { name: c"key", kind: ArgumentKind::Key, optional: false };
const TEXT: Argument = Argument { name: c"text", kind: ArgumentKind::Text, optional: false };

const INTEGERS: Command = Command {
    name: c"noop.integers",
    arity: -4,
    flags: c"write fast",
    keys: Keys::First,
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

const MODULE: server::Module =
    server::Module { name: c"noop", version: 1, commands: &TABLE, settings: &[], informer: Informer::of::<Info>() };

entry!(MODULE);
