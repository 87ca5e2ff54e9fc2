//! `RL.TOP`: which keys are denied most.

use redis::Connection;

use crate::support::{NOON, Options, SECOND, ask, decide, error, info, send, send_words, skip, version};

/// A name, its count, the most by which it may be too high, and the length of the name.
type Row = (String, u64, u64, u64);

fn row(name: &str, count: u64) -> Row {
    (name.to_owned(), count, 0, name.len() as u64)
}

fn top(redis: &mut Connection) -> Vec<Row> {
    ask(redis, "RL.TOP")
}

fn used_memory(redis: &mut Connection) -> i64 {
    info(redis, "memory", "used_memory").unwrap().parse().unwrap()
}

#[test]
fn it_tells_who_was_denied_by_any_command_and_how_often() {
    let server = Options::new().with_clock().set("rl.top-keys", "10").start();
    let mut redis = server.connect();
    assert_eq!(top(&mut redis), []);
    for (times, command) in [
        (1, "RL.FIXED f 0 1m"),
        (2, "RL.SLIDING s 0 1m"),
        (3, "RL.SLIDINGLOG log 0 1m"),
        (4, "RL.TOKENBUCKET b 0 1"),
        (5, "RL.LEAKY l 0 1"),
    ] {
        (0..times).for_each(|_| assert_eq!(decide(&mut redis, command)[0], 0));
        // None of these is a denial.
        decide(&mut redis, &format!("{command} 0"));
    }
    assert_eq!(decide(&mut redis, "RL.FIXED ok 5 1m")[0], 1);
    decide(&mut redis, "RL.PEEK ok 9");
    error(&mut redis, "RL.LEAKY ok 0 1");
    let all = [row("l", 5), row("b", 4), row("log", 3), row("s", 2), row("f", 1)];
    assert_eq!(top(&mut redis), all);
    assert_eq!(ask::<Vec<Row>>(&mut redis, "RL.TOP 2"), all[..2]);
    // It tells who was denied, not what is stored.
    ask::<()>(&mut redis, "FLUSHALL");
    assert_eq!(top(&mut redis), all);
}

#[test]
fn it_is_off_until_it_is_set_and_set_anew_it_begins_anew() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED k 0 1m");
    let off = "ERR rl.top-keys is 0, so nobody is counted: set it to how many keys to keep";
    assert_eq!(error(&mut redis, "RL.TOP"), off);
    ask::<()>(&mut redis, "CONFIG SET rl.top-keys 5");
    assert_eq!(top(&mut redis), []);
    decide(&mut redis, "RL.FIXED k 0 1m");
    assert_eq!(top(&mut redis), [row("k", 1)]);
    ask::<()>(&mut redis, "CONFIG SET rl.top-keys 6");
    assert_eq!(top(&mut redis), []);
    ask::<()>(&mut redis, "CONFIG SET rl.top-keys 0");
    assert_eq!(error(&mut redis, "RL.TOP"), off);
    for value in ["1001", "-1", "many"] {
        assert!(send::<()>(&mut redis, &format!("CONFIG SET rl.top-keys {value}")).is_err(), "{value}");
    }
}

#[test]
fn only_a_number_of_rows_is_an_argument() {
    let server = Options::new().set("rl.top-keys", "5").start();
    let mut redis = server.connect();
    for n in ["0", "-1", "+1", "01", "1001", "1.5", "all", "99999999999999999999"] {
        assert_eq!(error(&mut redis, &format!("RL.TOP {n}")), "ERR n must be an integer from 1 to 1000", "{n}");
    }
    assert!(error(&mut redis, "RL.TOP 1 2").starts_with("ERR wrong number of arguments"));
    assert_eq!(ask::<Vec<Row>>(&mut redis, "rl.top 1000"), []);
}

#[test]
fn what_is_past_is_forgotten_within_two_minutes() {
    let mut server = Options::new().with_clock().set("rl.top-keys", "5").start();
    let mut redis = server.connect();
    (0..9).for_each(|_| assert_eq!(decide(&mut redis, "RL.FIXED yesterday 0 1m")[0], 0));
    server.clock().set(NOON + 60 * SECOND);
    decide(&mut redis, "RL.FIXED now 0 1m");
    assert_eq!(top(&mut redis), [row("yesterday", 9), row("now", 1)]);
    server.clock().set(NOON + 120 * SECOND);
    assert_eq!(top(&mut redis), [row("now", 1)]);
    server.clock().set(NOON + 180 * SECOND);
    assert_eq!(top(&mut redis), []);
}

/// Whatever comes, and however long its names are.
#[test]
fn its_memory_is_what_the_reference_says_and_a_flood_takes_none() {
    const KEYS: i64 = 1_000;
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let flood = |redis: &mut Connection, calls: u64, length: usize| {
        for batch in 0..calls / 500 {
            let mut pipe = redis::pipe();
            for call in 0..500 {
                let name = format!("{:0length$}", batch * 500 + call);
                pipe.cmd("RL.FIXED").arg(name).arg(0).arg(60).ignore();
            }
            pipe.query::<()>(redis).unwrap();
        }
    };
    // So that the buffers of this client have their size.
    flood(&mut redis, 2_000, 300);
    let before = used_memory(&mut redis);
    ask::<()>(&mut redis, &format!("CONFIG SET rl.top-keys {KEYS}"));
    let empty = used_memory(&mut redis) - before;
    assert!(empty > 300 * KEYS && empty < 400 * KEYS, "{empty} bytes");
    flood(&mut redis, 20_000, 300);
    let full = used_memory(&mut redis) - before;
    println!("{KEYS} keys take {empty} bytes, {full} after a flood");
    assert!(full < 400 * KEYS, "{full} bytes, {empty} before the flood");
    let rows: Vec<Row> = ask(&mut redis, "RL.TOP 1");
    assert_eq!((rows[0].0.len(), rows[0].3), (128, 300));
    assert!(rows[0].1 <= 20 && rows[0].1 - rows[0].2 <= 1, "{rows:?}");
    ask::<()>(&mut redis, "CONFIG SET rl.top-keys 0");
    let off = used_memory(&mut redis) - before;
    assert!(off < empty / 4, "{off} bytes are kept when it is off");
}

/// The heaviest of many is found, within the bound, among more keys than are kept.
#[test]
fn the_heaviest_is_found_in_a_crowd() {
    let server = Options::new().with_clock().set("rl.top-keys", "20").start();
    let mut redis = server.connect();
    let mut pipe = redis::pipe();
    for call in 0..3_000 {
        let key = if call % 10 == 0 { "heavy".to_owned() } else { format!("light:{call}") };
        pipe.cmd("RL.FIXED").arg(key).arg(0).arg(60).ignore();
    }
    pipe.query::<()>(&mut redis).unwrap();
    let rows: Vec<Row> = ask(&mut redis, "RL.TOP 1");
    let (name, count, too_high, _) = &rows[0];
    assert_eq!(name, "heavy");
    assert!((300..=450).contains(count) && count - too_high <= 300 && *too_high <= 150, "{rows:?}");
}

#[test]
fn names_are_any_bytes() {
    let server = Options::new().set("rl.top-keys", "5").with_clock().start();
    let mut redis = server.connect();
    let name = b"a\0b\r\n\xff%s";
    send_words::<Vec<i64>>(&mut redis, &[b"RL.FIXED", name, b"0", b"60"]).unwrap();
    let rows: Vec<(Vec<u8>, u64, u64, u64)> = ask(&mut redis, "RL.TOP");
    assert_eq!(rows, [(name.to_vec(), 1, 0, name.len() as u64)]);
}

/// It shows the names of keys that a user may not touch, so the rights to use limiters must not be enough.
#[test]
fn who_may_use_limiters_may_not_see_all_keys_unless_granted() {
    let server = Options::new().set("rl.top-keys", "5").start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED secret:1 0 1m");
    let has_categories = version(&mut redis) >= (7, 2);
    let mut users = vec![("named", "-@all +rl.fixed +rl.peek +rl.inspect", false), ("granted", "-@all +rl.top", true)];
    if has_categories {
        users.extend([
            ("reader", "-@all +@read +@write +@fast", false),
            ("careful", "+@all -@dangerous", false),
            ("operator", "-@all +@admin", true),
        ]);
        let categories: Vec<String> = ask(&mut redis, "ACL CAT");
        if categories.iter().any(|category| category == "ratelimit") {
            users.push(("limiting", "-@all +@ratelimit", false));
        }
    }
    for (user, rights, may) in users {
        ask::<()>(&mut redis, &format!("ACL SETUSER {user} on nopass ~limits:* {rights}"));
        let mut connection = server.connect();
        ask::<()>(&mut connection, &format!("AUTH {user} any"));
        if may {
            assert_eq!(ask::<Vec<Row>>(&mut connection, "RL.TOP 1")[0].0, "secret:1", "{user}");
        } else {
            assert!(error(&mut connection, "RL.TOP").starts_with("NOPERM"), "{user}");
        }
    }
}

#[test]
fn it_survives_unloading() {
    let server = Options::new().set("rl.top-keys", "1000").start();
    let mut redis = server.connect();
    if !info(&mut redis, "server", "redis_version").unwrap().starts_with("7.0.") {
        return skip("unloading is refused, which another test shows");
    }
    decide(&mut redis, "RL.FIXED k 0 1m");
    let before = used_memory(&mut redis);
    ask::<()>(&mut redis, "MODULE UNLOAD rl");
    assert!(before - used_memory(&mut redis) > 300_000, "what it held is given back");
    ask::<()>(&mut redis, &format!("MODULE LOAD {}", crate::support::module("redis_rl").display()));
    assert!(error(&mut redis, "RL.TOP").starts_with("ERR rl.top-keys is 0"));
    // What is not set is the default again.
    let entries: Vec<String> = ask(&mut redis, "CONFIG GET rl.max-log-entries");
    assert_eq!(entries, ["rl.max-log-entries", "100000"]);
}
