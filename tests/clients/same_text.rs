//! What is shown in several places is the same text in all of them.

use crate::page::{CLIENTS, README, snippet, snippets};

#[test]
fn the_page_shows_the_rust_that_is_compiled() {
    for (file, compiled) in [
        ("redis-rs/check.rs", include_str!("redis_rs/check.rs")),
        ("redis-rs/single.rs", include_str!("redis_rs/single.rs")),
        ("redis-rs/cluster.rs", include_str!("redis_rs/cluster.rs")),
    ] {
        assert_eq!(snippet(CLIENTS, file), compiled, "docs/clients.md and tests/clients/{}", file.replace('-', "_"));
    }
}

#[test]
fn the_readme_shows_what_the_page_does() {
    let shown = snippets(README);
    assert!(!shown.is_empty(), "README.md has no snippet");
    for snippet_of_readme in shown {
        let file = &snippet_of_readme.file;
        assert_eq!(snippet_of_readme.text, snippet(CLIENTS, file), "{file} in README.md and docs/clients.md");
    }
}

#[test]
fn the_page_names_the_versions_that_run() {
    let locked = include_str!("../../Cargo.lock");
    let redis_rs = locked.split("name = \"redis\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let wanted = include_str!("package.json");
    let npm = |name: &str| wanted.split(&format!("\"{name}\": \"")).nth(1).and_then(|rest| rest.split('"').next());
    let pip = include_str!("requirements.txt").lines().find_map(|line| line.strip_prefix("redis=="));
    for (client, version) in
        [("redis-py", pip), ("node-redis", npm("redis")), ("ioredis", npm("ioredis")), ("redis-rs", redis_rs)]
    {
        let row = format!("| [{client}](#{client}) | {} | yes |", version.expect(client));
        assert!(CLIENTS.contains(&row), "docs/clients.md has no row that begins: {row}");
    }
}
