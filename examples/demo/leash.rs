//! Child processes that never outlive the demo, however it ends.
//!
//! Every child holds one end of a pipe as its standard input, and goes away when the other end closes. The system closes
//! it even when the demo is killed, which no clean-up code of ours could promise.

use std::ffi::OsString;
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::Fallible;

/// Hidden sub-command: runs another program on a leash, for programs that don't watch their standard input.
pub const SUBCOMMAND: &str = "leash";

/// How long a child gets to end by itself before it is killed.
const PATIENCE: Duration = Duration::from_secs(3);
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// A copy of the demo that runs a hidden sub-command, and ends with this value.
pub struct Leashed {
    child: Child,
}

impl Leashed {
    pub fn spawn(subcommand: &str, args: impl IntoIterator<Item = OsString>) -> Fallible<Self> {
        let child = Command::new(std::env::current_exe()?)
            .arg(subcommand)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the demo alone, which then ends its children in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Leashed { child })
    }

    /// The first line that the child prints: it does so when it is ready.
    pub async fn first_line(&mut self) -> Fallible<String> {
        let stdout = self.child.stdout.take().ok_or("the child's output was read before")?;
        let mut lines = BufReader::new(stdout).lines();
        let line =
            timeout(STARTS_WITHIN, lines.next_line()).await.map_err(|_| "a child process did not get ready")??;
        Ok(line.ok_or("a child process ended before it was ready")?)
    }

    pub fn has_ended(&mut self) -> Fallible<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Lets go, and waits until the child has ended, and with it the program that it ran.
    pub async fn end(&mut self) -> Fallible<()> {
        drop(self.child.stdin.take());
        timeout(PATIENCE, self.child.wait()).await.map_err(|_| "a child process did not end")??;
        Ok(())
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Resolves when the parent has let go. The wait has a thread of its own: a read of the standard input can't be
/// cancelled, and would hold up the end of the runtime.
pub async fn released() {
    let (let_go, gone) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut ignored = [0; 64];
        while matches!(stdin.read(&mut ignored), Ok(1..)) {}
        drop(let_go);
    });
    // The sender only ever goes away, and that is the message.
    let _ = gone.await;
}

/// Runs `args` as a command until it ends or the parent lets go. Then it is killed, without a chance to say no.
pub async fn run(args: &[OsString]) -> Fallible<()> {
    let (program, args) = args.split_first().ok_or("leash: no program to run")?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|problem| format!("cannot run {}: {problem}", program.display()))?;
    tokio::select! {
        status = child.wait() => Err(format!("{} ended with {}", program.display(), status?).into()),
        () = released() => Ok(child.kill().await?),
    }
}
