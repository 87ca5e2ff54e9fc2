//! How a limiter is set up.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use redis::RedisConnectionInfo;

use crate::error::{Error, ErrorKind};
use crate::fallback::Outage;
use crate::limiter::Limiter;
use crate::observe::Observer;
use crate::servers::{Address, Servers};

/// The longest deadline.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// What a limiter is set up with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub deadline: Duration,
    pub connect_timeout: Duration,
    pub on_outage: Outage,
    pub on_fault: Outage,
    pub nodes: Option<u32>,
    pub fleet: Option<String>,
    pub prefix: String,
    pub deny_cache: bool,
    pub most_local_keys: usize,
    /// How the primary that sentinels know is logged in to.
    pub primary: RedisConnectionInfo,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            on_outage: Outage::LocalShare,
            on_fault: Outage::Closed,
            nodes: None,
            fleet: Some("default".to_owned()),
            prefix: "rl".to_owned(),
            deny_cache: true,
            most_local_keys: 100_000,
            primary: RedisConnectionInfo::default(),
        }
    }
}

impl Settings {
    /// How many nodes share each limit when Redis is away.
    pub fn nodes(&self) -> NonZeroU32 {
        self.nodes.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }

    fn check(&self) -> Result<(), Error> {
        let invalid = |text: &str| Err(Error::new(ErrorKind::Invalid, text));
        let allowed = |time: Duration| !time.is_zero() && time <= LONGEST;
        if !allowed(self.deadline) || !allowed(self.connect_timeout) {
            return invalid("the deadline and the connect timeout must be more than 0, and at most an hour");
        }
        if self.nodes == Some(0) {
            return invalid("the number of nodes must be at least 1");
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(&byte);
        let is_name = |name: &String| (1..=64).contains(&name.len()) && name.bytes().all(plain);
        if !self.fleet.as_ref().is_none_or(is_name) {
            return invalid("a fleet's name must be 1 to 64 letters, digits, or any of - _ . : / @");
        }
        if self.prefix.contains(['{', '}']) {
            return invalid("a prefix must not have braces, which choose the slot of a key in a cluster");
        }
        Ok(())
    }
}

/// Sets up a [`Limiter`].
///
/// ```no_run
/// use std::time::Duration;
/// use redis_rl_client::{Limiter, Outage};
///
/// # fn main() -> Result<(), redis_rl_client::Error> {
/// let limiter = Limiter::builder("redis://127.0.0.1:6379")
///     .deadline(Duration::from_millis(20))
///     .on_outage(Outage::LocalShare)
///     .nodes(4)
///     .connect_lazy()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder connects to nothing by itself"]
pub struct Builder {
    address: Address,
    settings: Settings,
}

/// Without the addresses, which may have passwords in them.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, settings: Settings::default() }
    }

    /// The longest that a call may take, connecting and following redirections included; more than 0 and at most an hour, by default
    /// 50 ms. What takes longer is an outage.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// The longest that making a connection may take; more than 0 and at most an hour, by default 1 s. It goes on when the deadline of
    /// the call that asked for it has passed.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// What decides while Redis is away: by default [`Outage::LocalShare`].
    pub fn on_outage(mut self, outage: Outage) -> Self {
        self.settings.on_outage = outage;
        self
    }

    /// What decides when Redis refuses for reasons that do not pass by themselves (no such command, no permission, a key of another type):
    /// by default [`Outage::Closed`], so that a fault is seen before the limit is missed.
    pub fn on_fault(mut self, outage: Outage) -> Self {
        self.settings.on_fault = outage;
        self
    }

    /// How many servers share each limit under [`Outage::LocalShare`], this one included, until Redis has told how many there are, or where it
    /// is [not asked](Self::without_fleet): at least 1. By default 1, which is wrong for a fleet, and warned of when it matters.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.settings.nodes = Some(nodes);
        self
    }

    /// The name of the fleet: the servers that share the limits, and each [LocalShare](Outage::LocalShare) of them. By default `default`; 1 to 64
    /// letters, digits, or any of `- _ . : / @`.
    ///
    /// Once it has asked Redis for anything, each limiter says there every second, by `RL.LEASE` under the key `rl:{fleet:NAME}`, that it is there,
    /// and is told how many are. Who is silent for two seconds is gone. So give servers that have no limits in common fleets of their own.
    pub fn fleet(mut self, name: impl Into<String>) -> Self {
        self.settings.fleet = Some(name.into());
        self
    }

    /// Neither tells Redis that this server is there, nor asks how many are: [`Builder::nodes`] says so.
    pub fn without_fleet(mut self) -> Self {
        self.settings.fleet = None;
        self
    }

    /// What all keys begin with, in front of `:{subject}:policy`; without braces, by default `rl`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Whether what Redis denied is denied here for as long as Redis said, at most a second, without asking again: by default it is, so that a
    /// caller who hammers costs Redis one call a second.
    pub fn deny_cache(mut self, enabled: bool) -> Self {
        self.settings.deny_cache = enabled;
        self
    }

    /// For about how many keys denials, and likewise local shares and leases, are kept in this process: by default 100 000, which take up to 300
    /// bytes each (a lease 700), and a sliding window log some 10 for each of its entries besides. Beyond it the sixteenth that would be forgotten
    /// first is forgotten at once.
    pub fn most_local_keys(mut self, most: usize) -> Self {
        self.settings.most_local_keys = most;
        self
    }

    /// User and password at the primary that sentinels know; those in the URLs are for the sentinels. Without effect elsewhere.
    pub fn primary_login(mut self, user: &str, password: &str) -> Self {
        self.settings.primary = self.settings.primary.set_username(user).set_password(password);
        self
    }

    /// The number of the database at the primary that sentinels know: by default 0. Without effect elsewhere.
    pub fn primary_database(mut self, number: u32) -> Self {
        self.settings.primary = self.settings.primary.set_db(number.into());
        self
    }

    /// The limiter, whether Redis is there or not: connections are made when they are first needed.
    ///
    /// [`ErrorKind::Invalid`] if a URL can't be read or a setting is out of range. Checks need a tokio runtime with its timers and
    /// I/O enabled; this does not.
    pub fn connect_lazy(self) -> Result<Limiter, Error> {
        self.settings.check()?;
        let observer = Observer::default();
        let servers = Servers::new(&self.address, &self.settings, &observer)?;
        let is_unknown = self.settings.nodes.is_none() && self.settings.fleet.is_none();
        if is_unknown && self.settings.on_outage == Outage::LocalShare {
            observer.nodes_unknown();
        }
        Ok(Limiter::with_servers(servers, self.settings, observer))
    }

    /// The limiter, once it has reached Redis; an error if that fails within the connect timeout.
    pub async fn connect(self) -> Result<Limiter, Error> {
        let limiter = self.connect_lazy()?;
        limiter.reach().await?;
        Ok(limiter)
    }
}
