//! What may stand on a command line: tables of texts that are taken, with the exact value, and of texts that are not; then
//! random texts, against a second reading of the same grammar in fractions of any size.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod random;
#[path = "grammar/reading.rs"]
mod reading;
#[path = "grammar/texts.rs"]
mod texts;

use proptest::prelude::*;
use random::check;
use rl_limiter::{Age, ArgumentError, Capacity, Cost, Limit, Rate, Window};

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

fn limit(text: &[u8]) -> Result<u64, ArgumentError> {
    Limit::parse("limit", text).map(Limit::get)
}

fn window(text: &[u8]) -> Result<u64, ArgumentError> {
    Window::parse("window", text).map(Window::as_micros)
}

fn rate(text: &[u8]) -> Result<(u64, u64), ArgumentError> {
    Rate::parse("rate", text).map(|rate| (rate.units(), rate.micros()))
}

/// Texts that are no number to any argument. What some parser somewhere takes for one is of most interest.
const NOT_NUMBERS: &str = "
    - + . / -1 -0 +1 +0 00 01 007 0x10 0X10 0b1 0o7 1e3 1E3 1e+3 1e-3 1.5e3 nan NaN NAN inf Inf -inf infinity
    1_000 1,000 1'000 1,5 1.000.000 1..5 .5 5. 5.s -.5 1u 1u64 1f 1l true null one $1 1% (1 [1 *
    −1 ١ １ ½ 1²";

/// The same, with blanks, controls, and what isn't even text.
const NOT_WORDS: &[&[u8]] = &[
    b"",
    b" ",
    b" 1",
    b"1 ",
    b"\t1",
    b"1\t",
    b"1\n",
    b"1\r\n",
    b"1\0",
    b"\x001",
    b"1\x0060",
    b"\xff",
    b"1\xff",
    b"\xc2\xa01",
    b"1\xc2\xa0",
    b"\xef\xbb\xbf1",
];

#[test]
fn limits_costs_and_capacities_are_plain_digits() {
    let taken: &[(&[u8], u64)] = &[
        (b"0", 0),
        (b"1", 1),
        (b"9", 9),
        (b"10", 10),
        (b"100", 100),
        (b"1000000000", 1_000_000_000),
        (b"4294967295", 4_294_967_295),
        (b"4294967296", 4_294_967_296),
        (b"9007199254740990", 9_007_199_254_740_990),
        (b"9007199254740991", 9_007_199_254_740_991),
    ];
    for &(text, value) in taken {
        assert_eq!(limit(text), Ok(value), "{}", text.escape_ascii());
        assert_eq!(Capacity::parse("capacity", text).map(Capacity::get), Ok(value));
        assert_eq!(Cost::parse("cost", text).map(Cost::get), Ok(value));
    }

    refuse_words(
        limit,
        "9007199254740992 9007199254741000 9999999999999999 10000000000000000 9223372036854775807
         9223372036854775808 18446744073709551615 18446744073709551616 18446744073709551617
         340282366920938463463374607431768211457 0.0 0.5 1.0 1.5 9007199254740991.0
         09007199254740991 0000000000000001 1s 1/s 1ms 0s",
    );
    refuse_words(limit, NOT_NUMBERS);
    refuse_all(limit, NOT_WORDS);
}

#[test]
fn windows_are_whole_microseconds_from_a_millisecond_to_a_century() {
    let taken: &[(&[u8], u64)] = &[
        (b"1", SECOND),
        (b"60", 60 * SECOND),
        (b"1s", SECOND),
        (b"1ms", 1_000),
        (b"250ms", 250_000),
        (b"1m", 60 * SECOND),
        (b"1h", 3_600 * SECOND),
        (b"1d", DAY),
        (b"1w", 7 * DAY),
        (b"1.0", SECOND),
        (b"1.5", 1_500_000),
        (b"1.50", 1_500_000),
        (b"0.5", 500_000),
        (b"0.001", 1_000),
        (b"0.001001", 1_001),
        (b"0.0010000000000000000000000000000000000", 1_000),
        (b"1.001ms", 1_001),
        (b"600001.5ms", 600_001_500),
        (b"0.5d", DAY / 2),
        (b"0.25w", 7 * DAY / 4),
        (b"0.0001220703125w", 73_828_125),
        (b"4.0001220703125w", 28 * DAY + 73_828_125),
        (b"0.0001220703125d", 10_546_875),
        (b"36499.9998779296875d", 36_500 * DAY - 10_546_875),
        (b"3153600000", 36_500 * DAY),
        (b"3153600000.000000", 36_500 * DAY),
        (b"3153599999.999999", 36_500 * DAY - 1),
        (b"3153600000000ms", 36_500 * DAY),
        (b"52560000m", 36_500 * DAY),
        (b"876000h", 36_500 * DAY),
        (b"36500d", 36_500 * DAY),
        (b"36500.0d", 36_500 * DAY),
        (b"5214w", 5_214 * 7 * DAY),
    ];
    for &(text, micros) in taken {
        assert_eq!(window(text), Ok(micros), "{}", text.escape_ascii());
    }

    // Too short, too long, or between two microseconds.
    refuse_words(
        window,
        "0 0s 0ms 0d 0.0 0.000 0.000w 0.999ms 0.000999 0.0009999999999999999999 0.0000001
         0.00000001h 0.00000005m 36500.000001d 36500.00000000001157d 36501d 5215w
         3153600000.000001 3153600001 3153600000001ms 1.0000001 1.0001ms
         1.00000000000000000000000000000000000000001s 0.0010000000000000000001 0.333333333m
         9007199254740991 9223372036854775807 18446744073709551615 18446744073709551616
         18446744073709551616ms",
    );
    // 2^64 microseconds and a second more, which would wrap around.
    refuse_words(
        window,
        "18446744074710 18446744073710.551616 30501072.8400d 18446744073709552616ms
         213503982334602d",
    );
    // Units in other spellings, and two of them.
    refuse_words(
        window,
        "1S 1MS 1Ms 1mS 1M 1H 1D 1W 1us 1ns 1sec 1min 1hr 1y 1mo 1s1s 1h30m 1ss 1mss 1sm s ms d w
         1/s 1/1 PT1S 1:00 01s 00.5 00s .5s 5.ms 1.s 1.5.5s 1e3s 1e3ms -1s +1s 0x1d 1.-5",
    );
    refuse_all(window, &[b"1\xc2\xb5s", b"1 s", b"1s ", b" 1s", b"1 ms", b"1s\0", b"1\0s"]);
    refuse_words(window, NOT_NUMBERS);
    refuse_all(window, NOT_WORDS);
}

#[test]
fn rates_are_fractions_in_lowest_terms() {
    let taken: &[(&[u8], (u64, u64))] = &[
        (b"1", (1, SECOND)),
        (b"10", (1, 100_000)),
        (b"0.5", (1, 2 * SECOND)),
        (b"1.50", (3, 2 * SECOND)),
        (b"1.0", (1, SECOND)),
        (b"8000", (1, 125)),
        (b"1000000", (1, 1)),
        (b"3000000", (3, 1)),
        (b"100/60", (1, 600_000)),
        (b"100/m", (1, 600_000)),
        (b"100/1m", (1, 600_000)),
        (b"100/60s", (1, 600_000)),
        (b"100/60000ms", (1, 600_000)),
        (b"100/0.5", (1, 5_000)),
        (b"5/h", (1, 720 * SECOND)),
        (b"7/3", (7, 3 * SECOND)),
        (b"7/w", (1, DAY)),
        (b"1000/250ms", (1, 250)),
        (b"1/ms", (1, 1_000)),
        (b"1/s", (1, SECOND)),
        (b"1/d", (1, DAY)),
        (b"1/1.001ms", (1, 1_001)),
        (b"0.5/1.001ms", (1, 2_002)),
        (b"0.2/1.001ms", (1, 5_005)),
        (b"7.7/1.001ms", (1, 130)),
        (b"1000000000/d", (5, 432)),
        (b"1/36500d", (1, 36_500 * DAY)),
        (b"0.001/36500d", (1, 36_500 * DAY * 1_000)),
        (b"999999999999999", (999_999_999_999_999, SECOND)),
        (b"999999999999999/ms", (999_999_999_999_999, 1_000)),
        (b"100000000000000", (100_000_000, 1)),
        (b"99999999999999.9", (999_999_999_999_999, 10 * SECOND)),
        (b"0.0000000000002", (1, 5_000_000_000_000 * SECOND)),
        (b"123.456789012345", (24_691_357_802_469, 200_000_000_000 * SECOND)),
        (b"0.123456789012", (30_864_197_253, 250_000_000_000 * SECOND)),
        (b"0.000000000001", (1, 1_000_000_000_000 * SECOND)),
        (b"0.0000000000010", (1, 1_000_000_000_000 * SECOND)),
    ];
    for &(text, terms) in taken {
        assert_eq!(rate(text), Ok(terms), "{}", text.escape_ascii());
    }

    // Nothing, and nothing per something.
    refuse_words(rate, "0 0.0 0.000 0/60 0/s 0.0/m 0.0000000000000000000000000");
    // More than 15 digits, even where the last say nothing.
    refuse_words(
        rate,
        "1234567890123456 1000000000000000 1000000000000000/d 1.000000000000000
         0.1234567890123456 10.00000000000000 0.1000000000000000 9007199254740991
         18446744073709551616 18446744073709551617/s 123456789012345.6",
    );
    // A denominator of 2^63 microseconds or more.
    refuse_words(
        rate,
        "0.0000000000001 0.00000000000005 0.000000000000001 0.123456789012345 0.1/2922808.4d
         0.00001/36500d 1.23456789012345/3 0.00000000000000000001
         0.000000000000000000000000000000000000000000000000000000000001",
    );
    // No window, a wrong one, or a second one.
    refuse_words(
        rate,
        "5/ / /m /60 // 5//60 5/60/60 5/0 5/0s 5/0.0 5/0.5ms 5/0.999ms 5/36501d 5/1.0000001 5/M
         5/S 5/H 5/us 5/sec 5/min 5/-1 5/+1 5/01 5/1e3 5/.5 5/5. 5/1h30m 5/nan 5/inf
         5/18446744073709551616 5/18446744074710 5per60 5:60 5s 5ms 100m 0.5.5 05 05/60 00.5
         .5/60 5./60",
    );
    refuse_all(rate, &[b"5/ 60", b"5 /60", b"5/60 ", b" 5/60", b"100/60\0", b"100\0/60", b"100/\xff", b"100\\60"]);
    refuse_words(rate, NOT_NUMBERS);
    refuse_all(rate, NOT_WORDS);
}

/// However small the denominator, and wherever the point stands.
#[test]
fn rates_have_at_most_15_digits() {
    for digits in 13..=18_usize {
        let number = "5".to_owned() + &"0".repeat(digits - 1);
        let with_point = |at| format!("{}.{}", &number[..at], &number[at..]);
        for text in (1..digits).map(with_point).chain([number.clone(), number.clone() + "/d"]) {
            assert_eq!(rate(text.as_bytes()).is_ok(), digits <= 15, "{text}");
        }
        // Zeros in front say nothing, wherever they stand; zeros behind do.
        let text = format!("0.00000000000{number}");
        assert_eq!(rate(text.as_bytes()).is_ok(), digits <= 15, "{text}");
    }
}

/// The largest denominator, and one more.
#[test]
fn the_terms_of_a_rate_end_below_2_to_the_63() {
    // 10^13 × 922 337 is the last multiple of 10^13 below 2^63.
    assert_eq!(rate(b"0.0000000000001/922.337ms"), Ok((1, 9_223_370_000_000_000_000)));
    assert!(rate(b"0.0000000000001/922.338ms").is_err());
}

/// Texts that only their length can hurt. They are looked at once, whatever they hold.
#[test]
fn megabytes_are_refused_or_read_at_once() {
    let long = |text: &str, byte: &str| format!("{text}{}", byte.repeat(4 << 20)).into_bytes();
    for text in [
        long("", "1"),
        long("", "0"),
        long("0.", "1"),
        long("1.", "9"),
        long("", "\0"),
        long("1", " "),
        long("0.", "0"),
        long("1/", "0"),
    ] {
        assert!(
            limit(&text).is_err() && window(&text).is_err() && rate(&text).is_err(),
            "{} …",
            text[..4].escape_ascii()
        );
    }
    let zeros = long("1.", "0");
    assert_eq!(window(&zeros), Ok(SECOND));
    assert!(rate(&zeros).is_err(), "these are digits");
    assert_eq!(rate(&long("5/1.", "0")), Ok((1, SECOND / 5)));
    let mut late = long("0.", "0");
    late.push(b'1');
    assert!(window(&late).is_err() && rate(&late).is_err());
}

#[test]
fn errors_name_the_argument_and_what_is_allowed() {
    let errors = [
        limit(b"-1").unwrap_err(),
        Capacity::parse("capacity", b"1e9").unwrap_err(),
        Cost::parse("cost", b"9007199254740992").unwrap_err(),
        window(b"5 s").unwrap_err(),
        Window::parse("ttl", b"36501d").unwrap_err(),
        rate(b"0").unwrap_err(),
    ];
    let names = ["limit", "capacity", "cost", "window", "ttl", "rate"];
    for (error, name) in errors.iter().zip(names) {
        let text = error.to_string();
        assert!(text.starts_with(&format!("{name} must be ")), "{text}");
        assert!(text.is_ascii() && !text.contains(['\n', '\r']), "{text}");
    }
    for error in &errors[..3] {
        assert!(error.to_string().ends_with(" must be an integer from 0 to 9007199254740991"));
    }
    assert_eq!(errors[3].to_string(), "window must be a duration from 1ms to 36500d, such as 60, 250ms or 1h");
    let rates = errors[5].to_string();
    assert!(["above 0", "15 digits", "per second", "per duration"].iter().all(|part| rates.contains(part)), "{rates}");

    // Whatever an error holds out as an example is taken.
    let examples = |error: &ArgumentError| -> Vec<String> {
        let text = error.to_string();
        let (_, list) = text.split_once("such as ").unwrap();
        list.replace(" or ", ", ").split(", ").map(str::to_owned).collect()
    };
    assert!(examples(&errors[3]).iter().all(|text| window(text.as_bytes()).is_ok()));
    assert!(examples(&errors[5]).iter().all(|text| rate(text.as_bytes()).is_ok()));
}

/// Texts with blanks between them.
fn refuse_words<T: std::fmt::Debug>(parse: impl Fn(&[u8]) -> Result<T, ArgumentError>, texts: &str) {
    let texts: Vec<&[u8]> = texts.split_ascii_whitespace().map(str::as_bytes).collect();
    refuse_all(parse, &texts);
}

fn refuse_all<T: std::fmt::Debug>(parse: impl Fn(&[u8]) -> Result<T, ArgumentError>, texts: &[&[u8]]) {
    for text in texts {
        let parsed = parse(text);
        assert!(parsed.is_err(), "{:?} was read as {parsed:?}", text.escape_ascii().to_string());
    }
}

#[test]
fn any_text_is_read_as_the_grammar_says() {
    check(5_000, texts::any_text(), |text| {
        prop_assert_eq!(limit(&text).ok(), reading::integer(&text));
        prop_assert_eq!(window(&text).ok(), reading::window(&text));
        prop_assert_eq!(Age::parse("AGE", &text).ok().map(Age::as_micros), reading::age(&text));
        prop_assert_eq!(rate(&text).ok(), reading::rate(&text));
        Ok(())
    });
}

#[test]
fn a_window_that_is_written_out_is_read_back() {
    check(5_000, texts::written_window(), |(text, micros)| {
        prop_assert_eq!(reading::window(text.as_bytes()), Some(micros));
        prop_assert_eq!(window(text.as_bytes()), Ok(micros));
        Ok(())
    });
}
