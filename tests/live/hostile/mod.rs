//! Whatever clients plant under keys and send as arguments: the server answers, and stays the same server.
//!
//! Everything is drawn by chance from a seed that is told when a test fails; `RL_SEED` in the environment sets it. The
//! commands are those of the table.

mod arguments;
mod planted;
mod session;

use crate::support::{Server, ask};
use crate::traffic::random::Random;
use session::Session;

/// States that are planted, and calls that are damaged, in a test run, unless `RL_PLANTED` in the environment says how
/// many; and in one that takes long.
const EVERYDAY: usize = 10_000;
const LONG: usize = 100_000;

fn everyday() -> usize {
    std::env::var("RL_PLANTED").map_or(EVERYDAY, |count| count.parse().unwrap())
}

/// With each state comes every command.
fn plant(count: usize) {
    let mut server = Server::new();
    let mut random = Random::of_seed();
    let mut session = Session::begin(&server);
    let real = planted::real_states(&mut session, &mut random);
    for number in 0..count {
        planted::plant(&mut session, &mut random, &real, number);
        session.check_often();
    }
    session.end();
    // Under valgrind it then tells what it has lost.
    server.shut_down();
}

#[test]
fn planted_states_do_no_harm() {
    plant(everyday());
}

#[test]
#[ignore = "a hundred thousand states take a minute"]
fn a_hundred_thousand_planted_states_do_no_harm() {
    plant(LONG);
}

#[test]
fn no_bytes_in_any_argument_do_harm() {
    let mut server = Server::new();
    let mut random = Random::of_seed();
    let mut session = Session::begin(&server);
    for _ in 0..everyday() {
        session.call(&arguments::damaged(&mut random));
        session.check_often();
    }
    session.end();
    server.shut_down();
}

/// A debt is up to twice the capacity, and no number of a reply above 2^53 − 1.
#[test]
fn a_use_beyond_what_a_reply_may_say_is_told_as_that() {
    let server = Server::new();
    let mut redis = server.connect();
    for _ in 0..2 {
        ask::<Vec<i64>>(&mut redis, "RL.DEBIT k 9007199254740991 1/w 9007199254740991");
    }
    let told: Vec<redis::Value> = ask(&mut redis, "RL.INSPECT k");
    let used = told.iter().position(|field| *field == redis::Value::BulkString(b"used".to_vec())).unwrap() + 1;
    assert_eq!(told[used], redis::Value::Int((1 << 53) - 1));
}
