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
mod multi;
mod parameters;
mod refund;
mod sliding;
mod traffic;

use super::file::Scenario;
use super::script::Book;

/// All files, by name.
pub fn all() -> Vec<(&'static str, Vec<Scenario>)> {
    let themes: [(&str, &dyn Fn(&mut Book)); 14] = [
        ("fixed", &fixed::scenarios),
        ("sliding", &sliding::scenarios),
        ("slidinglog", &log::scenarios),
        ("tokenbucket", &bucket::scenarios),
        ("leaky", &leaky::scenarios),
        ("multi", &multi::scenarios),
        ("concurrent", &concurrent::scenarios),
        ("refund", &refund::scenarios),
        ("debit", &debit::scenarios),
        ("lease", &|book| {
            lease::scenarios(book);
            lease_beside::scenarios(book);
        }),
        ("keys", &keys::scenarios),
        ("arguments", &arguments::scenarios),
        ("parameters", &parameters::scenarios),
        ("clocks", &clocks::scenarios),
    ];
    themes
        .map(|(name, scenarios)| {
            let mut book = Book::default();
            scenarios(&mut book);
            (name, book.scenarios())
        })
        .into()
}
