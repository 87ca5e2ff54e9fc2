//! A Redis of the demo's own, with the module loaded, that can be killed and started again.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::Fallible;
use crate::leash::{self, Leashed};

const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// Redis waits for the disk at each change, and a disk that others keep busy can take its time.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How often another port is tried when somebody has the chosen one.
const ATTEMPTS: u16 = 20;

/// Writes each change to its append-only file before it answers. Ends, with its files, when it is dropped.
pub struct RedisServer {
    // Before `site`: fields are dropped in order, and the server still writes there.
    process: Leashed,
    site: Site,
}

/// What stays when the server is killed.
struct Site {
    port: u16,
    files: TempDir,
    module: PathBuf,
}

impl RedisServer {
    pub async fn start(module: &Path) -> Fallible<Self> {
        for attempt in 0..ATTEMPTS {
            let site = Site { port: port(attempt), files: TempDir::new()?, module: module.to_owned() };
            if let Some(process) = site.launch().await? {
                return Ok(RedisServer { process, site });
            }
        }
        Err("no free port for Redis".into())
    }

    /// By SIGKILL, so it gets to tidy nothing up. Its connections are broken when this returns.
    pub async fn kill(&mut self) -> Fallible<()> {
        self.process.end().await
    }

    /// On the same port, with the files that it left behind. It has loaded them when this returns.
    pub async fn start_again(&mut self) -> Fallible<()> {
        let process = self.site.launch().await?;
        self.process = process.ok_or("somebody took Redis' port while it was away")?;
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        self.site.address()
    }

    pub async fn connect(&self) -> Fallible<MultiplexedConnection> {
        connect(self.address()).await
    }

    /// How many calls of redis-rl it has run since it was started.
    pub async fn calls(&self) -> Fallible<u64> {
        let info: String = redis::cmd("INFO").arg("commandstats").query_async(&mut self.connect().await?).await?;
        let ours = info.lines().filter_map(|line| line.strip_prefix("cmdstat_rl.")?.split_once("calls="));
        Ok(ours.filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok()).sum())
    }

    /// A line that says which server decides here.
    pub async fn introduction(&self) -> Fallible<String> {
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut self.connect().await?).await?;
        // Forks report the Redis version they are compatible with in `redis_version`, and their own beside it.
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let server = match (field("server_name"), field("valkey_version"), field("redis_version")) {
            (Some("valkey"), Some(version), _) => format!("Valkey {version}"),
            (_, _, version) => format!("Redis {}", version.unwrap_or("of an unknown version")),
        };
        Ok(format!("{server} with the redis-rl module runs on {}.", self.address()))
    }
}

impl Site {
    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// None if somebody else has the port.
    async fn launch(&self) -> Fallible<Option<Leashed>> {
        let log = self.files.path().join("redis.log");
        // So that it tells of this start alone.
        std::fs::write(&log, "")?;
        let mut process = Leashed::spawn(leash::SUBCOMMAND, self.command_line(&log))?;

        // The log tells that it is our server that is ready, where an answer on the port may come from another.
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            let ended = process.has_ended()?;
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains("Ready to accept connections") {
                return Ok(Some(process));
            }
            if ended && said.contains("Failed listening on port") {
                return Ok(None);
            }
            if ended || Instant::now() > deadline {
                return Err(format!("Redis did not start\n{said}").into());
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn command_line(&self, log: &Path) -> Vec<OsString> {
        let program = std::env::var_os("RL_SERVER").unwrap_or_else(|| "redis-server".into());
        let setting = |name: &str, value: PathBuf| [OsString::from(name), value.into_os_string()];
        let mut command = vec![program];
        command.extend(setting("--bind", Ipv4Addr::LOCALHOST.to_string().into()));
        command.extend(setting("--port", self.port.to_string().into()));
        command.extend(setting("--dir", self.files.path().to_owned()));
        command.extend(setting("--logfile", log.to_owned()));
        command.extend(setting("--save", PathBuf::new()));
        command.extend(setting("--appendonly", "yes".into()));
        command.extend(setting("--appendfsync", "always".into()));
        command.extend(setting("--loadmodule", self.module.clone()));
        command
    }
}

pub async fn connect(address: SocketAddr) -> Fallible<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWERS_WITHIN))
        .set_response_timeout(Some(ANSWERS_WITHIN));
    Ok(redis::Client::open(format!("redis://{address}"))?.get_multiplexed_async_connection_with_config(&config).await?)
}

/// Below the ports that the system hands out to clients: while Redis is away, one of those might be given to somebody, or even
/// to a server that calls in vain, which would then be connected to itself.
fn port(attempt: u16) -> u16 {
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    // Two demos at a time begin at different ports.
    let port = FIRST + std::process::id().wrapping_add(u32::from(attempt) * 1_009) % COUNT;
    port as u16
}
