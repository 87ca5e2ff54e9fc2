//! A real server in a process of its own, that owns its folder, log and port, and is gone when the guard is dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::Connection;
use tempfile::TempDir;

use super::clock::Clock;
use super::disk::Disk;
use super::info;
use super::port::free_port;

/// How long a server may take for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The file that a server is started with, if it is.
const FILE: &str = "server.conf";

/// What a server is started with.
pub struct Options {
    module: Option<PathBuf>,
    binary: PathBuf,
    settings: Vec<String>,
    clock: bool,
    /// Where its folder is made.
    place: PathBuf,
    /// What the file says that it is started with.
    file: Option<String>,
    is_sentinel: bool,
    disk: Option<Disk>,
    /// What is in the process from its start on, and stays when it is unloaded.
    kept: Option<PathBuf>,
}

impl Options {
    /// With the module, nothing persisted, the debug and module commands allowed.
    pub fn new() -> Self {
        let settings = ["save", "", "enable-debug-command", "yes", "enable-module-command", "yes"];
        Self {
            module: Some(module("redis_rl")),
            binary: std::env::var_os("RL_SERVER").unwrap_or_else(|| "redis-server".into()).into(),
            settings: settings.map(str::to_owned).to_vec(),
            clock: false,
            place: std::env::temp_dir(),
            file: None,
            is_sentinel: false,
            disk: None,
            kept: None,
        }
    }

    /// A sentinel, with these lines in its file, where it writes what it learns.
    pub fn sentinel(lines: &str) -> Self {
        Self { is_sentinel: true, ..Self::new().module(None).bare().in_memory().file(lines) }
    }

    /// It is started with a file that has these lines at first.
    pub fn file(mut self, lines: &str) -> Self {
        self.file = Some(lines.to_owned());
        self
    }

    /// The server's folder is in memory, where the machine has such a place. Sentinels and the nodes of a cluster wait for the disk before
    /// they vote, and a disk that others keep busy may take seconds for that.
    pub fn in_memory(mut self) -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            self.place = memory.to_owned();
        }
        self
    }

    pub fn module(mut self, module: Option<PathBuf>) -> Self {
        self.module = module;
        self
    }

    pub fn binary(mut self, binary: PathBuf) -> Self {
        self.binary = binary;
        self
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Only what was set afterwards is set.
    pub fn bare(mut self) -> Self {
        self.settings.clear();
        self
    }

    /// The server lives by [`Server::clock`].
    pub fn with_clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// The server writes to a disk that [`Disk::lose_power`] can make forget what was not synced.
    pub fn with_disk(mut self, disk: Disk) -> Self {
        self.disk = Some(disk);
        self
    }

    /// The module's library stays in memory when the module is unloaded, as libraries may.
    pub fn keeping_the_module(mut self) -> Self {
        self.kept.clone_from(&self.module);
        self
    }

    pub fn start(self) -> Server {
        let folder = self.folder();
        let clock = self.clock.then(|| Clock::new(folder.path()));
        let mut server = Server { options: self, folder, clock, process: None, port: 0 };
        server.start().unwrap_or_else(|log| panic!("the server did not start:\n{log}"));
        server
    }

    fn folder(&self) -> TempDir {
        let prefix = "redis-rl-test-";
        TempDir::with_prefix_in(prefix, &self.place).or_else(|_| TempDir::with_prefix(prefix)).unwrap()
    }

    /// The log of a server that must refuse to start.
    pub fn start_refused(self) -> String {
        let folder = self.folder();
        let mut server = Server { options: self, folder, clock: None, process: None, port: 0 };
        server.start().expect_err("the server should not have started")
    }
}

pub struct Server {
    options: Options,
    folder: TempDir,
    clock: Option<Clock>,
    process: Option<Child>,
    port: u16,
}

impl Server {
    pub fn new() -> Self {
        Options::new().start()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn clock(&mut self) -> &mut Clock {
        self.clock.as_mut().expect("a server started without a clock")
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder().join("log")).unwrap_or_default()).into_owned()
    }

    pub fn connect(&self) -> Connection {
        self.connect_by(2)
    }

    /// `master` or `slave`; nothing if the connection breaks meanwhile, as sentinels let connections do at such a change.
    pub fn role(&self) -> Option<String> {
        let told: String = redis::cmd("INFO").arg("replication").query(&mut self.try_connect(2).ok()?).ok()?;
        told.lines().find_map(|line| line.strip_prefix("role:").map(str::to_owned))
    }

    /// By version 2 or 3 of the protocol.
    pub fn connect_by(&self, protocol: u8) -> Connection {
        self.try_connect(protocol).unwrap_or_else(|error| panic!("no connection: {error}\n{}", self.log()))
    }

    pub fn try_connect(&self, protocol: u8) -> redis::RedisResult<Connection> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/?protocol=resp{protocol}", self.port))?;
        let connection = client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    /// What its file says by now.
    pub fn file(&self) -> String {
        fs::read_to_string(self.folder().join(FILE)).unwrap()
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().and_then(|()| process.wait()).unwrap();
        }
    }

    /// Ends the server as an operator would.
    pub fn shut_down(&mut self) {
        let mut connection = self.connect();
        // The server closes the connection instead of replying.
        let reply = redis::cmd("SHUTDOWN").query::<()>(&mut connection);
        assert!(reply.is_err_and(|error| error.code().is_none()), "the server refused to end");
        if let Some(mut process) = self.process.take() {
            process.wait().unwrap();
        }
    }

    /// Starts the server again in its folder, with its settings as they were changed in between.
    pub fn start_again(&mut self, change: impl FnOnce(Options) -> Options) {
        self.change(change);
        self.start().unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }

    /// Changes with what it will be started the next time.
    pub fn change(&mut self, change: impl FnOnce(Options) -> Options) {
        let options = std::mem::replace(&mut self.options, Options::new());
        self.options = change(options);
    }

    /// Starts the server again where it was, so that those who know its address find it there.
    pub fn revive(&mut self) {
        self.revive_without_waiting();
        self.wait_until_ready().unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }

    /// The same, but it may not have begun to listen, nor have loaded its data.
    pub fn revive_without_waiting(&mut self) {
        assert!(self.process.is_none(), "the server is still there");
        self.spawn();
    }

    /// `kill -STOP`: all connections stay, and nothing is answered.
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    /// `kill -CONT`: what was sent meanwhile is done now.
    pub fn cont(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("a server that runs").id().to_string();
        let sent = Command::new("kill").args([signal, &process]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal} {process}");
    }

    /// The error is the server's log.
    fn start(&mut self) -> Result<(), String> {
        // Between finding a free port and using it somebody else may take it.
        for _ in 0..5 {
            self.port = free_port();
            self.spawn();
            let ready = self.wait_until_ready();
            if ready.is_ok() || !self.log().contains("Address already in use") {
                return ready;
            }
        }
        Err(self.log())
    }

    /// The error is the server's log.
    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let process = self.process.as_mut().expect("just started");
            if process.try_wait().unwrap().is_some() {
                break;
            }
            let id = process.id();
            if self.try_connect(2).is_ok_and(|mut connection| is_ready(&mut connection, id)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(self.log())
    }

    fn spawn(&mut self) {
        let log = File::create(self.folder().join("log")).unwrap();
        // The server must not outlive the tests, even if they are killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.options.binary);
        command.current_dir(self.folder()).stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
        if let Some(lines) = &self.options.file {
            let file = self.folder().join(FILE);
            if !file.exists() {
                fs::write(&file, lines).unwrap();
            }
            command.arg(file);
        }
        if self.options.is_sentinel {
            command.arg("--sentinel");
        }
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        for setting in self.options.settings.chunks(2) {
            command.arg(format!("--{}", setting[0])).args(setting[1].split(' '));
        }
        if let Some(module) = &self.options.module {
            command.arg("--loadmodule").arg(module);
        }
        if let Some(clock) = &self.clock {
            command.envs(clock.environment());
        }
        if let Some(kept) = &self.options.kept {
            command.env("LD_PRELOAD", kept);
        }
        if let Some(disk) = &self.options.disk {
            assert!(self.clock.is_none(), "one library is preloaded, for a clock or for a disk");
            command.envs(disk.environment());
        }
        let started = command.spawn();
        self.process = Some(started.unwrap_or_else(|error| {
            panic!("{} does not start ({error}): run scripts/setup --test", self.options.binary.display())
        }));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if thread::panicking() {
            eprintln!("log of the server on port {}:\n{}", self.port, self.log());
        }
    }
}

/// Whether it is our server that answers, and not somebody who took the port, and it has loaded its data.
fn is_ready(connection: &mut Connection, process: u32) -> bool {
    let is_loaded = redis::cmd("PING").query::<String>(connection).is_ok();
    is_loaded && info(connection, "server", "process_id").is_some_and(|id| id == process.to_string())
}

/// A module that cargo has built, as `lib<name>.so` beside the tests or among the examples.
pub fn module(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let file = format!("lib{name}.so");
    let places = [deps.join(&file), deps.with_file_name("examples").join(&file)];
    let found = places.iter().find(|place| place.exists());
    found.unwrap_or_else(|| panic!("{file} is not built: run scripts/test")).clone()
}
