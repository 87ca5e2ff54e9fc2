//! Texts for the parsers.

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
