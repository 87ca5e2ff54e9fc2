//! Asking Redis.

use rl_limiter::{Decision, RetryAfter};

use crate::builder::Settings;
use crate::error::{Error, ErrorKind};
use crate::observe::Observer;

/// Where the servers are.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Single(String),
    Cluster(Vec<String>),
    Sentinel { urls: Vec<String>, name: String },
}

/// A command whose argument 1 is the key.
pub(crate) struct Command {
    key: String,
    command: redis::Cmd,
}

impl Command {
    pub fn new(name: &str, key: &str, arguments: &[&str]) -> Self {
        let mut command = redis::cmd(name);
        command.arg(key).arg(arguments);
        Self { key: key.to_owned(), command }
    }
}

/// The integers of a reply.
#[derive(Default)]
pub(crate) struct Reply(Vec<i64>);

impl Reply {
    /// The first five, as a decision.
    pub fn decision(&self) -> Result<Decision, Error> {
        let [allowed, limit, remaining, retry_after, reset_after, ..] = self.0[..] else { return Err(self.odd()) };
        let unsigned = |number: i64| u64::try_from(number).map_err(|_| self.odd());
        Ok(Decision {
            allowed: allowed == 1,
            limit: unsigned(limit)?,
            remaining: unsigned(remaining)?,
            retry_after: match retry_after {
                -1 => RetryAfter::Never,
                millis => RetryAfter::Millis(unsigned(millis)?),
            },
            reset_after: unsigned(reset_after)?,
        })
    }

    /// A decision, and what did not fit.
    pub fn debit(&self) -> Result<(Decision, u64), Error> {
        let rest = self.0.get(5).and_then(|&rest| u64::try_from(rest).ok()).ok_or_else(|| self.odd())?;
        Ok((self.decision()?, rest))
    }

    fn odd(&self) -> Error {
        Error::new(ErrorKind::Rejected, format!("{:?} is no reply of redis-rl", self.0))
    }
}

/// The servers to ask.
pub(crate) struct Servers;

impl Servers {
    pub fn new(_address: &Address, _settings: &Settings, _observer: &Observer) -> Result<Self, Error> {
        Ok(Self)
    }

    pub async fn ask(&self, _command: &Command) -> Result<Option<Reply>, Error> {
        Err(Error::new(ErrorKind::Unreachable, "not yet"))
    }

    pub async fn reach(&self) -> Result<(), Error> {
        Ok(())
    }
}
