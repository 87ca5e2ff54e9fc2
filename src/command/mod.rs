//! The commands: one file each, in the same parts and order: grammar, decision, storing, reply.
//!
//! [`TABLE`] lists them. Registration, `COMMAND DOCS` and `docs/commands.md` all follow it.

mod args;
mod fixed;
mod lifetime;
mod peek;
mod reply;
mod store;
mod token_bucket;

use crate::server::{Access, Argument, ArgumentKind, Command, EntryPoint};

const KEY: Argument = Argument {
    name: c"key",
    kind: ArgumentKind::Key,
    optional: false,
};
const LIMIT: Argument = Argument {
    name: c"limit",
    kind: ArgumentKind::Integer,
    optional: false,
};
const CAPACITY: Argument = Argument {
    name: c"capacity",
    kind: ArgumentKind::Integer,
    optional: false,
};
const WINDOW: Argument = Argument {
    name: c"window",
    kind: ArgumentKind::Text,
    optional: false,
};
const RATE: Argument = Argument {
    name: c"rate",
    kind: ArgumentKind::Text,
    optional: false,
};
const COST: Argument = Argument {
    name: c"cost",
    kind: ArgumentKind::Integer,
    optional: true,
};

/// All commands.
pub const TABLE: [Command; 3] = [
    Command {
        name: c"rl.fixed",
        arity: -4,
        flags: c"write fast",
        access: Access::ReadWrite,
        categories: c"write fast",
        summary: c"Decides a call by a fixed window counter: at most `limit` units in each `window` of the clock.",
        complexity: c"O(1)",
        since: c"0.1.0",
        arguments: &[KEY, LIMIT, WINDOW, COST],
        entry_point: EntryPoint::of::<fixed::Fixed>(),
    },
    Command {
        name: c"rl.tokenbucket",
        arity: -4,
        flags: c"write fast",
        access: Access::ReadWrite,
        categories: c"write fast",
        summary: c"Decides a call by a token bucket: `capacity` units at once, refilled continuously at `rate`.",
        complexity: c"O(1)",
        since: c"0.1.0",
        arguments: &[KEY, CAPACITY, RATE, COST],
        entry_point: EntryPoint::of::<token_bucket::Bucket>(),
    },
    Command {
        name: c"rl.peek",
        arity: -2,
        flags: c"readonly fast",
        access: Access::Read,
        categories: c"read fast",
        summary: c"Tells what a call would be told by the limiter under a key, with its remembered parameters, and takes nothing.",
        complexity: c"O(1)",
        since: c"0.1.0",
        arguments: &[KEY, COST],
        entry_point: EntryPoint::of::<peek::Peek>(),
    },
];
