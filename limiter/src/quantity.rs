//! Limits, costs, windows, rates and times.
//!
//! Each is checked when it is made, within bounds that keep all later arithmetic from overflowing, so the algorithms have
//! no error paths. The parsers are the grammar of the commands' arguments, and their errors are what a user reads.

use std::fmt;

/// 2^53 − 1, the largest integer that a reader who keeps numbers as doubles gets exactly. Budgets and replies end here.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// An argument outside its grammar or range. Displays as `window must be a duration from 1ms to 36500d, …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    argument: &'static str,
    allowed: &'static str,
}

impl ArgumentError {
    pub(crate) const fn new(argument: &'static str, allowed: &'static str) -> Self {
        Self { argument, allowed }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}", self.argument, self.allowed)
    }
}

impl std::error::Error for ArgumentError {}

/// Units from 0 to 2^53 − 1. A unit is what the caller counts: requests, tokens, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units(u64);

/// The most that a window admits. 0 admits nothing: a kill switch.
pub type Limit = Units;
/// The most that a bucket holds. 0 admits nothing: a kill switch.
pub type Capacity = Units;
/// What a call takes.
pub type Cost = Units;

impl Units {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// What a call takes unless it says otherwise.
    pub const ONE: Self = Self(1);

    /// `None` above 2^53 − 1.
    pub const fn new(units: u64) -> Option<Self> {
        if units <= MAX_EXACT { Some(Self(units)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Decimal digits without sign, space or leading zeros. `argument` is the name that an error gives.
    pub fn parse(argument: &'static str, text: &[u8]) -> Result<Self, ArgumentError> {
        integer(text)
            .and_then(Self::new)
            .ok_or(ArgumentError { argument, allowed: "an integer from 0 to 9007199254740991" })
    }
}

/// A moment, in microseconds since the Unix epoch, below 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(u64);

impl Micros {
    /// The latest moment; what would lie beyond it is taken as it.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// `None` from 2^62 on.
    pub const fn new(micros: u64) -> Option<Self> {
        if micros <= Self::MAX.0 { Some(Self(micros)) } else { None }
    }

    /// A moment as a clock reads it: before the epoch counts as the epoch, beyond [`Micros::MAX`] as that.
    pub fn saturating(micros: i64) -> Self {
        Self(micros.max(0).unsigned_abs().min(Self::MAX.0))
    }

    /// Microseconds since the Unix epoch.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The moment `micros` later, at most [`Micros::MAX`].
    pub(crate) fn plus(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros).min(Self::MAX.0))
    }

    /// The moment `micros` earlier, at least the epoch.
    pub(crate) fn minus(self, micros: u64) -> Self {
        Self(self.0.saturating_sub(micros))
    }

    /// Microseconds since `earlier`; 0 if that is later.
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A length of time from 1 ms to 36500 days, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(u64);

impl Window {
    const LEAST: u64 = 1_000;
    const MOST: u64 = 36_500 * DAY;

    /// 36500 days.
    pub const MAX: Self = Self(Self::MOST);

    /// From microseconds; `None` outside 1 ms … 36500 d.
    pub const fn from_micros(micros: u64) -> Option<Self> {
        if Self::LEAST <= micros && micros <= Self::MOST { Some(Self(micros)) } else { None }
    }

    /// Its length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// A number of seconds, or a number with `ms`, `s`, `m`, `h`, `d` or `w`. `argument` is the name that an error gives.
    pub fn parse(argument: &'static str, text: &[u8]) -> Result<Self, ArgumentError> {
        duration(text)
            .and_then(Self::from_micros)
            .ok_or(ArgumentError { argument, allowed: "a duration from 1ms to 36500d, such as 60, 250ms or 1h" })
    }

    /// How many windows lie between that which holds `earlier` and that which holds `later`.
    pub(crate) fn between(self, earlier: Micros, later: Micros) -> u64 {
        (later.0 / self.0).saturating_sub(earlier.0 / self.0)
    }

    /// The start of the window, aligned to the Unix epoch, that holds `moment`.
    pub(crate) fn start(self, moment: Micros) -> Micros {
        Micros(moment.0 - moment.0 % self.0)
    }

    /// The end, itself outside, of the window that holds `moment`.
    pub(crate) fn end(self, moment: Micros) -> Micros {
        self.start(moment).plus(self.0)
    }
}

/// In the largest unit of which it is a whole number, else in milliseconds: as [`Window::parse`] reads it.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1_000)]
            .into_iter()
            .find(|(_, unit)| self.0.is_multiple_of(*unit));
        match whole {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => {
                let (whole, fraction) = (self.0 / 1_000, self.0 % 1_000);
                write!(f, "{whole}.{fraction:03}ms")
            }
        }
    }
}

/// How long ago something was taken: from 0 to 36500 days, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(u64);

impl Age {
    /// Just now.
    pub const ZERO: Self = Self(0);

    /// From microseconds; `None` above 36500 d.
    pub const fn from_micros(micros: u64) -> Option<Self> {
        if micros <= Window::MOST { Some(Self(micros)) } else { None }
    }

    /// Its length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// A number of seconds, or a number with `ms`, `s`, `m`, `h`, `d` or `w`. `argument` is the name that an error gives.
    pub fn parse(argument: &'static str, text: &[u8]) -> Result<Self, ArgumentError> {
        duration(text)
            .and_then(Self::from_micros)
            .ok_or(ArgumentError { argument, allowed: "a duration from 0 to 36500d, such as 60, 250ms or 1h" })
    }
}

/// Who holds something: any 1 to 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// The most bytes.
    pub const LONGEST: usize = 64;

    /// `None` if there are no bytes or more than 64.
    pub const fn new(bytes: &'a [u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > Self::LONGEST { None } else { Some(Self(bytes)) }
    }

    /// The bytes.
    pub const fn get(self) -> &'a [u8] {
        self.0
    }

    /// Any bytes. `argument` is the name that an error gives.
    pub fn parse(argument: &'static str, text: &'a [u8]) -> Result<Self, ArgumentError> {
        Self::new(text).ok_or(ArgumentError { argument, allowed: "1 to 64 bytes" })
    }
}

/// Units per time, kept exactly: a fraction of units per microsecond in lowest terms, both terms from 1 to 2^63 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    units: u64,
    micros: u64,
}

impl Rate {
    const MAX_TERM: u64 = i64::MAX.unsigned_abs();
    const MAX_DIGITS: u32 = 15;

    /// `units` every `micros` microseconds, brought to lowest terms; `None` if a term is then 0 or above 2^63 − 1.
    pub fn new(units: u64, micros: u64) -> Option<Self> {
        if units == 0 || micros == 0 {
            return None;
        }
        let divisor = gcd(units, micros);
        Self::in_lowest_terms(units / divisor, micros / divisor)
    }

    /// Two terms that are taken to be in lowest terms; `None` if one is 0 or above 2^63 − 1.
    pub(crate) const fn in_lowest_terms(units: u64, micros: u64) -> Option<Self> {
        if units == 0 || units > Self::MAX_TERM || micros == 0 || micros > Self::MAX_TERM {
            return None;
        }
        Some(Self { units, micros })
    }

    /// The numerator: so many units …
    pub const fn units(self) -> u64 {
        self.units
    }

    /// The denominator: … every so many microseconds.
    pub const fn micros(self) -> u64 {
        self.micros
    }

    /// `<number>` per second, `<number>/<window>`, or `<number>/<unit>` for a window of one. `argument` is the name that an
    /// error gives.
    pub fn parse(argument: &'static str, text: &[u8]) -> Result<Self, ArgumentError> {
        Self::from_text(text).ok_or(ArgumentError {
            argument,
            allowed: "a number above 0 of at most 15 digits, per second or per duration, such as 10, 0.5, 100/60 or 5/h",
        })
    }

    fn from_text(text: &[u8]) -> Option<Self> {
        // What most callers write: a whole number per second.
        if text.len() <= Self::MAX_DIGITS as usize
            && let Some(units) = integer(text)
        {
            return Self::new(units, SECOND);
        }
        let (number, rest) = Decimal::split(text)?;
        let window = match rest {
            [] => SECOND,
            [b'/', window @ ..] => match unit(window) {
                Some(unit) => unit,
                None => Window::from_micros(duration(window)?)?.as_micros(),
            },
            _ => return None,
        };
        if number.mantissa == 0 || number.digits > Self::MAX_DIGITS {
            return None;
        }
        // mantissa / (10^places × window) in lowest terms, without ever forming a product that could overflow.
        let (mut units, mut scale) = (number.mantissa, 1_u64);
        for _ in 0..number.places {
            for factor in [2, 5] {
                if units % factor == 0 {
                    units /= factor;
                } else {
                    scale = scale.checked_mul(factor)?;
                }
            }
        }
        let divisor = gcd(units, window);
        Self::in_lowest_terms(units / divisor, scale.checked_mul(window / divisor)?)
    }
}

/// As [`Rate::parse`] reads it, if its terms then are within what that takes.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The least multiple of both terms by which the time is in whole milliseconds.
        let factor = 1_000 / gcd(self.micros, 1_000);
        let millis = u128::from(self.micros) * u128::from(factor) / 1_000;
        let units = u128::from(self.units) * u128::from(factor);
        let whole = [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND)]
            .into_iter()
            .find(|(_, unit)| millis.is_multiple_of(u128::from(unit / 1_000)));
        match whole {
            Some((name, unit)) => write!(f, "{units}/{}{name}", millis / u128::from(unit / 1_000)),
            None => write!(f, "{units}/{millis}ms"),
        }
    }
}

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The length in microseconds of a unit of time that is written out.
fn unit(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"ms" => 1_000,
        b"s" => SECOND,
        b"m" => MINUTE,
        b"h" => HOUR,
        b"d" => DAY,
        b"w" => 7 * DAY,
        _ => return None,
    })
}

/// `<number>` of seconds or `<number><unit>`, in microseconds; `None` if it is no such thing, no whole number of
/// microseconds, or beyond 64 bits.
fn duration(text: &[u8]) -> Option<u64> {
    let (number, rest) = Decimal::split(text)?;
    let unit = if rest.is_empty() { SECOND } else { unit(rest)? };
    if number.places == 0 {
        return number.mantissa.checked_mul(unit);
    }
    let scale = u128::from(10_u64.checked_pow(number.places)?);
    let micros = u128::from(number.mantissa) * u128::from(unit);
    if micros % scale != 0 {
        return None;
    }
    u64::try_from(micros / scale).ok()
}

/// Decimal digits without leading zeros, at most 2^53 − 1.
fn integer(text: &[u8]) -> Option<u64> {
    let canonical = matches!(text, [b'0'] | [b'1'..=b'9', ..]);
    // 16 digits hold 2^53 − 1 and can't overflow.
    if !canonical || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |value, &byte| Some(value * 10 + digit(byte)?))
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

/// A number as it is written: `mantissa / 10^places`.
struct Decimal {
    mantissa: u64,
    /// Digits behind the point, without trailing zeros.
    places: u32,
    /// Digits as written, without leading zeros.
    digits: u32,
}

impl Decimal {
    /// Splits a number off the front of `text`: `0` or digits that start with 1 – 9, then perhaps a point and digits.
    /// `None` if there is none, or if it takes more than 64 bits.
    fn split(text: &[u8]) -> Option<(Self, &[u8])> {
        let (mut mantissa, mut length) = (0_u64, 0);
        while let Some(digit) = text.get(length).and_then(|&byte| digit(byte)) {
            mantissa = mantissa.checked_mul(10)?.checked_add(digit)?;
            length += 1;
        }
        let (whole, rest) = text.split_at(length);
        if !matches!(whole, [b'0'] | [b'1'..=b'9', ..]) {
            return None;
        }
        let digits = if mantissa == 0 { 0 } else { u32::try_from(length).ok()? };
        let mut number = Self { mantissa, places: 0, digits };
        let [b'.', rest @ ..] = rest else {
            return Some((number, rest));
        };
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = rest.split_at(length);
        if fraction.is_empty() {
            return None;
        }
        let kept = fraction.iter().rposition(|&byte| byte != b'0').map_or(0, |last| last + 1);
        for &byte in &fraction[..kept] {
            number.push(byte)?;
            number.places += 1;
        }
        if number.digits > 0 {
            number.digits = number.digits.saturating_add(u32::try_from(fraction.len() - kept).ok()?);
        }
        Some((number, rest))
    }

    fn push(&mut self, byte: u8) -> Option<()> {
        self.mantissa = self.mantissa.checked_mul(10)?.checked_add(digit(byte)?)?;
        if self.mantissa > 0 {
            self.digits += 1;
        }
        Some(())
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
