//! The conformance vectors in `vectors/`: made by the models of these tests, which know nothing of the crate but the
//! types of some answers, and replayed on the crate. `RL_BLESS=1 cargo test -p rl-limiter --test vectors` writes them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "vectors/mod.rs"]
mod book;
#[path = "model/concurrency.rs"]
mod concurrency_model;
#[allow(dead_code, reason = "shared with tests that need other parts")]
#[path = "grammar/reading.rs"]
mod grammar;
#[allow(dead_code, reason = "shared with tests that need other parts")]
#[path = "lease/model.rs"]
mod lease_model;
#[allow(dead_code, reason = "shared with tests that need other parts")]
mod model;
mod sequence;
#[path = "model/sliding_log.rs"]
mod sliding_log_model;

use std::fs;

use book::file::{Scenario, files, folder};
use book::{Shelf, all, mixed, render};

/// What there was when this was written. It may grow.
const SCENARIOS: usize = 279;
const STEPS: usize = 4_886;
/// All files together.
const MOST_BYTES: usize = 1_000_000;

#[test]
fn the_files_are_what_the_models_reply() {
    let made: Vec<_> = all().into_iter().map(|(name, scenarios)| (name.to_owned(), render(&scenarios))).collect();
    if std::env::var_os("RL_BLESS").is_some() {
        for (name, text) in &made {
            // As a whole, since other tests read it.
            let (path, beside) = (folder().join(format!("{name}.json")), folder().join(format!("{name}.new")));
            fs::write(&beside, text).unwrap();
            fs::rename(beside, path).unwrap();
        }
    }
    let mut names: Vec<_> = made.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(files().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), names, "the files in vectors/");
    for (name, text) in &made {
        let file = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let differing = file.lines().zip(text.lines()).enumerate().find(|(_, (line, made))| line != made);
        if let Some((number, (line, made))) = differing {
            panic!(
                "vectors/{name}.json, line {}, is\n{line}\nand the models reply\n{made}\n{HOW_TO_BLESS}",
                number + 1
            );
        }
        assert!(file == *text, "vectors/{name}.json is longer or shorter than what the models reply. {HOW_TO_BLESS}");
    }
    assert!(made.iter().map(|(_, text)| text.len()).sum::<usize>() <= MOST_BYTES, "too large to be read by people");
}

const HOW_TO_BLESS: &str = "If that is meant: RL_BLESS=1 cargo test -p rl-limiter --test vectors";

#[test]
fn the_crate_replies_as_the_vectors_say() {
    let (mut scenarios, mut steps) = (0, 0);
    for (file, book) in files() {
        for scenario in &book {
            replay(&file, scenario);
            steps += scenario.steps.len();
        }
        scenarios += book.len();
        println!("{file}: {} scenarios, {} steps", book.len(), book.iter().map(|it| it.steps.len()).sum::<usize>());
    }
    println!("in all {scenarios} scenarios, {steps} steps");
    assert!(scenarios >= SCENARIOS && steps >= STEPS, "{scenarios} scenarios, {steps} steps");
}

/// `VECTORS_SEEDS` in the environment sets how many scenarios.
#[test]
fn the_crate_replies_as_the_models_do_to_calls_that_no_file_has() {
    let seeds = std::env::var("VECTORS_SEEDS").map_or(40, |seeds| seeds.parse().unwrap());
    for seed in 1_000..1_000 + seeds {
        mixed(seed).iter().for_each(|scenario| replay("no file", scenario));
    }
}

/// The crate replies the same, whether or not keys are dropped when they are unused.
fn replay(file: &str, scenario: &Scenario) {
    for collects in [false, true] {
        let mut shelf = Shelf::new(collects);
        for (number, step) in scenario.steps.iter().enumerate() {
            let told = shelf.call(step.at_us, &step.call);
            let place = format!("{file}: {}, step {}", scenario.name, number + 1);
            let (call, reply, why) = (&step.call, &step.reply, &scenario.why);
            assert!(reply.is_met_by(&told), "{place}: {call:?} is told {told:?}, not {reply:?}: {why}");
        }
    }
}

#[test]
fn every_scenario_has_a_name_of_its_own_and_exact_numbers() {
    const EXACT: u64 = 1 << 53;
    for (file, book) in files() {
        for (index, scenario) in book.iter().enumerate() {
            assert!(!scenario.why.is_empty() && !scenario.steps.is_empty(), "{file}: {}", scenario.name);
            assert!(book[..index].iter().all(|other| other.name != scenario.name), "{file}: {} twice", scenario.name);
            assert!(scenario.steps.iter().all(|step| step.at_us < EXACT), "{file}: {}", scenario.name);
        }
    }
}
