//! Asking Redis.

mod breaker;
mod directory;
mod failure;
mod flight;
mod link;
mod slots;
mod teachers;
mod tls;

use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo as _, Value, io::tcp::TcpSettings};
use rl_limiter::{Decision, RetryAfter};
use tokio::runtime::Handle;
use tokio::time::Instant;

use self::directory::Directory;
use self::failure::{Failure, Redirect};
use self::link::Link;
use self::teachers::Teachers;
use crate::builder::Settings;
use crate::error::{Error, ErrorKind};
use crate::observe::Observer;

/// Where the servers are.
#[derive(Clone)]
pub(crate) enum Address {
    Single(String),
    Cluster(Vec<String>),
    Sentinel { urls: Vec<String>, name: String },
}

/// A command whose argument 1 is the key.
pub(crate) struct Command<'a> {
    key: &'a str,
    command: redis::Cmd,
}

impl<'a> Command<'a> {
    pub fn new(name: &str, key: &'a str, arguments: &[&str]) -> Self {
        let mut command = redis::cmd(name);
        command.arg(key).arg(arguments);
        Self { key, command }
    }
}

/// The integers of a reply, or the one that it is.
#[derive(Default)]
pub(crate) struct Reply(Vec<i64>);

/// What a node may call its own, as `RL.LEASE` answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub holding: u64,
    pub free: u64,
    pub retry_after: RetryAfter,
    /// In milliseconds.
    pub ttl: u64,
    pub nodes: u64,
}

impl Reply {
    fn read(value: &Value) -> Result<Option<Self>, Error> {
        if let Value::Int(number) = value {
            return Ok(Some(Self(vec![*number])));
        }
        redis::from_redis_value_ref::<Option<Vec<i64>>>(value)
            .map(|numbers| numbers.map(Self))
            .map_err(|_| Error::new(ErrorKind::Rejected, "the reply is none of redis-rl"))
    }

    /// The first five, as a decision.
    pub fn decision(&self) -> Result<Decision, Error> {
        self.decision_in(&self.0)
    }

    /// Whether all of so many limits allow, and what each says: five integers each, behind the first two.
    pub fn decisions(&self, count: usize) -> Result<(bool, Vec<Decision>), Error> {
        let [allowed, _, each @ ..] = &self.0[..] else { return Err(self.odd()) };
        let decisions: Vec<_> = each.chunks(5).map(|five| self.decision_in(five)).collect::<Result<_, _>>()?;
        if decisions.len() == count { Ok((*allowed == 1, decisions)) } else { Err(self.odd()) }
    }

    fn decision_in(&self, numbers: &[i64]) -> Result<Decision, Error> {
        let [allowed, limit, remaining, retry_after, reset_after, ..] = *numbers else { return Err(self.odd()) };
        Ok(Decision {
            allowed: allowed == 1,
            limit: self.unsigned(limit)?,
            remaining: self.unsigned(remaining)?,
            retry_after: self.wait(retry_after)?,
            reset_after: self.unsigned(reset_after)?,
        })
    }

    /// What was leased.
    pub fn grant(&self) -> Result<Grant, Error> {
        let [holding, free, _, retry_after, ttl, nodes] = self.0[..] else { return Err(self.odd()) };
        Ok(Grant {
            holding: self.unsigned(holding)?,
            free: self.unsigned(free)?,
            retry_after: self.wait(retry_after)?,
            ttl: self.unsigned(ttl)?,
            nodes: self.unsigned(nodes)?,
        })
    }

    fn unsigned(&self, number: i64) -> Result<u64, Error> {
        u64::try_from(number).map_err(|_| self.odd())
    }

    fn wait(&self, millis: i64) -> Result<RetryAfter, Error> {
        match millis {
            -1 => Ok(RetryAfter::Never),
            millis => self.unsigned(millis).map(RetryAfter::Millis),
        }
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
pub(crate) struct Servers {
    route: Route,
    deadline: Duration,
    connect_timeout: Duration,
}

enum Route {
    Single(Link),
    Directory(Directory),
}

impl Servers {
    /// Connects to nothing yet.
    pub fn new(address: &Address, settings: &Settings, observer: &Observer) -> Result<Self, Error> {
        let route = match address {
            Address::Single(url) => Route::Single(link(info(url)?, settings, observer)?),
            Address::Cluster(urls) => {
                let nodes = infos(urls)?;
                let template = nodes[0].clone();
                let links = links(nodes, settings, observer)?;
                Route::Directory(Directory::new(Teachers::Nodes(links), template, settings, observer))
            }
            Address::Sentinel { urls, name } => {
                let sentinels = infos(urls)?;
                let template = sentinels[0].clone().set_redis_settings(settings.primary.clone());
                let links = links(sentinels, settings, observer)?;
                let teachers = Teachers::Sentinels(links, name.clone());
                Route::Directory(Directory::new(teachers, template, settings, observer))
            }
        };
        Ok(Self { route, deadline: settings.deadline, connect_timeout: settings.connect_timeout })
    }

    /// Asks, and waits for the reply until the deadline. `None` is a null. The command runs once at most.
    pub async fn ask(&self, command: &Command<'_>) -> Result<Option<Reply>, Error> {
        runtime()?;
        let until = Instant::now() + self.deadline;
        let answered = match &self.route {
            Route::Single(link) => ask_single(link, command, until).await,
            Route::Directory(directory) => directory.ask(command, until).await,
        };
        Reply::read(&answered.map_err(Failure::into_error)?)
    }

    /// Waits until a server is reached, at most as long as connecting may take.
    pub async fn reach(&self) -> Result<(), Error> {
        runtime()?;
        let until = Instant::now() + self.connect_timeout;
        let reached = match &self.route {
            Route::Single(link) => match link.call_anyway(&redis::cmd("PING"), until).await {
                // Checks may be all that the user may do.
                Err(Failure::Refused(error)) if error.to_string().starts_with("NOPERM") => Ok(()),
                answered => answered.map(drop),
            },
            Route::Directory(directory) => directory.reach(until).await,
        };
        reached.map_err(Failure::into_error)
    }
}

/// Without a runtime tokio's timers would panic.
fn runtime() -> Result<(), Error> {
    let text = "a limiter that asks Redis needs a tokio runtime";
    Handle::try_current().map(drop).map_err(|_| Error::new(ErrorKind::Invalid, text))
}

async fn ask_single(link: &Link, command: &Command<'_>, until: Instant) -> Result<Value, Failure> {
    match link.call(&command.command, until).await {
        // Its name may lead to the primary by now. It did not run the command.
        Err(Failure::Redirected(Redirect::ReadOnly, _)) if link.renew() => link.call(&command.command, until).await,
        Err(Failure::Redirected(Redirect::Moved { .. } | Redirect::Ask { .. }, error)) => {
            let text = format!("{error} (the server is a node of a cluster: set up the limiter by Limiter::cluster)");
            Err(Failure::Refused(Error::new(error.kind(), text)))
        }
        answered => answered,
    }
}

fn infos(urls: &[String]) -> Result<Vec<ConnectionInfo>, Error> {
    if urls.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, "there must be at least one URL"));
    }
    urls.iter().map(|url| info(url)).collect()
}

fn info(url: &str) -> Result<ConnectionInfo, Error> {
    tls::check(url)?;
    let info = url.into_connection_info().map_err(|error| {
        // The URL itself may have a password in it.
        Error::new(ErrorKind::Invalid, format!("a server's URL must be like redis://host:6379: {error}"))
    })?;
    tls::prepare(info.addr())?;
    Ok(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))
}

fn links(infos: Vec<ConnectionInfo>, settings: &Settings, observer: &Observer) -> Result<Vec<Link>, Error> {
    infos.into_iter().map(|info| link(info, settings, observer)).collect()
}

fn link(info: ConnectionInfo, settings: &Settings, observer: &Observer) -> Result<Link, Error> {
    let name = info.addr().to_string();
    Link::new(info, name, settings, observer).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}
