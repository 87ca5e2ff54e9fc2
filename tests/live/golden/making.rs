//! Makes the golden files of a layout: limiters of all kinds and forms, in all states that calls can bring them to.

use std::fs;
use std::path::Path;

use redis::{Connection, Value};

use super::answers::Answers;
use super::{APPEND_ONLY, copy_all};
use crate::support::{HOUR, NOON, Options, SECOND, Server, ask, info, version, wait_until};

const SNAPSHOT: &str = "snapshot.rdb";
const BEHIND_A_SNAPSHOT: &str = "append-only";
const COMMANDS_ONLY: &str = "append-only-commands";

pub const FILES: [&str; 3] = [SNAPSHOT, BEHIND_A_SNAPSHOT, COMMANDS_ONLY];

const DAY: i64 = 24 * HOUR;

pub fn make(folder: &Path) {
    let mut server = Options::new().set("appendonly", "yes").with_clock().start();
    let mut redis = server.connect();
    assert_eq!(version(&mut redis), (7, 0), "golden data is made by the oldest server, so that all can load it");
    let append_only = server.folder().join(APPEND_ONLY);

    fill_first(&mut server, &mut redis);
    rewrite(&mut redis, "yes");
    let saved_at = fill_second(&mut server, &mut redis);
    assert_the_ring_is_wrapped(&mut redis, "log:wrapped");

    fs::create_dir_all(folder).unwrap();
    ask::<()>(&mut redis, "SAVE");
    fs::copy(server.folder().join("dump.rdb"), folder.join(SNAPSHOT)).unwrap();
    copy_all(&append_only, &folder.join(BEHIND_A_SNAPSHOT));
    rewrite(&mut redis, "no");
    copy_all(&append_only, &folder.join(COMMANDS_ONLY));
    answer(&mut server, &mut redis, saved_at).write(folder);
}

/// What comes before the append-only file is rewritten, so that it is partly a snapshot.
fn fill_first(server: &mut Server, redis: &mut Connection) {
    for line in [
        "RL.FIXED fixed 10 1d 4",
        "RL.FIXED fixed:used-up 3 1d 3",
        "RL.FIXED fixed:immortal 10 1d 2",
        "PERSIST fixed:immortal",
        "RL.TOKENBUCKET narrow 10 3/7h 4",
        "RL.TOKENBUCKET narrow:used-up 5 1/d 5",
        "RL.DEBIT narrow:in-debt 10 1/h 17",
        "RL.TOKENBUCKET narrow:changed 10 3/7h 9",
        "RL.TOKENBUCKET wide 9007199254740991 0.123456789012 9007199254740000",
        "RL.DEBIT wide:in-debt 9007199254740991 1000/36500d 9007199254740991",
        "RL.DEBIT wide:in-debt 9007199254740991 1000/36500d 9007199254740990",
        "RL.TOKENBUCKET wide:now-narrow 9007199254740991 1/36500d 5",
        "RL.TOKENBUCKET narrow:now-wide 10 1/d 5",
        "RL.LEAKY leaky 10 2/7h 4",
        "RL.LEAKY leaky:wide 9007199254740991 1/36500d 9007199254740991",
        "RL.LEAKY leaky:changed 10 1/h 9",
        "RL.TOKENBUCKET unused 10 1000 5",
    ] {
        ask::<Value>(redis, line);
        server.clock().advance(1_000_003);
    }
    for (key, calls) in [("log:1", 1), ("log:8", 8), ("log:20", 20), ("log:40", 40), ("log:60", 60), ("log:ring", 500)]
    {
        for call in 0..calls {
            ask::<Value>(redis, &format!("RL.SLIDINGLOG {key} 100000 30d {}", 1 + call % 37));
            server.clock().advance(170_003);
        }
    }
    for line in [
        "RL.CONCURRENT holders 10 1d a 4",
        "RL.CONCURRENT holders 10 2d bb 3",
        "RL.CONCURRENT holders:long 9007199254740991 30d a-holder-with-a-name-of-62-bytes-as-some-frameworks-make-them- 9007199254740000",
        "RL.CONCURRENT holders:long 9007199254740991 9d b",
        "RL.CONCURRENT holders:changed 20 1d a 9",
        "RL.CONCURRENT holders:changed 20 1d b 9",
    ] {
        ask::<Value>(redis, line);
        server.clock().advance(1_000_003);
    }
    for line in [
        "RL.LEASE leased 100 1/h a 1 0 40 1h",
        "RL.LEASE leased 100 1/h bb 5 0 40 59m MIN 9",
        "RL.TOKENBUCKET leased 100 1/h 7",
        "RL.LEASE leased:put-off 10 1/m a 1 0 9 1h",
        "RL.DEBIT leased:put-off 10 1/m 5",
        "RL.LEASE leased:put-off 10 1/m a-node-with-a-name-of-45-bytes-as-hosts-have-- 9007199254740990 0 9 1h MIN 3",
        "RL.LEASE leased:in-debt 9007199254740991 1000/36500d a 1 0 9007199254740991 50m",
        "RL.DEBIT leased:in-debt 9007199254740991 1000/36500d 9007199254740991",
        "RL.LEASE leased:changed 50 1/h a 1 0 40 58m MIN 40",
        "RL.LEASE leased:expired 50 1/30m a 1 0 10 1s",
        "RL.LEASE leased:given-back 50 1/30m a 1 0 10 1h",
    ] {
        ask::<Value>(redis, line);
        server.clock().advance(1_000_003);
    }
    for holder in 0..40 {
        ask::<Value>(
            redis,
            &format!("RL.CONCURRENT holders:many 1000 {}d holder-{holder} {}", 1 + holder % 9, 1 + holder),
        );
        server.clock().advance(170_003);
    }
}

/// What comes after. Returns the time at which all is done.
fn fill_second(server: &mut Server, redis: &mut Connection) -> i64 {
    server.clock().set(NOON + HOUR);
    for line in [
        "RL.FIXED fixed:changed 20 1h 7",
        "RL.FIXED fixed:changed 15 1d 2",
        "RL.FIXED fixed:given-back 10 1d 6",
        "RL.REFUND fixed:given-back 2",
        "RL.REFUND narrow 1",
        "RL.TOKENBUCKET narrow:changed 8 1/3h 1",
        "RL.TOKENBUCKET wide:now-narrow 10 1/d 2",
        "RL.TOKENBUCKET narrow:now-wide 9007199254740991 1/36500d 2",
        "RL.LEAKY leaky:changed 9 1/50m 1",
        "RL.SLIDINGLOG log:joined 10 1d 2",
        "RL.SLIDINGLOG log:joined 10 1d 3",
        "RL.CONCURRENT holders:changed 9 5h b 8",
        "RL.RELEASE holders:many holder-7",
        "RL.RELEASE holders:many holder-39",
        "RL.CONCURRENT holders:many 1000 2d holder-5 2 XX",
        "RL.CONCURRENT holders 10 2d bb 30",
        "RL.LEASE leased:changed 30 1/m b 1 0 9 1h",
        "RL.LEASE leased:given-back 50 1/30m a 2 4 0 1h",
        "RL.REFUND leased 3",
    ] {
        ask::<Value>(redis, line);
    }
    // Costs and times that take wide entries, holes that refunds leave, and a window and a limit that changed.
    for call in 0..9 {
        ask::<Value>(
            redis,
            &format!("RL.SLIDINGLOG log:wide 9007199254740991 30d {}", 1_000_000_000_000_000_i64 - call),
        );
        ask::<Value>(redis, &format!("RL.SLIDINGLOG log:holes 100 30d {}", 1 + call));
        ask::<Value>(redis, &format!("RL.SLIDINGLOG log:changed 100 1d {}", 1 + call));
        server.clock().advance(700_000_001);
    }
    server.clock().set(NOON + 3 * HOUR);
    // Entries leave at one end while others come at the other, until the ring's end is behind its start.
    for call in 0..700 {
        ask::<Value>(redis, &format!("RL.SLIDINGLOG log:wrapped 100000 40s {}", 1 + call % 5));
        server.clock().advance(200_007);
    }
    for line in [
        "RL.REFUND log:holes 3 AGE 50m",
        "RL.REFUND log:holes 2",
        "RL.SLIDINGLOG log:changed 60 1h 2",
        "RL.SLIDINGLOG log:wrapped 100000 3h 1",
        "RL.SLIDING sliding 10 2h 6",
        "RL.SLIDING sliding:changed 10 2h 7",
    ] {
        ask::<Value>(redis, line);
    }
    // The next window of two hours.
    server.clock().set(NOON + 4 * HOUR);
    for line in [
        "RL.SLIDING sliding 10 2h 2",
        "RL.SLIDING sliding:changed 8 90m 1",
        "RL.LEASE leased 100 1/h a 2 0 30 1h",
        "RL.LEASE leased 100 1/h c 1 0 30 30m MIN 9",
        "RL.DEBIT leased:put-off 10 1/m 13",
        "RL.LEASE leased:put-off 10 1/m a-node-with-a-name-of-45-bytes-as-hosts-have-- 9007199254740990 0 9 1h MIN 3",
        "RL.LEASE leased:in-debt 9007199254740991 1000/36500d b 1 0 9007199254740991 50m",
        "RL.LEASE leased:changed 30 1/m b 2 0 20 1h MIN 20",
        "RL.TOKENBUCKET leased:changed 15 1/m 0",
        "RL.LEASE leased:changed 15 1/m c 1 0 5 1h",
        "RL.LEASE leased:given-back 50 1/30m b 1 0 12 40m",
        "RL.LEASE leased:given-back 50 1/30m b 2 9 4 40m",
        "RL.LEASE leased:holds-nothing 50 1/h a 1 0 5 10m",
        "RL.TOKENBUCKET leased:holds-nothing 50 1/h 45",
        "RL.LEASE leased:holds-nothing 50 1/h a 2 0 5 10m",
    ] {
        ask::<Value>(redis, line);
    }
    for node in 0..40 {
        let seconds = 3_600 - node % 7;
        ask::<Value>(redis, &format!("RL.LEASE leased:many 100000 1/s node-{node} 1 0 {} {seconds}", 1 + node * 3));
    }
    ask::<Value>(redis, "RL.TOKENBUCKET unused 1000 1000 500");
    // By then the last one is unused, and not collected yet.
    let saved_at = NOON + 4 * HOUR + SECOND;
    server.clock().set(saved_at);
    saved_at
}

/// Looks at all limiters, lets them decide, and looks again at some later times.
fn answer(server: &mut Server, redis: &mut Connection, saved_at: i64) -> Answers {
    let mut keys: Vec<String> = ask(redis, "KEYS *");
    keys.sort();
    let mut answers = Answers::default();
    let looks: &[&str] = &["RL.PEEK", "RL.INSPECT", "PEXPIRETIME"];
    let all = |answers: &mut Answers, redis: &mut Connection, looks: &[&str]| {
        for (key, look) in keys.iter().flat_map(|key| looks.iter().map(move |look| (key, look))) {
            answers.ask(redis, &format!("{look} {key}"));
        }
    };
    answers.at(server, saved_at);
    all(&mut answers, redis, looks);
    answers.at(server, saved_at + SECOND);
    all(&mut answers, redis, &["RL.PEEK"]);
    for line in [
        "RL.FIXED fixed 10 1d 7",
        "RL.FIXED fixed 12 1d 2",
        "RL.FIXED fixed:used-up 3 1d",
        "RL.FIXED fixed:immortal 10 1d 0",
        "RL.FIXED fixed:changed 15 12h 3",
        "RL.REFUND fixed:given-back 1 AGE 1h",
        "RL.SLIDING sliding 10 2h 3",
        "RL.SLIDING sliding:changed 8 90m 2",
        "RL.TOKENBUCKET narrow 10 3/7h 7",
        "RL.TOKENBUCKET narrow 10 3/7h 3",
        "RL.TOKENBUCKET narrow:used-up 5 1/d",
        "RL.TOKENBUCKET narrow:in-debt 10 1/h",
        "RL.DEBIT narrow:in-debt 10 1/h 9",
        "RL.TOKENBUCKET narrow:changed 20 1/3h 1",
        "RL.TOKENBUCKET wide 9007199254740991 0.123456789012 3",
        "RL.REFUND wide:in-debt 9007199254740991",
        "RL.TOKENBUCKET wide:now-narrow 10 1/d 3",
        "RL.TOKENBUCKET narrow:now-wide 10 1/d 3",
        "RL.LEAKY leaky 10 2/7h 3",
        "RL.LEAKY leaky:wide 9007199254740991 1/36500d",
        "RL.LEAKY leaky:changed 9 1/50m 5",
        "RL.SLIDINGLOG log:1 3 30d 2",
        "RL.SLIDINGLOG log:8 100000 30d 5",
        "RL.REFUND log:20 50 AGE 3h",
        "RL.REFUND log:40 77",
        "RL.SLIDINGLOG log:60 1500 30d 400",
        "RL.SLIDINGLOG log:ring 100000 30d 1000",
        "RL.SLIDINGLOG log:ring 9000 30d 1000",
        "RL.SLIDINGLOG log:wrapped 500 3h 2",
        "RL.REFUND log:wrapped 20 AGE 1h",
        "RL.SLIDINGLOG log:wide 9007199254740991 30d 7",
        "RL.SLIDINGLOG log:wide 9007199254740991 30d 1000000000000000",
        "RL.SLIDINGLOG log:holes 100 30d 60",
        "RL.SLIDINGLOG log:changed 60 20m 8",
        "RL.REFUND log:joined 1",
        "RL.FIXED unused 5 1d 2",
        "RL.CONCURRENT holders 10 1d c 3",
        "RL.CONCURRENT holders 10 1d c 9",
        "RL.CONCURRENT holders 10 1d c 3 XX",
        "RL.CONCURRENT holders 10 1d bb 2",
        "RL.CONCURRENT holders:long 9007199254740991 1d b 500",
        "RL.RELEASE holders:long b",
        "RL.CONCURRENT holders:changed 9 1d a 9",
        "RL.CONCURRENT holders:changed 0 1d a 0",
        "RL.CONCURRENT holders:many 700 1d another-holder 30",
        "RL.CONCURRENT holders:many 900 1d holder-12 100",
        "RL.RELEASE holders:many holder-13",
        "RL.LEASE leased 100 1/h a 2 0 9 1h",
        "RL.LEASE leased 100 1/h a 3 5 20 1h",
        "RL.TOKENBUCKET leased 90 1/h 2",
        "RL.TOKENBUCKET leased 90 1/h 90",
        "RL.LEASE leased:put-off 10 1/m b 1 0 4 1h",
        "RL.LEASE leased:put-off 10 1/m a-node-with-a-name-of-45-bytes-as-hosts-have-- 9007199254740991 0 9 1h MIN 3",
        "RL.REFUND leased:in-debt 9007199254740991",
        "RL.LEASE leased:changed 15 1/m b 3 18 3 1h",
        "RL.TOKENBUCKET leased:expired 50 1/30m 1",
        "RL.LEASE leased:many 100000 1/s node-12 2 9 0 1h",
        "RL.LEASE leased:many 100000 1/s node-12 3 0 7 10ms",
        "RL.DEBIT leased:many 100000 1/s 500",
    ] {
        answers.ask(redis, line);
    }
    all(&mut answers, redis, &["RL.INSPECT"]);
    for later in [2 * SECOND, HOUR, 6 * HOUR, 3 * DAY, 29 * DAY, 400 * DAY] {
        answers.at(server, saved_at + later);
        all(&mut answers, redis, &["RL.PEEK"]);
    }
    answers
}

fn rewrite(redis: &mut Connection, preamble: &str) {
    ask::<()>(redis, &format!("CONFIG SET aof-use-rdb-preamble {preamble}"));
    ask::<()>(redis, "BGREWRITEAOF");
    wait_until("the append-only file is rewritten", || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|field| info(redis, "persistence", field).as_deref() == Some("0"))
    });
}

/// Whether a log's entries go on at the start of its slots, by the fields of its head: slots, first block, blocks.
fn assert_the_ring_is_wrapped(redis: &mut Connection, key: &str) {
    let bytes: Vec<u8> = ask(redis, &format!("GET {key}"));
    let [slots, first, blocks] = [20, 53, 57].map(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    assert!(first + blocks > slots, "{slots} slots, {blocks} blocks from slot {first} on");
}
