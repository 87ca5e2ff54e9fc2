//! The command line.

use crate::Fallible;

pub const HELP: &str = "\
Makes a server on this machine busy. Prints one line of JSON: how long it took, and of a steady rate the percentiles of the
times to an answer, in microseconds, counted from when the call was due.

Usage: load --port PORT [OPTIONS] -- WORD... [; WORD...]

Several commands, with a word ; between them, are one call. In a word stand for numbers of fixed width
  {random}   a key's: drawn below --keys, the same throughout a call
  {next}     a key's: each in turn, 0 to --keys less 1, and again
  {turn}     how often all keys have had their turn
  {rising}   above that of every call before

Options:
  --calls N         as many, as fast as they are answered  [default: 100000]
  --pipeline N      calls that a connection sends at once  [default: 1]
  --rate N          instead: so many a second, one at a time on a connection
  --seconds N       for so long, at that rate              [default: 1]
  --connections N   [default: 50]
  --keys N          [default: 1]
  --help            this text

Exit codes: 0 all were answered, 1 one by an error or the server went away, 2 wrong usage
";

/// What the command line asks for.
pub enum Request {
    Run(Options),
    Help,
}

pub struct Options {
    pub port: u16,
    pub connections: usize,
    pub keys: u64,
    pub pace: Pace,
    /// The commands of a call.
    pub commands: Vec<Vec<String>>,
}

pub enum Pace {
    Fast { calls: u64, pipeline: u64 },
    Steady { rate: u64, seconds: u64 },
}

impl Options {
    pub fn parse(mut args: impl Iterator<Item = String>) -> Fallible<Request> {
        let (mut port, mut connections, mut keys) = (0, 50, 1);
        let (mut calls, mut pipeline, mut rate, mut seconds) = (100_000, 1, 0, 1);
        let mut words = Vec::new();
        while let Some(arg) = args.next() {
            let mut number = |most: u64| -> Fallible<u64> {
                let text = args.next().unwrap_or_default();
                let given = text.parse().ok().filter(|number| (1..=most).contains(number));
                given.ok_or_else(|| format!("{arg} takes a number from 1 to {most}, not '{text}'").into())
            };
            match arg.as_str() {
                "--help" | "-h" => return Ok(Request::Help),
                "--port" => port = u16::try_from(number(65_535)?)?,
                "--connections" => connections = usize::try_from(number(1_000)?)?,
                "--keys" => keys = number(1_000_000_000)?,
                "--calls" => calls = number(1_000_000_000)?,
                "--pipeline" => pipeline = number(10_000)?,
                "--rate" => rate = number(1_000_000)?,
                "--seconds" => seconds = number(3_600)?,
                "--" => {
                    words.extend(args);
                    break;
                }
                _ => return Err(format!("unknown argument '{arg}'").into()),
            }
        }
        let commands: Vec<_> = words.split(|word| word == ";").map(<[String]>::to_vec).collect();
        if port == 0 {
            return Err("--port is missing".into());
        }
        if commands.iter().any(Vec::is_empty) {
            return Err("a command is missing after --, or beside ;".into());
        }
        let pace = if rate == 0 { Pace::Fast { calls, pipeline } } else { Pace::Steady { rate, seconds } };
        Ok(Request::Run(Self { port, connections, keys, pace, commands }))
    }
}
