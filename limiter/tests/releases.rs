//! A layout is written one release after it can be read, and not earlier. So the release before can always be put back.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rl_limiter::layout::{READS_UP_TO, WRITES};

const RELEASES: &str = include_str!("layout/releases.txt");

struct Release<'a> {
    name: &'a str,
    reads_up_to: u8,
    writes: u8,
}

fn releases(table: &str) -> Vec<Release<'_>> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| match row.split(' ').collect::<Vec<_>>()[..] {
        [name, reads, writes] => Release { name, reads_up_to: reads.parse().unwrap(), writes: writes.parse().unwrap() },
        _ => panic!("{row:?}: not a release and two numbers"),
    })
    .collect()
}

/// What is wrong about a release, where `before` is the one that may have to be put back.
fn objection(before: &Release<'_>, release: &Release<'_>) -> Option<String> {
    let name = release.name;
    if release.writes > before.reads_up_to {
        return Some(format!("{name} writes layout {}, which {} does not read", release.writes, before.name));
    }
    if release.reads_up_to < before.reads_up_to || release.writes < before.writes {
        return Some(format!("{name} goes back behind {}", before.name));
    }
    (release.writes > release.reads_up_to).then(|| format!("{name} does not read what it writes"))
}

fn objections(table: &str) -> Vec<String> {
    releases(table).windows(2).filter_map(|pair| objection(&pair[0], &pair[1])).collect()
}

#[test]
fn each_release_writes_only_what_the_one_before_can_read() {
    assert_eq!(objections(RELEASES), [""; 0]);
}

#[test]
fn the_last_release_is_this_one() {
    let releases = releases(RELEASES);
    let last = releases.last().unwrap();
    assert_eq!(
        (last.name, last.reads_up_to, last.writes),
        (env!("CARGO_PKG_VERSION"), READS_UP_TO, WRITES),
        "limiter/tests/layout/releases.txt needs a row for this release"
    );
}

#[test]
fn releases_that_break_the_rule_are_seen() {
    assert_eq!(objections("1 1 1\n2 2 1\n3 2 2\n4 3 2"), [""; 0]);
    assert_eq!(objections("1 1 1\n2 2 2"), ["2 writes layout 2, which 1 does not read"]);
    assert_eq!(objections("1 2 1\n2 1 1"), ["2 goes back behind 1"]);
    assert_eq!(objections("1 2 1\n2 2 2\n3 2 1"), ["3 goes back behind 2"]);
}
