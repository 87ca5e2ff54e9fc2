//! The README's section "From your API server" works as pasted.
//!
//! A test program by itself, because the compiler would disturb those that measure time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "shared with the live tests, which need other parts")]
#[path = "../live/programs.rs"]
mod programs;
#[allow(dead_code, unused_imports, reason = "shared with the tests of the module, which need other parts")]
#[path = "../../../tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::sleep;

use crate::programs::{Program, get};
use crate::support::{Server, ask, free_port};

const SECTION: &str = "## From your API server";

/// The first block in the section that is fenced as of this language.
fn block<'a>(readme: &'a str, language: &str) -> &'a str {
    let (_, section) = readme.split_once(SECTION).expect("the section is there");
    let (_, block) = section.split_once(&format!("```{language}\n")).expect("the block is there");
    block.split_once("\n```").expect("the block ends").0
}

/// The block with one thing put in place of another, which must be there.
fn with(block: &str, present: &str, new: &str) -> String {
    assert!(block.contains(present), "{present} is not in:\n{block}");
    block.replace(present, new)
}

#[tokio::test]
async fn the_readme_works_as_pasted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let server = Server::new();
    let port = free_port();

    // A project of its own, but with the versions of this one, so that no new ones surprise.
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(project.join("src")).unwrap();
    let package = "[package]\nname = \"readme\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n";
    let client = format!("path = {:?}", root.join("client"));
    let dependencies = with(block(&readme, "toml"), "path = \"redis-rl/client\"", &client);
    fs::write(project.join("Cargo.toml"), package.to_owned() + &dependencies).unwrap();
    fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let program = with(block(&readme, "rust"), "127.0.0.1:6379", &format!("127.0.0.1:{}", server.port()));
    let program = with(&program, "127.0.0.1:3000", &format!("127.0.0.1:{port}"));
    // A busy machine must not make an outage of it.
    let program = with(&program, "from_millis(20)", "from_millis(5000)");
    fs::write(project.join("src/main.rs"), program).unwrap();

    let target = project.join("target");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", &target)
        .status();
    assert!(built.unwrap().success(), "what the README says does not compile");

    let mut command = Command::new(target.join("debug/readme"));
    command.stdout(Stdio::null());
    let _program = Program::start(command);
    let address = format!("127.0.0.1:{port}");
    for _ in 0..500 {
        if tokio::net::TcpStream::connect(&address).await.is_ok() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    for request in 1..=100 {
        let answer = get(&address, &[("x-api-key", "alice")]).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello\n"), "request {request}: {answer:?}");
    }
    let refused = get(&address, &[("x-api-key", "alice")]).await;
    let shown = block(&readme, "\nHTTP/1.1 429 Too Many Requests");
    for line in shown.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        assert_eq!(refused.header(name), Some(value), "{refused:?}");
    }
    assert_eq!(refused.status, 429);
    let keys: Vec<String> = ask(&mut server.connect(), "KEYS *");
    assert!(keys.iter().any(|key| key.starts_with("rl:{sha256:")), "{keys:?}");
    assert!(!keys.concat().contains("alice"), "{keys:?}");
    assert_eq!(get(&address, &[("x-api-key", "made up")]).await.header("x-ratelimit-remaining"), Some("99"));
    assert_eq!(get(&address, &[]).await.status, 200, "another caller, by address");
}
