//! The scenarios, one file a theme.

mod arguments;
mod bucket;
mod clocks;
mod concurrent;
mod debit;
mod fixed;
mod keys;
mod leaky;
mod lease;
mod lease_beside;
mod log;
mod mixed;
mod multi;
mod parameters;
mod refund;
mod sliding;
mod traffic;

use std::thread;

use super::file::Scenario;
use super::script::Book;

/// A file's name, and what adds its scenarios.
type Theme = (&'static str, fn(&mut Book));

/// All files, by name.
const THEMES: [Theme; 16] = [
    ("fixed", fixed::scenarios),
    ("sliding", sliding::scenarios),
    ("slidinglog", log::scenarios),
    ("tokenbucket", bucket::scenarios),
    ("leaky", leaky::scenarios),
    ("multi", multi::scenarios),
    ("concurrent", concurrent::scenarios),
    ("refund", refund::scenarios),
    ("debit", debit::scenarios),
    ("lease", lease::scenarios),
    ("lease-beside", lease_beside::scenarios),
    ("keys", keys::scenarios),
    ("arguments", arguments::scenarios),
    ("parameters", parameters::scenarios),
    ("clocks", clocks::scenarios),
    ("mixed", mixed::scenarios),
];

/// All files, by name, as the models make them.
pub fn all() -> Vec<(&'static str, Vec<Scenario>)> {
    // The models take their time.
    thread::scope(|scope| {
        let making = THEMES.map(|(name, scenarios)| (name, scope.spawn(move || made(scenarios))));
        making.map(|(name, made)| (name, made.join().unwrap())).into()
    })
}

/// A scenario that no file has, of a seed.
pub fn mixed(seed: u64) -> Vec<Scenario> {
    made(|book| mixed::add(book, seed))
}

fn made(scenarios: impl Fn(&mut Book)) -> Vec<Scenario> {
    let mut book = Book::default();
    scenarios(&mut book);
    book.scenarios()
}
