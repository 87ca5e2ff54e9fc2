//! What a rate limit is worth on a fleet, shown with real processes and real HTTP.
//!
//! Four API servers stand behind a round-robin balancer, and one user sends more requests than the limit allows. The
//! fleet counts them in a different way in each act; in the fourth Redis is killed and comes back, and in the fifth all
//! requests share one limit. The tables at the end say what came of it, and the exit code is 1 if a number is not what the act claims.
//!
//! Run it with `make demo`, or `cargo run --release --example demo -- --help`.

mod acts;
mod answer;
mod api_server;
mod balancer;
mod caller;
mod checks;
mod clock;
mod fleet;
mod http_client;
mod leash;
mod limiters;
mod options;
mod redis_server;
mod result;
mod table;
mod traffic;
mod work;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::options::{HELP, Options, Request};
use crate::redis_server::RedisServer;
use crate::result::RunResult;
use crate::result::hot_key::HotKeyResult;
use crate::result::outage::OutageResult;

/// Nobody handles these errors one by one: each becomes a line on stderr and a non-zero exit.
type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;
/// What a shell reports for a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    match args.first().and_then(|first| first.to_str()) {
        Some(api_server::SUBCOMMAND) => exit_code(api_server::run(rest).await),
        Some(leash::SUBCOMMAND) => exit_code(leash::run(rest).await),
        _ => present(&args).await,
    }
}

/// What a person starts: everything but the hidden sub-commands that the demo starts itself with.
async fn present(args: &[OsString]) -> ExitCode {
    let options = match Options::parse(args) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("demo: {problem}\nTry --help.");
            return ExitCode::from(WRONG_USE);
        }
    };
    // Dropping the unfinished performance ends its processes and removes its files.
    tokio::select! {
        outcome = perform(&options) => exit_code(outcome),
        stopped = stop_signal() => match stopped {
            Ok(()) => ExitCode::from(INTERRUPTED),
            Err(problem) => exit_code(Err(problem)),
        },
    }
}

async fn perform(options: &Options) -> Fallible<()> {
    println!(
        "{} API servers behind a round-robin balancer; one user sends {} requests, {} in flight; the limit is {} an hour.",
        fleet::SERVERS.len(),
        options.requests,
        options.concurrency,
        options.limit,
    );
    let mut redis = RedisServer::start(&options.module).await?;
    println!("{}", redis.introduction().await?);

    let results = acts::play(options, &redis).await?;
    let outages = acts::outage::play(options, &mut redis).await?;
    let hot_key = acts::hot_key::play(&redis).await?;
    let tables = [result::summary(&results), result::outage::summary(&outages), result::hot_key::summary(&hot_key)];
    println!("\n{}", tables.join("\n"));

    let faults = results.iter().flat_map(RunResult::faults);
    let faults: Vec<String> = faults
        .chain(outages.iter().flat_map(OutageResult::faults))
        .chain(hot_key.iter().flat_map(HotKeyResult::faults))
        .collect();
    if faults.is_empty() {
        println!("Every number above was checked.");
        Ok(())
    } else {
        Err(format!("not as it should be:\n  {}", faults.join("\n  ")).into())
    }
}

async fn stop_signal() -> Fallible<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

fn exit_code(outcome: Fallible<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("demo: {problem}");
            ExitCode::from(FAILED)
        }
    }
}
