//! The casebook, run on the crate alone: states go through bytes between two calls, as they do in a server.
//!
//! What runs and what doesn't is printed: `cargo test -p rl-limiter --test casebook -- --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "casebook/mod.rs"]
mod book;

use book::ledger::{Exceptions, Ledger};
use book::trial::{Trial, can};

/// What ran when this was written. It may grow.
const CASES: usize = 119;
const STEPS: usize = 498;

const EXCEPTIONS: Exceptions = Exceptions {
    left_out: &[
        (
            "run by the client's own tests, in client/tests",
            &["RC-175", "RC-204", "RC-205", "RC-206", "RC-211", "RC-213", "RC-221"],
        ),
        ("needs leases", &["RC-208"]),
        ("a server's affair", &["RC-165", "RC-166", "RC-173", "RC-177", "RC-183", "RC-185"]),
    ],
    too_long: &[],
    in_part: &[
        (
            "clients and headers are run by the client's own tests",
            &["RC-115", "RC-126", "RC-153", "RC-215", "RC-219", "RC-220"],
        ),
        (
            "servers are left out, and what is asked of them",
            &[
                "RC-003", "RC-057", "RC-059", "RC-085", "RC-102", "RC-163", "RC-164", "RC-168", "RC-170", "RC-171",
                "RC-174", "RC-178", "RC-180", "RC-187",
            ],
        ),
    ],
};

#[test]
fn the_crate_decides_every_case_as_it_should() {
    let ledger = Ledger::of(&EXCEPTIONS, can, |case| {
        let trials = case.meters().iter().flat_map(|&meter| [false, true].map(|collects| Trial { meter, collects }));
        trials.flat_map(|trial| trial.run(case)).collect()
    });
    ledger.close("The casebook on the crate", CASES, STEPS);
}

#[test]
fn every_ruling_is_about_a_step() {
    let rows: Vec<_> = book::contract::misplaced(&book::case::cases()).collect();
    assert!(rows.is_empty(), "{rows:?}");
}
