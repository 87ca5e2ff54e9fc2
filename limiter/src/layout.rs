//! States as bytes.
//!
//! The bytes live where any client can write (an ordinary Redis string), so nothing about them is believed: the head must name a tag, version,
//! kind and form that this crate knows, the length must be the one that the form demands, and every field must lie in its
//! range and fit the others. What fails is no limiter; it is reported, never repaired.
//!
//! All integers are little-endian. Parameters come before counts, so what an ordinary call changes is one run of bytes at the end.
//!
//! | bytes | field |
//! | --- | --- |
//! | 2 | tag: `F5` (in no UTF-8 text) and `4C` |
//! | 1 | version |
//! | 1 | kind (high four bits) and form (low four bits) |
//! | … | parameters, then the time of the last call that took something, then the counts |
//!
//! | kind | form | parameters | counts | length |
//! | --- | --- | --- | --- | --- |
//! | 1 fixed window | 0 | limit 8, window in µs 8 | time 8, count 8 | 36 |
//! | 2 token bucket | 0 narrow | capacity 8, rate 8 + 8 | time 8, spent parts 8 | 44 |
//! | 2 token bucket | 1 wide | capacity 8, rate 8 + 8 | time 8, spent parts 16 | 52 |
//! | 3 sliding window | 0 | limit 8, window in µs 8 | time 8, current 8, previous 8 | 44 |
//! | 4 leaky bucket | 0, 1 | as a token bucket | time 8, level in parts 8 or 16 | 44, 52 |
//! | 5 sliding window log | 0 | see [`sliding_log`] | | from 103 on |
//! | 6 concurrency limit | 0 | limit 8 | a row for each holder | from 48 on |
//! | 7 token bucket with leases | 0 | as a token bucket | time 8, spent parts 16, a row for each node | from 96 on |
//!
//! A holder's row has its name in a slot, then units (56 bits, the name's length in the high 8), ttl and expiry in µs; before all
//! rows are how many there are (2 bytes), the words of a slot (1) and of the rest (1). The length says for how many there is room.
//!
//! A bucket is narrow if the most it can have spent fits 64 bits; that follows from its parameters alone, so a state
//! has one form only. 44 bytes are the most that Redis' allocator puts in its 48-byte class as a string.

use std::ops::Deref;

use crate::concurrency;
use crate::decision::Decision;
use crate::fixed_window::{self, FixedWindow};
use crate::leaky_bucket;
use crate::lease;
use crate::limiter::{Fact, LimiterState, Refundable};
use crate::quantity::{Age, Capacity, Cost, Limit, Micros, Rate, Window};
use crate::sliding_log;
use crate::sliding_window::{self, SlidingWindow};
use crate::token_bucket::{self, TokenBucket};

const TAG: [u8; 2] = [0xF5, b'L'];

/// The version of the layout that states are written in.
pub const WRITES: u8 = 1;
/// The newest version of the layout that states are read in. A version is written one release after it can be read, and not
/// earlier: so any release can be put back by the one before it, and both can work on the same keys meanwhile.
pub const READS_UP_TO: u8 = 1;
const _: () = assert!(0 < WRITES && WRITES <= READS_UP_TO);

const FIXED_WINDOW: u8 = 0x10;
const TOKEN_BUCKET: u8 = 0x20;
const SLIDING_WINDOW: u8 = 0x30;
const LEAKY_BUCKET: u8 = 0x40;
pub(crate) const SLIDING_LOG: u8 = 0x50;
pub(crate) const CONCURRENCY: u8 = 0x60;
pub(crate) const LEASES: u8 = 0x70;
/// The bits of a kind; the others are its form.
const KIND: u8 = 0xF0;
/// The form of a bucket whose amounts take more than 64 bits.
const WIDE: u8 = 0x01;

/// Bytes of tag, version and kind.
pub(crate) const HEAD: usize = 4;
/// Bytes of a field.
const FIELD: usize = 8;
const LENGTHS: [usize; 3] = [36, 44, 52];
const LONGEST: usize = 52;

/// Defines [`State`] and what all kinds share. A kind is listed once, with its number and what users call it.
macro_rules! kinds {
    ($($variant:ident($state:ty), $kind:ident, $name:literal;)*) => {
        /// The state of any algorithm that keeps a few numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum State {
            $(#[doc = concat!("Of a ", $name, ".")] $variant($state),)*
        }

        impl State {
            /// What users call the algorithm.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// The time of the last call that took or gave back something.
            pub const fn last(&self) -> Micros {
                match self { $(Self::$variant(state) => state.last(),)* }
            }

            /// See [`LimiterState::is_unused`].
            #[inline]
            pub fn is_unused(&self, now: Micros) -> bool {
                match self { $(Self::$variant(state) => state.is_unused(now),)* }
            }

            /// See [`LimiterState::unused_at`].
            #[inline(always)]
            pub fn unused_at(&self) -> Micros {
                match self { $(Self::$variant(state) => state.unused_at(),)* }
            }

            /// See [`LimiterState::describe`].
            pub fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact)) {
                match self { $(Self::$variant(state) => state.describe(tell),)* }
            }

            /// See [`LimiterState::peek`].
            pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
                match self { $(Self::$variant(state) => state.peek(now, cost),)* }
            }

            /// Reads a state.
            pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
                match kind_of(bytes)? & KIND {
                    $($kind => <$state>::try_from(bytes).map(Self::$variant),)*
                    _ => Err(Unreadable::NoLimiter),
                }
            }

            /// The bytes of a state.
            #[inline(always)]
            pub fn encode(&self) -> Encoded {
                match self { $(Self::$variant(state) => state.write($kind),)* }
            }
        }

        $(
            impl From<$state> for State {
                fn from(state: $state) -> Self {
                    Self::$variant(state)
                }
            }

            impl TryFrom<State> for $state {
                type Error = State;

                fn try_from(state: State) -> Result<Self, State> {
                    match state {
                        State::$variant(state) => Ok(state),
                        other => Err(other),
                    }
                }
            }

            /// Reads a state of this kind.
            impl TryFrom<&[u8]> for $state {
                type Error = Unreadable;

                #[inline]
                fn try_from(bytes: &[u8]) -> Result<Self, Unreadable> {
                    let kind = kind_of(bytes)?;
                    let (form, fields) = (kind ^ $kind, Fields(bytes.get(HEAD..).unwrap_or_default()));
                    Self::read(form, fields).ok_or(Unreadable::NoLimiter)
                }
            }
        )*
    };
}

kinds! {
    FixedWindow(fixed_window::State), FIXED_WINDOW, "fixed window";
    TokenBucket(token_bucket::State), TOKEN_BUCKET, "token bucket";
    SlidingWindow(sliding_window::State), SLIDING_WINDOW, "sliding window";
    LeakyBucket(leaky_bucket::State), LEAKY_BUCKET, "leaky bucket";
}

/// What is stored under a key: a state, or a view over one that is too big to be a value.
#[derive(Clone, Copy)]
pub enum Stored<'a> {
    /// The state of an algorithm that keeps a few numbers.
    State(State),
    /// A sliding window log.
    SlidingLog(sliding_log::State<'a>),
    /// A concurrency limit.
    Concurrency(concurrency::State<'a>),
    /// A token bucket of which nodes hold slices.
    Leases(lease::State<'a>),
}

impl<'a> Stored<'a> {
    /// Whether something stored may have this length. Says "no" to most strings that are none without a look at their bytes.
    pub fn has_length(length: usize) -> bool {
        LENGTHS.contains(&length)
            || concurrency::State::has_length(length)
            || lease::State::has_length(length)
            || sliding_log::State::has_length(length)
    }

    /// Reads what is stored.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        if LENGTHS.contains(&bytes.len()) {
            return State::decode(bytes).map(Self::State);
        }
        match kind_of(bytes)? {
            SLIDING_LOG => sliding_log::State::read(bytes).map(Self::SlidingLog).ok_or(Unreadable::NoLimiter),
            LEASES => lease::State::read(bytes).map(Self::Leases).ok_or(Unreadable::NoLimiter),
            CONCURRENCY => concurrency::State::read(bytes).map(Self::Concurrency).ok_or(Unreadable::NoLimiter),
            _ => Err(Unreadable::NoLimiter),
        }
    }

    /// What users call the algorithm.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::State(state) => state.kind(),
            Self::SlidingLog(_) => "sliding window log",
            Self::Concurrency(_) => "concurrency",
            Self::Leases(_) => "token bucket",
        }
    }

    /// The time of the last call that took or gave back something; of a log that of its newest entry. `None` of holders, each of which
    /// has its own.
    pub fn last(&self) -> Option<Micros> {
        match self {
            Self::State(state) => Some(state.last()),
            Self::SlidingLog(log) => Some(log.last()),
            Self::Concurrency(_) => None,
            Self::Leases(leases) => Some(leases.bucket().last()),
        }
    }

    /// See [`LimiterState::is_unused`].
    pub fn is_unused(&self, now: Micros) -> bool {
        match self {
            Self::State(state) => state.is_unused(now),
            Self::SlidingLog(log) => log.is_unused(now),
            Self::Concurrency(holders) => holders.is_unused(now),
            Self::Leases(leases) => leases.is_unused(now),
        }
    }

    /// See [`LimiterState::describe`]; holders as they are at `now`.
    pub fn describe(&self, now: Micros, tell: &mut dyn FnMut(&'static str, Fact)) {
        match self {
            Self::State(state) => state.describe(tell),
            Self::SlidingLog(log) => log.describe(tell),
            Self::Concurrency(holders) => holders.describe(now, tell),
            Self::Leases(leases) => leases.describe(now, tell),
        }
    }

    /// See [`LimiterState::peek`].
    pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
        match self {
            Self::State(state) => state.peek(now, cost),
            Self::SlidingLog(log) => log.peek(now, cost),
            Self::Concurrency(holders) => holders.peek(now, cost),
            Self::Leases(leases) => leases.peek(now, cost),
        }
    }
}

/// Why bytes are no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They are something else, or a state that was cut, extended or made implausible.
    NoLimiter,
    /// They are a state that a newer version wrote.
    Newer,
}

/// The algorithm can't take back what was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRefundable;

impl State {
    /// See [`Refundable::refund`].
    pub fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> Result<Option<Self>, NotRefundable> {
        match self {
            Self::FixedWindow(state) => Ok(state.refund(now, amount, age).map(Self::from)),
            Self::TokenBucket(state) => Ok(state.refund(now, amount, age).map(Self::from)),
            Self::SlidingWindow(state) => Ok(state.refund(now, amount, age).map(Self::from)),
            Self::LeakyBucket(_) => Err(NotRefundable),
        }
    }

    /// How many bytes the state takes.
    #[inline(always)]
    pub fn length(&self) -> usize {
        match self {
            Self::FixedWindow(_) => HEAD + 4 * FIELD,
            Self::SlidingWindow(_) => HEAD + 5 * FIELD,
            Self::TokenBucket(state) => bucket_length(state),
            Self::LeakyBucket(state) => bucket_length(state.as_token_bucket()),
        }
    }
}

/// The bytes in front of a state: tag, version, kind and form.
pub(crate) const fn head_of(kind: u8) -> [u8; HEAD] {
    [TAG[0], TAG[1], WRITES, kind]
}

/// Kind and form of a state.
#[inline]
fn kind_of(bytes: &[u8]) -> Result<u8, Unreadable> {
    match *bytes {
        [tag0, tag1, version, kind, ..] if [tag0, tag1] == TAG && version > 0 => {
            if version > READS_UP_TO {
                Err(Unreadable::Newer)
            } else {
                Ok(kind)
            }
        }
        _ => Err(Unreadable::NoLimiter),
    }
}

/// The one form that a bucket with these parameters is stored in.
#[inline]
fn form_of(limiter: TokenBucket) -> u8 {
    if u64::try_from(limiter.most_spent()).is_ok() { 0 } else { WIDE }
}

fn bucket_length(state: &token_bucket::State) -> usize {
    let counts = if form_of(state.limiter()) == WIDE { 3 } else { 2 };
    HEAD + (3 + counts) * FIELD
}

#[inline]
fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// The bytes of a state. Dereferences to them.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; LONGEST],
    length: usize,
    counts_at: usize,
}

impl Encoded {
    #[inline]
    fn of(kind: u8) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..HEAD].copy_from_slice(&head_of(kind));
        Self { bytes, length: HEAD, counts_at: HEAD }
    }

    /// Of a kind with a window, as far as such are alike: the counts are missing.
    #[inline]
    fn of_window(kind: u8, limit: Limit, window: Window, last: Micros) -> Self {
        Self::of(kind).field(limit.get()).field(window.as_micros()).counts_follow().field(last.get())
    }

    #[inline]
    fn field(mut self, value: u64) -> Self {
        let end = self.length + 8;
        self.bytes[self.length..end].copy_from_slice(&value.to_le_bytes());
        self.length = end;
        self
    }

    #[inline]
    fn counts_follow(mut self) -> Self {
        self.counts_at = self.length;
        self
    }

    /// Where the bytes begin that have to be written over `old`, which must be a state of the same length: at the counts
    /// if the parameters are the same, else behind the head if that is, else at its start.
    #[inline(always)]
    pub fn changed_from(&self, old: &[u8]) -> usize {
        let is_same = |length: usize| old.get(..length) == Some(&self.bytes[..length]);
        if is_same(self.counts_at) {
            self.counts_at
        } else if is_same(HEAD) {
            HEAD
        } else {
            0
        }
    }
}

impl Deref for Encoded {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The bytes of a state behind the head.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// Just so many fields; `None` if they are more or fewer.
    #[inline]
    fn all<const COUNT: usize>(self) -> Option<[u64; COUNT]> {
        let (fields, []) = self.0.as_chunks::<FIELD>() else { return None };
        <[[u8; FIELD]; COUNT]>::try_from(fields).ok().map(|fields| fields.map(u64::from_le_bytes))
    }
}

/// How the fields of a state follow each other.
trait Form: Sized {
    /// Reads a state of this form, 0 for that of most; `None` if a form or field is out of its range.
    fn read(form: u8, fields: Fields<'_>) -> Option<Self>;

    /// The bytes of a state of this kind.
    fn write(&self, kind: u8) -> Encoded;
}

impl Form for fixed_window::State {
    #[inline(always)]
    fn read(form: u8, fields: Fields<'_>) -> Option<Self> {
        let [limit, window, last, count] = fields.all().filter(|_| form == 0)?;
        let limiter = FixedWindow::new(Limit::new(limit)?, Window::from_micros(window)?);
        Self::new(limiter, Micros::new(last)?, count)
    }

    #[inline(always)]
    fn write(&self, kind: u8) -> Encoded {
        let limiter = self.limiter();
        Encoded::of_window(kind, limiter.limit(), limiter.window(), self.last()).field(self.count())
    }
}

impl Form for sliding_window::State {
    #[inline(always)]
    fn read(form: u8, fields: Fields<'_>) -> Option<Self> {
        let [limit, window, last, current, previous] = fields.all().filter(|_| form == 0)?;
        let limiter = SlidingWindow::new(Limit::new(limit)?, Window::from_micros(window)?);
        Self::new(limiter, Micros::new(last)?, current, previous)
    }

    #[inline(always)]
    fn write(&self, kind: u8) -> Encoded {
        let limiter = self.limiter();
        Encoded::of_window(kind, limiter.limit(), limiter.window(), self.last())
            .field(self.current())
            .field(self.previous())
    }
}

impl Form for token_bucket::State {
    #[inline(always)]
    fn read(form: u8, fields: Fields<'_>) -> Option<Self> {
        let [capacity, units, micros, last, low, high] = if form == WIDE {
            fields.all()?
        } else {
            let [capacity, units, micros, last, low] = fields.all()?;
            [capacity, units, micros, last, low, 0]
        };
        let limiter = TokenBucket::new(Capacity::new(capacity)?, Rate::in_lowest_terms(units, micros)?);
        if form != form_of(limiter) {
            return None;
        }
        Self::new(limiter, Micros::new(last)?, u128::from(high) << 64 | u128::from(low))
    }

    #[inline(always)]
    fn write(&self, kind: u8) -> Encoded {
        let limiter = self.limiter();
        let form = form_of(limiter);
        let encoded = Encoded::of(kind | form)
            .field(limiter.capacity().get())
            .field(limiter.rate().units())
            .field(limiter.rate().micros())
            .counts_follow()
            .field(self.last().get());
        let [low, high] = halves(self.spent());
        if form == WIDE { encoded.field(low).field(high) } else { encoded.field(low) }
    }
}

impl Form for leaky_bucket::State {
    #[inline(always)]
    fn read(form: u8, fields: Fields<'_>) -> Option<Self> {
        token_bucket::State::read(form, fields).map(Self::from_token_bucket)
    }

    #[inline(always)]
    fn write(&self, kind: u8) -> Encoded {
        self.as_token_bucket().write(kind)
    }
}
