//! Builds of the module that stand for releases to come.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rl_limiter::layout::{READS_UP_TO, WRITES};

/// Builds the module from a copy of its source in which only the two constants are others: what the layout that comes
/// will be nobody knows, so its version has the fields of today's.
pub fn build(reads_up_to: u8, writes: u8) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("releases-to-come");
    let source = folder.join("source");
    let _ = fs::remove_dir_all(&source);
    fs::create_dir_all(&source).unwrap();
    let parts = ["Cargo.toml", "Cargo.lock", "src", "limiter", "client", "examples"].map(|part| root.join(part));
    run(Command::new("cp").arg("-r").args(parts).arg(&source));

    let layout = source.join("limiter/src/layout.rs");
    let mut text = fs::read_to_string(&layout).unwrap();
    for (name, today, to_come) in [("READS_UP_TO", READS_UP_TO, reads_up_to), ("WRITES", WRITES, writes)] {
        let line = |version: u8| format!("pub const {name}: u8 = {version};");
        assert_eq!(text.matches(&line(today)).count(), 1, "{name} in limiter/src/layout.rs");
        text = text.replace(&line(today), &line(to_come));
    }
    fs::write(layout, text).unwrap();

    let target = folder.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--offline", "--locked", "--package", "redis-rl", "--lib", "--target-dir"]);
    // Without what only debuggers need, which is most of what a build takes.
    run(build.arg(&target).current_dir(&source).env("CARGO_PROFILE_DEV_DEBUG", "0"));
    let module = folder.join(format!("reads-{reads_up_to}-writes-{writes}.so"));
    fs::copy(target.join("debug/libredis_rl.so"), &module).unwrap();
    module
}

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
}
