//! Libraries in C: mostly such as change what a server sees of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a library, which a server can preload or, if it is a module, load.
pub fn library(name: &str, source: &str) -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
    let fresh = library.with_extension(std::process::id().to_string());
    let file = fresh.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let compiled = Command::new("cc").args(["-O2", "-shared", "-fPIC", "-ldl", "-o"]).arg(&fresh).arg(&file).status();
    assert!(compiled.is_ok_and(|status| status.success()), "no C compiler made the {name}: run scripts/setup --test");
    std::fs::rename(&fresh, &library).unwrap();
    library
}
