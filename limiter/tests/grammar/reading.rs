//! The grammar once more, read naively: a text is a number if its parts are, and its value is a fraction of any size.

use num_bigint::BigInt;
use num_rational::BigRational;

/// Units of time and their microseconds.
const UNITS: [(&str, u64); 6] = [
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// The longest window in microseconds.
const LONGEST: u64 = 36_500 * 86_400_000_000;

/// `limit`, `capacity`, `cost`, `amount`.
pub fn integer(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    let value = digits(text)?;
    canonical(text).then_some(value)?.try_into().ok().filter(|&value: &u64| value < 1 << 53)
}

/// A window in microseconds.
pub fn window(text: &[u8]) -> Option<u64> {
    age(text).filter(|&length| length >= 1_000)
}

/// An age in microseconds.
pub fn age(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    // The longest unit that fits: `ms` ends in `s` too.
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (value, micros) = match unit {
        Some((unit, micros)) => (number(text.strip_suffix(unit)?)?, *micros),
        None => (number(text)?, 1_000_000),
    };
    let length = value * BigInt::from(micros);
    let length: u64 = length.is_integer().then(|| length.to_integer())?.try_into().ok()?;
    (length <= LONGEST).then_some(length)
}

/// A rate in units per microsecond, in lowest terms.
pub fn rate(text: &[u8]) -> Option<(u64, u64)> {
    let text = str::from_utf8(text).ok()?;
    let (number_text, per) = match text.split_once('/') {
        Some((number, per)) => {
            let alone = UNITS.iter().find(|(unit, _)| *unit == per);
            (number, alone.map_or_else(|| window(per.as_bytes()), |(_, micros)| Some(*micros))?)
        }
        None => (text, 1_000_000),
    };
    let rate = number(number_text)? / BigInt::from(per);
    let significant = number_text.replace('.', "").trim_start_matches('0').len();
    let terms =
        [rate.numer(), rate.denom()].map(|term| u64::try_from(term).ok().filter(|&term| 0 < term && term < 1 << 63));
    let [Some(units), Some(micros)] = terms else {
        return None;
    };
    (significant <= 15).then_some((units, micros))
}

/// `0`, or digits that start with another one; then perhaps a point and digits.
fn number(text: &str) -> Option<BigRational> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, digits(fraction).map(|_| fraction)?),
        None => (text, ""),
    };
    digits(whole).filter(|_| canonical(whole))?;
    let places = BigInt::from(10).pow(fraction.len().try_into().ok()?);
    Some(BigRational::new(digits(&format!("{whole}{fraction}"))?, places))
}

fn canonical(digits: &str) -> bool {
    digits == "0" || !digits.starts_with('0')
}

fn digits(text: &str) -> Option<BigInt> {
    let plain = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| text.parse().unwrap())
}
