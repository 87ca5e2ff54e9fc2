//! The commands: one file each, in the same parts and order: grammar, decision, storing, reply.
//!
//! [`TABLE`] lists them. Registration, `COMMAND DOCS` and `docs/commands.md` all follow it.

mod algorithm;
mod args;
mod concurrent;
mod counted;
mod debit;
mod fixed;
mod info;
mod inspect;
mod leaky;
mod lease;
mod lifetime;
mod multi;
mod peek;
mod refund;
mod release;
mod reply;
mod settle;
mod sliding;
mod sliding_log;
mod store;
mod token_bucket;
mod top;

pub use info::Info;

use std::ffi::CStr;

use crate::server::{Access, Argument, ArgumentKind, Command, EntryPoint, Keys, Setting};

const KEY: Argument = Argument { name: c"key", kind: ArgumentKind::Key, optional: false };
const LIMIT: Argument = Argument { name: c"limit", kind: ArgumentKind::Integer, optional: false };
const CAPACITY: Argument = Argument { name: c"capacity", kind: ArgumentKind::Integer, optional: false };
const WINDOW: Argument = Argument { name: c"window", kind: ArgumentKind::Text, optional: false };
const RATE: Argument = Argument { name: c"rate", kind: ArgumentKind::Text, optional: false };
const TTL: Argument = Argument { name: c"ttl", kind: ArgumentKind::Text, optional: false };
const HOLDER: Argument = Argument { name: c"holder", kind: ArgumentKind::Text, optional: false };
const COST: Argument = Argument { name: c"cost", kind: ArgumentKind::Integer, optional: true };

const AMOUNT: Argument = Argument { name: c"amount", kind: ArgumentKind::Integer, optional: false };
const RENEW_ONLY: Argument = Argument { name: c"renew-only", kind: ArgumentKind::Keyword(c"XX"), optional: true };
const NODE: Argument = Argument { name: c"node", kind: ArgumentKind::Text, optional: false };
const SEQ: Argument = Argument { name: c"seq", kind: ArgumentKind::Integer, optional: false };
const HAVE: Argument = Argument { name: c"have", kind: ArgumentKind::Integer, optional: false };
const WANT: Argument = Argument { name: c"want", kind: ArgumentKind::Integer, optional: false };
const MIN: Argument = Argument { name: c"least", kind: ArgumentKind::TextAfter(c"MIN"), optional: true };
const ROWS: Argument = Argument { name: c"n", kind: ArgumentKind::Integer, optional: true };
const AGE: Argument = Argument { name: c"duration", kind: ArgumentKind::TextAfter(c"AGE"), optional: true };

/// What `RL.MULTI` takes for each of its limits.
const ONE_OF_SEVERAL: [Argument; 5] = [
    KEY,
    Argument { name: c"kind", kind: ArgumentKind::OneOf(&KINDS), optional: false },
    Argument { name: c"p1", kind: ArgumentKind::Integer, optional: false },
    Argument { name: c"p2", kind: ArgumentKind::Text, optional: false },
    Argument { name: c"cost", kind: ArgumentKind::Integer, optional: false },
];
const KINDS: [Argument; 5] = [
    kind(c"fixed", c"FIXED"),
    kind(c"sliding", c"SLIDING"),
    kind(c"slidinglog", c"SLIDINGLOG"),
    kind(c"tokenbucket", c"TOKENBUCKET"),
    kind(c"leaky", c"LEAKY"),
];

const fn kind(name: &'static CStr, word: &'static CStr) -> Argument {
    Argument { name, kind: ArgumentKind::Keyword(word), optional: false }
}

/// `rl.max-log-entries`: the most entries that a sliding window log may have.
static MAX_LOG_ENTRIES: Setting = Setting::new(c"max-log-entries", 100_000, 10_000_000);

/// `rl.max-holders`: the most holders that a concurrency limit may have.
static MAX_HOLDERS: Setting = Setting::new(c"max-holders", 1_000, 10_000);

/// `rl.notify-denied`: whether a denied call is an event of its key.
static NOTIFY_DENIED: Setting = Setting::no_or_yes(c"notify-denied");

/// The most that `rl.top-keys` may be.
const MOST_TOP_KEYS: u32 = 1_000;

/// `rl.top-keys`: for how many keys it is counted how often they were denied; 0 for none.
static TOP_KEYS: Setting = Setting::or_off(c"top-keys", 0, MOST_TOP_KEYS as i64).telling(top::resize);

/// All settings.
pub static SETTINGS: [&Setting; 4] = [&MAX_LOG_ENTRIES, &NOTIFY_DENIED, &TOP_KEYS, &MAX_HOLDERS];

/// What the commands that decide have in common.
const DECIDING: Command = Command {
    name: c"",
    arity: -4,
    flags: c"write fast",
    keys: Keys::First,
    access: Access::ReadWrite,
    categories: c"write fast",
    summary: c"",
    complexity: c"O(1)",
    since: c"0.1.0",
    arguments: &[],
    entry_point: EntryPoint::NONE,
};

/// What the commands that only look have in common.
const LOOKING: Command =
    Command { flags: c"readonly fast", access: Access::Read, categories: c"read fast", ..DECIDING };

/// All commands.
pub const TABLE: [Command; 14] = [
    Command {
        name: c"rl.fixed",
        summary: c"Decides a call by a fixed window counter: at most `limit` units in each `window` of the clock.",
        arguments: &[KEY, LIMIT, WINDOW, COST],
        entry_point: EntryPoint::of::<fixed::Fixed>(),
        ..DECIDING
    },
    Command {
        name: c"rl.sliding",
        summary: c"Decides a call by a sliding window counter: at most `limit` units in the last `window`, estimated from two counts.",
        arguments: &[KEY, LIMIT, WINDOW, COST],
        entry_point: EntryPoint::of::<sliding::Sliding>(),
        ..DECIDING
    },
    Command {
        name: c"rl.slidinglog",
        summary: c"Decides a call by a sliding window log: at most `limit` units in any stretch as long as `window`, exactly.",
        complexity: c"O(log n), n the entries; amortized when the log grows",
        arguments: &[KEY, LIMIT, WINDOW, COST],
        entry_point: EntryPoint::of::<sliding_log::Log>(),
        ..DECIDING
    },
    Command {
        name: c"rl.tokenbucket",
        summary: c"Decides a call by a token bucket: `capacity` units at once, refilled continuously at `rate`.",
        arguments: &[KEY, CAPACITY, RATE, COST],
        entry_point: EntryPoint::of::<token_bucket::Bucket>(),
        ..DECIDING
    },
    Command {
        name: c"rl.leaky",
        summary: c"Decides a call by a leaky bucket as a queue: up to `capacity` units wait, `rate` is how they pass; tells how long.",
        arguments: &[KEY, CAPACITY, RATE, COST],
        entry_point: EntryPoint::of::<leaky::Leaky>(),
        ..DECIDING
    },
    Command {
        name: c"rl.multi",
        arity: -6,
        keys: Keys::Every(5),
        summary: c"Decides a call by several limits at once, all or nothing: if one denies, none takes anything.",
        complexity: c"O(n), n the limits; of each sliding window log O(log m), m its entries",
        arguments: &[Argument { name: c"limit", kind: ArgumentKind::Repeated(&ONE_OF_SEVERAL), optional: false }],
        entry_point: EntryPoint::of::<multi::Multi>(),
        ..DECIDING
    },
    Command {
        name: c"rl.concurrent",
        arity: -5,
        summary: c"Decides who holds a place: at most `limit` units at once, each for `ttl` unless it is renewed or released.",
        complexity: c"O(n), n the holders",
        arguments: &[KEY, LIMIT, TTL, HOLDER, COST, RENEW_ONLY],
        entry_point: EntryPoint::of::<concurrent::Concurrent>(),
        ..DECIDING
    },
    Command {
        name: c"rl.release",
        arity: 3,
        summary: c"Gives back a holder's place; tells how many units that are.",
        complexity: c"O(n), n the holders",
        arguments: &[KEY, HOLDER],
        entry_point: EntryPoint::of::<release::Release>(),
        ..DECIDING
    },
    Command {
        name: c"rl.peek",
        arity: -2,
        summary: c"Tells what a call would be told by the limiter under a key, with its remembered parameters, and takes nothing.",
        complexity: c"O(1); of a sliding window log O(log n), n the entries; of a concurrency limit O(n), n the holders",
        arguments: &[KEY, COST],
        entry_point: EntryPoint::of::<peek::Peek>(),
        ..LOOKING
    },
    Command {
        name: c"rl.refund",
        arity: -3,
        summary: c"Gives back what turned out not to be used, never beyond unused and never what has come back by itself.",
        complexity: c"O(1); of a sliding window log O(log n), n the entries",
        arguments: &[KEY, AMOUNT, AGE],
        entry_point: EntryPoint::of::<refund::Refund>(),
        ..DECIDING
    },
    Command {
        name: c"rl.debit",
        arity: 5,
        summary: c"Takes from a token bucket whatever is there, down to a balance of −capacity.",
        arguments: &[KEY, CAPACITY, RATE, AMOUNT],
        entry_point: EntryPoint::of::<debit::Debit>(),
        ..DECIDING
    },
    Command {
        name: c"rl.lease",
        arity: -9,
        summary: c"Takes a slice of a token bucket for a node that decides alone: it has `have` unspent tokens and wants `want`.",
        complexity: c"O(n), n the nodes that hold leases; O(n log n) where some have expired or a wait is told",
        arguments: &[KEY, CAPACITY, RATE, NODE, SEQ, HAVE, WANT, TTL, MIN],
        entry_point: EntryPoint::of::<lease::Lease>(),
        ..DECIDING
    },
    Command {
        name: c"rl.inspect",
        arity: 2,
        flags: c"readonly",
        categories: c"read",
        summary: c"Tells people what is under a key: kind, parameters and state.",
        complexity: c"O(n), n the size of the state",
        arguments: &[KEY],
        entry_point: EntryPoint::of::<inspect::Inspect>(),
        ..LOOKING
    },
    Command {
        name: c"rl.top",
        arity: -1,
        flags: c"admin",
        access: Access::NoKey,
        categories: c"admin dangerous",
        summary: c"Tells which keys of this server were denied most in this minute and the one before.",
        complexity: c"O(k log k), k the keys that are kept",
        arguments: &[ROWS],
        entry_point: EntryPoint::of::<top::Top>(),
        ..LOOKING
    },
];
