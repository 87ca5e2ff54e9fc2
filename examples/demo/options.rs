//! The command line of the demo.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::Fallible;

pub const HELP: &str = "\
Shows a limit of 100 an hour on a fleet of four API servers: counted in three ways, and held while Redis is killed and
comes back. Then one limit that all requests share, decided by Redis and in slices by the servers.

Usage: demo [OPTIONS]

Options:
  --requests N      requests that the user sends in each run       [default: 400]
  --limit N         requests that the user may send in an hour     [default: 100]
  --concurrency N   requests in flight at a time                   [default: 32]
  --module PATH     the redis-rl module  [default: the one built beside the demo]
  --help            this text

Environment:
  RL_SERVER         the server to start            [default: redis-server on PATH]

Exit code: 0 if every number is as it should be, 1 if one is not, 2 for wrong use.
";

const LIMITS: RangeInclusive<u64> = 1..=1_000;
/// With fewer in flight, check-then-act may come out right by luck, and act 2 would show nothing.
const CONCURRENCIES: RangeInclusive<u64> = 16..=256;
/// Many more, and tokens that refill during the run would blur "exactly".
const MOST_REQUESTS: u64 = 5_000;

/// What the command line asks for.
pub enum Request {
    Run(Options),
    Help,
}

pub struct Options {
    pub requests: u64,
    pub limit: u64,
    pub concurrency: u64,
    pub module: PathBuf,
}

impl Options {
    /// Accepts `--name value` and `--name=value`.
    pub fn parse(args: &[OsString]) -> Fallible<Request> {
        let (mut requests, mut limit, mut concurrency, mut module) = (400, 100, 32, None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, inline) = split(arg);
            if matches!(name, "--help" | "-h") {
                return Ok(Request::Help);
            }
            let mut value = || match inline {
                Some(value) => Ok(OsString::from(value)),
                None => args.next().cloned().ok_or_else(|| format!("{name} needs a value")),
            };
            match name {
                "--requests" => requests = number(name, &value()?)?,
                "--limit" => limit = number(name, &value()?)?,
                "--concurrency" => concurrency = number(name, &value()?)?,
                "--module" => module = Some(PathBuf::from(value()?)),
                _ => return Err(format!("unknown argument {}", arg.display()).into()),
            }
        }

        within("--limit", limit, LIMITS)?;
        within("--concurrency", concurrency, CONCURRENCIES)?;
        // The last `concurrency` requests must still find the limit used up, or the race has no room to show. And it must
        // be used up again with the part of them that is sent while Redis is away.
        within("--requests", requests, 3 * limit + concurrency..=MOST_REQUESTS)?;
        let module = match module {
            Some(path) => path,
            None => module_beside_the_demo()?,
        };
        let module = module.canonicalize().map_err(|problem| {
            let path = module.display();
            format!("no module at {path} ({problem}): build it with `cargo build --release`, or name it with --module")
        })?;
        Ok(Request::Run(Options { requests, limit, concurrency, module }))
    }
}

/// The name of an option, and its value if it comes in the same argument.
fn split(arg: &OsStr) -> (&str, Option<&str>) {
    let arg = arg.to_str().unwrap_or_default();
    match arg.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (arg, None),
    }
}

fn number(name: &str, value: &OsStr) -> Fallible<u64> {
    let parsed = value.to_str().and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| format!("{name} needs a number, not {}", value.display()).into())
}

fn within(name: &str, value: u64, range: RangeInclusive<u64>) -> Fallible<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{name} must be from {} to {} here, not {value}", range.start(), range.end()).into())
}

/// Where Cargo puts it when it builds the demo, or else where `cargo build` puts it.
fn module_beside_the_demo() -> Fallible<PathBuf> {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

    // target/PROFILE/examples/demo
    let demo = std::env::current_exe()?;
    let profile = demo.ancestors().nth(2).ok_or("the demo is in no target folder: name the module with --module")?;
    let module = format!("{DLL_PREFIX}redis_rl{DLL_SUFFIX}");
    // `cargo run --example` refreshes the first one only, so that the second may be of an older build.
    let built_with_the_demo = profile.join("deps").join(&module);
    Ok(if built_with_the_demo.exists() { built_with_the_demo } else { profile.join(module) })
}
