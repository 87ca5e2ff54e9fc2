//! The casebook through the real commands: what broke rate limiters elsewhere, as inputs with the right answers.
//!
//! The cases, and what this project decided where they leave a choice, are shared with the test of the crate alone.
//! What runs and what doesn't is printed: `scripts/test --test live -- casebook --nocapture`.

#[path = "../../limiter/tests/casebook/mod.rs"]
mod book;
mod play;
mod slots;
mod surroundings;
mod wire;

use crate::support::{NOON, Options, ask};
use book::ledger::{Exceptions, Ledger};
use play::Play;

/// What ran when this was written. It may grow.
const CASES: usize = 123;
const STEPS: usize = 547;

const EXCEPTIONS: Exceptions = Exceptions {
    left_out: &[
        (
            "run by the client's own tests, in client/tests",
            &["RC-175", "RC-204", "RC-205", "RC-206", "RC-211", "RC-213", "RC-221"],
        ),
        ("needs leases", &["RC-208"]),
    ],
    too_long: &[("a million times set and asked, which the crate's own test does", &["RC-078", "RC-079"])],
    in_part: &[(
        "clients and headers are run by the client's own tests",
        &["RC-115", "RC-126", "RC-153", "RC-174", "RC-185", "RC-215", "RC-219", "RC-220"],
    )],
};

#[test]
fn the_commands_decide_every_case_as_they_should() {
    let mut server = Options::new().with_clock().start();
    // Expectations are exact to the millisecond, so a clock that moves by itself would fail them now and then.
    let mut redis = server.connect();
    server.clock().set(NOON);
    for _ in 0..2 {
        let (seconds, micros): (i64, i64) = ask(&mut redis, "TIME");
        assert_eq!(seconds * 1_000_000 + micros, NOON, "the server's clock does not stand still");
    }

    let ledger = Ledger::of(&EXCEPTIONS, play::can, |case| {
        case.meters().iter().flat_map(|&meter| Play::of(case, meter, &mut server)).collect()
    });
    ledger.close("The casebook on the server", CASES, STEPS);
}
