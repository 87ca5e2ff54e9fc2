//! A Redis of the demo's own, with the module loaded.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::Fallible;
use crate::leash::{self, Leashed};

const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// Far more than any answer takes.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How often another free port is tried when somebody takes the chosen one first.
const ATTEMPTS: usize = 5;

/// Ends, with its files, when it is dropped.
pub struct RedisServer {
    address: SocketAddr,
    // Before `_files`: fields are dropped in order, and the server still writes there.
    _process: Leashed,
    _files: TempDir,
}

impl RedisServer {
    pub async fn start(module: &Path) -> Fallible<Self> {
        for _ in 0..ATTEMPTS {
            if let Some(server) = Self::start_on(free_port()?, module).await? {
                return Ok(server);
            }
        }
        Err("no free port for Redis".into())
    }

    /// None if somebody else has the port.
    async fn start_on(port: u16, module: &Path) -> Fallible<Option<Self>> {
        let files = TempDir::new()?;
        let program = std::env::var_os("RL_SERVER").unwrap_or_else(|| "redis-server".into());
        let log = files.path().join("redis.log");
        let mut process = Leashed::spawn(leash::SUBCOMMAND, command_line(program, port, &files, &log, module))?;

        // The log tells that it is our server that is ready, where an answer on the port may come from another.
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            let ended = process.has_ended()?;
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains("Ready to accept connections") {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                return Ok(Some(RedisServer { address, _process: process, _files: files }));
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

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn connect(&self) -> Fallible<MultiplexedConnection> {
        connect(self.address).await
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
        Ok(format!("{server} with the redis-rl module runs on {}.", self.address))
    }
}

pub async fn connect(address: SocketAddr) -> Fallible<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWERS_WITHIN))
        .set_response_timeout(Some(ANSWERS_WITHIN));
    Ok(redis::Client::open(format!("redis://{address}"))?.get_multiplexed_async_connection_with_config(&config).await?)
}

fn command_line(program: OsString, port: u16, files: &TempDir, log: &Path, module: &Path) -> Vec<OsString> {
    let setting = |name: &str, value: PathBuf| [OsString::from(name), value.into_os_string()];
    let mut command = vec![program];
    command.extend(setting("--bind", Ipv4Addr::LOCALHOST.to_string().into()));
    command.extend(setting("--port", port.to_string().into()));
    command.extend(setting("--dir", files.path().to_owned()));
    command.extend(setting("--logfile", log.to_owned()));
    command.extend(setting("--save", PathBuf::new()));
    command.extend(setting("--loadmodule", module.to_owned()));
    command
}

fn free_port() -> Fallible<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
