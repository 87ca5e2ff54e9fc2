//! Any bytes as every argument: each parser takes what the grammar, read naively, takes, and what it takes is within
//! its range.

use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Age, ArgumentError, Capacity, Cost, Limit, Rate, Window};

use crate::reading;

const LONGEST: u64 = 36_500 * 86_400_000_000;
const MOST_TERM: u64 = (1 << 63) - 1;

/// Reads `text` by every parser.
pub fn check(text: &[u8]) {
    let units = [Limit::parse("limit", text), Capacity::parse("capacity", text), Cost::parse("cost", text)];
    for read in units {
        let read = told(read, "").map(Limit::get);
        assert!(read.is_none_or(|units| units <= MAX_EXACT));
        assert_eq!(read, reading::integer(text));
    }

    let window = told(Window::parse("window", text), "window");
    assert_eq!(window.map(Window::as_micros), reading::window(text));
    if let Some(window) = window {
        assert!((1_000..=LONGEST).contains(&window.as_micros()));
        assert_eq!(Window::parse("window", window.to_string().as_bytes()), Ok(window), "{window}");
    }

    let age = told(Age::parse("AGE", text), "AGE");
    assert_eq!(age.map(Age::as_micros), reading::age(text));
    assert!(age.is_none_or(|age| age.as_micros() <= LONGEST));

    let rate = told(Rate::parse("rate", text), "rate");
    assert_eq!(rate.map(|rate| (rate.units(), rate.micros())), reading::rate(text));
    if let Some(rate) = rate {
        assert!((1..=MOST_TERM).contains(&rate.units()) && (1..=MOST_TERM).contains(&rate.micros()));
        assert_eq!(Rate::new(rate.units(), rate.micros()), Some(rate), "not in lowest terms");
        // What is displayed may need more digits than an argument may have; it never means another rate.
        let again = Rate::parse("rate", rate.to_string().as_bytes());
        assert!(again.is_err() || again == Ok(rate), "{rate}");
    }
}

/// What was read. An error names its argument, in one line of plain text whatever was refused.
fn told<T>(read: Result<T, ArgumentError>, argument: &str) -> Option<T> {
    if let Err(error) = &read {
        let text = error.to_string();
        assert!(text.starts_with(argument) && text.contains(" must be "), "{text}");
        assert!(text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{text}");
    }
    read.ok()
}
