//! This test program again, in processes of their own.

use std::process::{Child, Command, Stdio};

/// Tells a process that it is one of those, and what it is to do.
const TASK: &str = "RL_TEST_TASK";

/// What this process was started for, unless that was by a person.
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Tells the one who started this process how it went.
pub fn report(line: &str) {
    println!("\n{TASK}: {line}");
}

/// Runs the test of this thread once more in a process of its own, which whoever asks for it waits for or kills.
pub fn process(task: &str) -> Child {
    start(task, &|_| {})
}

fn start(task: &str, change: &dyn Fn(&mut Command)) -> Child {
    let test = std::thread::current().name().expect("tests have names").to_owned();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &test, "--nocapture"]).env(TASK, task);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    change(&mut command);
    command.spawn().unwrap()
}

/// Runs the test of this thread once more in as many processes at once, and collects what they report.
pub fn in_processes(count: usize, task: &str, change: impl Fn(&mut Command)) -> Vec<String> {
    let processes: Vec<_> = (0..count).map(|_| start(task, &change)).collect();
    processes.into_iter().map(reported).collect()
}

/// What a process reports, once it has ended.
pub fn reported(process: Child) -> String {
    let output = process.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(TASK)?.strip_prefix(": "));
    assert!(output.status.success(), "{text}");
    line.unwrap_or_else(|| panic!("nothing is reported: {text}")).to_owned()
}
