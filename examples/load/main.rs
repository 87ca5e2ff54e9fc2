//! Makes a server busy, for `scripts/bench` and `scripts/gate`: as fast as it answers, or at a steady rate. Says how many calls
//! a second there were or how long they took. An error reply ends it, for then something else was measured than was meant.
//!
//! `cargo run --release --example load -- --help`

mod calls;
mod connection;
mod options;
mod pace;
mod replies;

use std::error::Error;
use std::process::ExitCode;

use crate::options::{HELP, Options, Pace, Request};

/// Nobody handles these errors one by one: each becomes a line on stderr and a non-zero exit.
type Fallible<T> = Result<T, Box<dyn Error>>;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Run(options)) => options,
        Err(error) => {
            eprintln!("load: {error} (see --help)");
            return ExitCode::from(WRONG_USE);
        }
    };
    let outcome = match options.pace {
        Pace::Fast { calls, pipeline } => pace::fast(&options, calls, pipeline),
        Pace::Steady { rate, seconds } => pace::steady(&options, rate, seconds),
    };
    match outcome {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::from(FAILED)
        }
    }
}
