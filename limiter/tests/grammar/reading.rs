//! The grammar once more, read naively: a text is a number if its parts are, and its value is a fraction of any size.

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

/// Units of time and their microseconds.
const UNITS: [(&str, u64); 6] = [
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

const LONGEST_WINDOW: u64 = 36_500 * 86_400_000_000;

/// `limit`, `capacity`, `cost`, `amount`.
pub fn integer(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    let value = digits(text)?;
    canonical(text).then_some(value)?.try_into().ok().filter(|&value: &u64| value < 1 << 53)
}

/// A window in microseconds.
pub fn window(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    // The longest unit that fits: `ms` ends in `s` too.
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (value, micros) = match unit {
        Some((unit, micros)) => (number(text.strip_suffix(unit)?)?, *micros),
        None => (number(text)?, 1_000_000),
    };
    let length = value * BigInt::from(micros);
    let length: u64 = length.is_integer().then(|| length.to_integer())?.try_into().ok()?;
    (1_000..=LONGEST_WINDOW).contains(&length).then_some(length)
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

/// Texts that are numbers, nearly numbers, or anything.
pub fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        3 => "(0|[1-9][0-9]{0,3})",
        2 => "(0|[1-9][0-9]{0,4})\\.[0-9]{1,8}",
        1 => "0\\.0{0,14}[1-9]{1,3}0{0,3}",
        1 => "[1-9][0-9]{0,6}\\.[0-9]{1,20}",
        1 => "[1-9][0-9]{11,21}",
        1 => "90071992547409[0-9]{2}",
        1 => "36500(\\.0{0,6}[0-9])?",
        1 => "(0|[1-9][0-9]{0,2})\\.[0-9]{0,2}(125|25|5|75)0{0,2}",
    ];
    let unit = "(ms|s|m|h|d|w)?";
    let well_formed = prop_oneof![
        2 => number.clone().boxed(),
        3 => (number.clone(), unit).prop_map(|(number, unit)| number + &unit).boxed(),
        4 => (number.clone(), number, unit).prop_map(|(number, per, unit)| format!("{number}/{per}{unit}")).boxed(),
        1 => "[1-9][0-9]{0,14}/(ms|s|m|h|d|w)".boxed(),
    ];
    let damaged = (
        well_formed.clone(),
        any::<prop::sample::Index>(),
        prop::sample::select(&b"0159./-+ eEmsShdw\0\xff,_"[..]),
        0..3,
    )
        .prop_map(|(text, at, byte, how)| {
            let mut bytes = text.into_bytes();
            match how {
                0 => bytes.insert(at.index(bytes.len() + 1), byte),
                1 => drop(bytes.remove(at.index(bytes.len()))),
                _ => {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes
        });
    prop_oneof![
        5 => well_formed.prop_map(String::into_bytes),
        4 => damaged,
        1 => prop::collection::vec(any::<u8>(), 0..24),
    ]
}

/// A window as somebody may write it, and its microseconds.
pub fn written_window() -> impl Strategy<Value = (String, u64)> {
    let micros = prop_oneof![1_000..2_000_u64, 1_000..=LONGEST_WINDOW, LONGEST_WINDOW - 1_000..=LONGEST_WINDOW];
    let unit = prop::sample::select(&UNITS[..]);
    (micros, unit, 0..30_usize).prop_map(|(micros, (unit, scale), zeros)| {
        // So many microseconds that their decimal ends. It has 13 places at most: a week is 2^13 × 5^8 × 189 µs.
        let part = without_twos_and_fives(scale);
        let above = micros.next_multiple_of(part);
        let micros = if above <= LONGEST_WINDOW { above } else { above - part };
        let digits = format!("{:014}", u128::from(micros) * 10_u128.pow(13) / u128::from(scale));
        let (whole, fraction) = digits.split_at(digits.len() - 13);
        let fraction = fraction.trim_end_matches('0').to_owned() + &"0".repeat(zeros);
        let point = if fraction.is_empty() { "" } else { "." };
        (format!("{whole}{point}{fraction}{unit}"), micros)
    })
}

fn without_twos_and_fives(mut value: u64) -> u64 {
    for factor in [2, 5] {
        while value.is_multiple_of(factor) {
            value /= factor;
        }
    }
    value
}
