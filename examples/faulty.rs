//! A module whose commands do to memory what no command may. `scripts/memcheck` runs them first: if valgrind says
//! nothing about them, it would say nothing about the real ones. Never load it elsewhere.
//!
//! It is made of the server layer of redis-rl alone, as `noop` is.

use std::hint::black_box;
use std::ptr;

#[macro_use]
#[path = "../src/server/mod.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "it uses but a part of the layer")]
mod server;

use server::{
    Access, Argument, ArgumentKind, Call, Command, EntryPoint, Error, Handler, Inform, Informer, Keys, Mode, Section,
    stats,
};

/// Reads behind the end of a string.
struct Beyond;

impl Handler for Beyond {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let byte = {
            let mut key = call.open(1, Mode::Change)?;
            let bytes = key.bytes();
            // SAFETY: none; this is the fault. Behind the bytes is a zero, and behind that nothing of ours.
            unsafe { ptr::read_volatile(bytes.as_ptr().add(bytes.len() + 4)) }
        };
        call.reply_integers(&[i64::from(byte)]);
        Ok(())
    }
}

/// Reads a string that was deleted.
struct Freed;

impl Handler for Freed {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let byte = {
            let mut key = call.open(1, Mode::Change)?;
            let bytes = key.bytes().as_ptr();
            key.delete();
            // SAFETY: none; this is the fault.
            unsafe { ptr::read_volatile(bytes) }
        };
        call.reply_integers(&[i64::from(byte)]);
        Ok(())
    }
}

/// Decides by a byte that nobody has written.
struct Unwritten;

impl Handler for Unwritten {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let bytes: Vec<u8> = Vec::with_capacity(100);
        // SAFETY: none; this is the fault.
        let byte = unsafe { ptr::read_volatile(black_box(&bytes).as_ptr()) };
        call.reply_integers(&[if byte > 100 { 1 } else { 0 }]);
        Ok(())
    }
}

/// Forgets what it took.
struct Lost;

impl Handler for Lost {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        std::mem::forget(black_box(vec![1_u8; 12_345]));
        call.reply_integers(&[0]);
        Ok(())
    }
}

/// What `INFO` tells: as of every module of this layer.
struct Info;

impl Inform for Info {
    fn tell(info: &mut Section<'_>) {
        info.number("errors", stats::ERRORS.get());
        info.number("panics_caught", stats::PANICS.get());
    }
}

const KEY: Argument = Argument { name: c"key", kind: ArgumentKind::Key, optional: false };

const BEYOND: Command = Command {
    name: c"faulty.beyond",
    arity: 2,
    flags: c"write",
    access: Access::ReadWrite,
    keys: Keys::First,
    categories: c"write",
    summary: c"Reads behind the end of a string.",
    complexity: c"O(1)",
    since: c"0.1.0",
    arguments: &[KEY],
    entry_point: EntryPoint::of::<Beyond>(),
};

const TABLE: [Command; 4] = [
    BEYOND,
    Command {
        name: c"faulty.freed",
        summary: c"Reads a string that was deleted.",
        entry_point: EntryPoint::of::<Freed>(),
        ..BEYOND
    },
    Command {
        name: c"faulty.unwritten",
        summary: c"Decides by a byte that nobody has written.",
        entry_point: EntryPoint::of::<Unwritten>(),
        ..BEYOND
    },
    Command {
        name: c"faulty.lost",
        summary: c"Forgets what it took.",
        entry_point: EntryPoint::of::<Lost>(),
        ..BEYOND
    },
];

const MODULE: server::Module =
    server::Module { name: c"faulty", version: 1, commands: &TABLE, settings: &[], informer: Informer::of::<Info>() };

entry!(MODULE);
