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
//!
//! A token bucket is narrow if the most it can have spent fits 64 bits; that follows from its parameters alone, so a state
//! has one form only. 44 bytes are the most that Redis' allocator puts in its 48-byte class as a string.

use std::ops::Deref;

use crate::decision::Decision;
use crate::fixed_window::{self, FixedWindow};
use crate::limiter::LimiterState;
use crate::quantity::{Capacity, Cost, Limit, Micros, Rate, Window};
use crate::token_bucket::{self, TokenBucket};

const TAG: [u8; 2] = [0xF5, b'L'];
const VERSION: u8 = 1;

const FIXED_WINDOW: u8 = 0x10;
const TOKEN_BUCKET_NARROW: u8 = 0x20;
const TOKEN_BUCKET_WIDE: u8 = 0x21;

const HEAD: usize = 4;
const LENGTHS: [usize; 3] = [36, 44, 52];
const LONGEST: usize = 52;

/// The state of any algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Of a [`FixedWindow`].
    FixedWindow(fixed_window::State),
    /// Of a [`TokenBucket`].
    TokenBucket(token_bucket::State),
}

/// Why bytes are no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They are something else, or a state that was cut, extended or made implausible.
    NoLimiter,
    /// They are a state that a newer version wrote.
    Newer,
}

impl State {
    /// What users call the algorithm.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::FixedWindow(_) => "fixed window",
            Self::TokenBucket(_) => "token bucket",
        }
    }

    /// See [`LimiterState::is_unused`].
    pub fn is_unused(&self, now: Micros) -> bool {
        match self {
            Self::FixedWindow(state) => state.is_unused(now),
            Self::TokenBucket(state) => state.is_unused(now),
        }
    }

    /// See [`LimiterState::unused_at`].
    pub fn unused_at(&self) -> Micros {
        match self {
            Self::FixedWindow(state) => state.unused_at(),
            Self::TokenBucket(state) => state.unused_at(),
        }
    }

    /// See [`LimiterState::peek`].
    pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
        match self {
            Self::FixedWindow(state) => state.peek(now, cost),
            Self::TokenBucket(state) => state.peek(now, cost),
        }
    }

    /// Whether some state has this length. Says "no" to most strings that are none without a look at their bytes.
    pub fn has_length(length: usize) -> bool {
        LENGTHS.contains(&length)
    }

    /// Reads a state.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let Some((&[tag0, tag1, version, form], fields)) = bytes.split_first_chunk::<HEAD>() else {
            return Err(Unreadable::NoLimiter);
        };
        if [tag0, tag1] != TAG || version == 0 {
            return Err(Unreadable::NoLimiter);
        }
        if version > VERSION {
            return Err(Unreadable::Newer);
        }
        let mut fields = Fields(fields);
        let state = match form {
            FIXED_WINDOW => fields.fixed_window().map(Self::FixedWindow),
            TOKEN_BUCKET_NARROW | TOKEN_BUCKET_WIDE => {
                fields.token_bucket(form).map(Self::TokenBucket)
            }
            _ => None,
        };
        state
            .filter(|_| fields.0.is_empty())
            .ok_or(Unreadable::NoLimiter)
    }

    /// The bytes of a state.
    pub fn encode(&self) -> Encoded {
        match self {
            Self::FixedWindow(state) => {
                let limiter = state.limiter();
                Encoded::of(FIXED_WINDOW)
                    .field(limiter.limit().get())
                    .field(limiter.window().as_micros())
                    .counts_follow()
                    .field(state.last().get())
                    .field(state.count())
            }
            Self::TokenBucket(state) => {
                let limiter = state.limiter();
                let form = form_of(limiter);
                let encoded = Encoded::of(form)
                    .field(limiter.capacity().get())
                    .field(limiter.rate().units())
                    .field(limiter.rate().micros())
                    .counts_follow()
                    .field(state.last().get());
                let [low, high] = halves(state.spent());
                if form == TOKEN_BUCKET_WIDE {
                    encoded.field(low).field(high)
                } else {
                    encoded.field(low)
                }
            }
        }
    }
}

impl From<fixed_window::State> for State {
    fn from(state: fixed_window::State) -> Self {
        Self::FixedWindow(state)
    }
}

impl TryFrom<State> for fixed_window::State {
    type Error = State;

    fn try_from(state: State) -> Result<Self, State> {
        match state {
            State::FixedWindow(state) => Ok(state),
            other => Err(other),
        }
    }
}

impl From<token_bucket::State> for State {
    fn from(state: token_bucket::State) -> Self {
        Self::TokenBucket(state)
    }
}

impl TryFrom<State> for token_bucket::State {
    type Error = State;

    fn try_from(state: State) -> Result<Self, State> {
        match state {
            State::TokenBucket(state) => Ok(state),
            other => Err(other),
        }
    }
}

/// The one form that a bucket with these parameters is stored in.
fn form_of(limiter: TokenBucket) -> u8 {
    if u64::try_from(limiter.most_spent()).is_ok() {
        TOKEN_BUCKET_NARROW
    } else {
        TOKEN_BUCKET_WIDE
    }
}

fn halves(value: u128) -> [u64; 2] {
    let bytes = value.to_le_bytes();
    let half = |at: usize| {
        let mut half = [0; 8];
        half.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(half)
    };
    [half(0), half(8)]
}

/// The bytes of a state. Dereferences to them.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; LONGEST],
    length: usize,
    counts_at: usize,
}

impl Encoded {
    fn of(form: u8) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..HEAD].copy_from_slice(&[TAG[0], TAG[1], VERSION, form]);
        Self {
            bytes,
            length: HEAD,
            counts_at: HEAD,
        }
    }

    fn field(mut self, value: u64) -> Self {
        let end = self.length + 8;
        self.bytes[self.length..end].copy_from_slice(&value.to_le_bytes());
        self.length = end;
        self
    }

    fn counts_follow(mut self) -> Self {
        self.counts_at = self.length;
        self
    }

    /// Where the bytes begin that have to be written over `old`, which must be a state of the same length: at the counts
    /// if the parameters are the same, else behind the head or at it.
    pub fn changed_from(&self, old: &[u8]) -> usize {
        [self.counts_at, HEAD]
            .into_iter()
            .find(|&from| self[..from] == old[..from])
            .unwrap_or(0)
    }
}

impl Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What is left to read of a state.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*field))
    }

    fn fixed_window(&mut self) -> Option<fixed_window::State> {
        let limiter = FixedWindow::new(
            Limit::new(self.next()?)?,
            Window::from_micros(self.next()?)?,
        );
        fixed_window::State::new(
            limiter,
            Micros::new(self.next()?)?,
            Cost::new(self.next()?)?,
        )
    }

    fn token_bucket(&mut self, form: u8) -> Option<token_bucket::State> {
        let capacity = Capacity::new(self.next()?)?;
        let limiter =
            TokenBucket::new(capacity, Rate::in_lowest_terms(self.next()?, self.next()?)?);
        if form != form_of(limiter) {
            return None;
        }
        let last = Micros::new(self.next()?)?;
        let low = u128::from(self.next()?);
        let high = if form == TOKEN_BUCKET_WIDE {
            u128::from(self.next()?)
        } else {
            0
        };
        token_bucket::State::new(limiter, last, high << 64 | low)
    }
}
