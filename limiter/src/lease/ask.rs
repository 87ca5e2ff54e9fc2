//! What a call says.

use crate::quantity::{ArgumentError, Cost, MAX_EXACT, Name, Window};

/// The number of a node's call, from 1 to 2^53 − 1. Each call of a node has a higher one than the call before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(u64);

impl Seq {
    /// `None` for 0 and above 2^53 − 1.
    pub const fn new(number: u64) -> Option<Self> {
        if 0 < number && number <= MAX_EXACT { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Decimal digits. `argument` is the name that an error gives.
    pub fn parse(argument: &'static str, text: &[u8]) -> Result<Self, ArgumentError> {
        let number = Cost::parse(argument, text).ok().and_then(|units| Self::new(units.get()));
        number.ok_or(ArgumentError::new(argument, "an integer from 1 to 9007199254740991"))
    }
}

/// How long a row is kept without another call: 10 ms to 1 h, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u64);

impl Ttl {
    /// The shortest, in microseconds.
    pub const MIN: u64 = 10_000;
    /// The longest, in microseconds.
    pub const MAX: u64 = 3_600_000_000;

    /// From microseconds; `None` outside 10 ms … 1 h.
    pub const fn from_micros(micros: u64) -> Option<Self> {
        if Self::MIN <= micros && micros <= Self::MAX { Some(Self(micros)) } else { None }
    }

    /// Its length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// A duration, as [`Window::parse`] reads it. `argument` is the name that an error gives.
    pub fn parse(argument: &'static str, text: &[u8]) -> Result<Self, ArgumentError> {
        let micros = Window::parse(argument, text).ok().map(Window::as_micros);
        micros
            .and_then(Self::from_micros)
            .ok_or(ArgumentError::new(argument, "a duration from 10ms to 1h, such as 500ms or 5"))
    }
}

/// One call: what a node says it has, and what it wants to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Who calls: a name that is fresh for each process, so that none inherits what a dead one held.
    pub node: Name<'a>,
    /// The number of the call.
    pub seq: Seq,
    /// The tokens that the node has not spent.
    pub have: Cost,
    /// The tokens that it wants to have. Below `have` it gives back; 0 gives back everything and leaves.
    pub want: Cost,
    /// How long the row is kept at least.
    pub ttl: Ttl,
    /// Fewer tokens than these are not worth a call: the node would rather be told when so many are there. 0: any are.
    pub min: Cost,
}
