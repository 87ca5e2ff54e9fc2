//! Full memory, and limiters of every kind that are there already.

use redis::{Connection, Value};

use super::{OOM, fill_up};
use crate::support::{HOUR, NOON, Options, Server, ask, decide, digest, error, info, send, send_words, version};

/// A call on each kind and form of a limiter.
const CALLS: [&str; 7] = [
    "RL.FIXED f 100 36500d",
    "RL.SLIDING s 100 36500d",
    "RL.SLIDINGLOG log 100 36500d",
    "RL.TOKENBUCKET b 100 1/36500d",
    "RL.TOKENBUCKET wide 9007199254740991 1/36500d",
    "RL.LEAKY l 100 1/36500d",
    "RL.LEAKY lwide 9007199254740991 1/36500d",
];

/// Limiters that have taken 30 units each, the log in as many entries, with room for some more; and a megabyte of other data.
fn limiters(redis: &mut Connection) {
    for call in CALLS {
        for _ in 0..30 {
            decide(redis, call);
        }
    }
    data(redis);
}

fn data(redis: &mut Connection) {
    for key in 0..1_000 {
        send_words::<()>(redis, &[b"SET", format!("data:{key}").as_bytes(), &[b'x'; 1_000]]).unwrap();
    }
}

/// All that limiters do that exist, and nothing that would need memory.
fn assert_they_decide(redis: &mut Connection, case: &str) {
    assert!(send::<()>(redis, "SET x y").is_err(), "{case}: the server refuses to grow");
    for call in CALLS {
        let key = call.split(' ').nth(1).unwrap();
        let before = decide(redis, &format!("RL.PEEK {key}"))[2];
        let told = decide(redis, call);
        assert_eq!((told[0], told[2]), (1, before - 1), "{case}: {call}");
        if !call.starts_with("RL.LEAKY") {
            assert_eq!(decide(redis, &format!("RL.REFUND {key} 1"))[2], before, "{case}: {call}");
        }
        let never = format!("{call} 9007199254740991");
        assert_eq!(decide(redis, &never)[0], 0, "{case}: denied");
    }
    let debit: Vec<i64> = ask(redis, "RL.DEBIT b 100 1/36500d 2");
    assert_eq!(debit[5], 0, "{case}");
}

/// What would need memory is refused as a whole, and changes nothing.
fn assert_nothing_new(redis: &mut Connection, case: &str) {
    let before = digest(redis);
    for call in CALLS {
        let mut words: Vec<&str> = call.split(' ').collect();
        words[1] = "new";
        assert_eq!(error(redis, &words.join(" ")), OOM, "{case}");
        words[2] = "0";
        assert_eq!(decide(redis, &words.join(" "))[0], 0, "{case}: what is denied needs no memory");
    }
    assert_eq!(error(redis, "RL.DEBIT new 10 1 1"), OOM, "{case}");
    assert_eq!(error(redis, "RL.TOKENBUCKET b 9007199254740991 1/36500d"), OOM, "{case}: the wide form is longer");
    assert_eq!(ask::<Value>(redis, "RL.REFUND new 1"), Value::Nil, "{case}");
    assert_eq!(digest(redis), before, "{case}");
}

#[test]
fn those_that_exist_decide_and_new_ones_are_refused() {
    let server = Options::new().set("maxmemory-policy", "noeviction").start();
    let mut redis = server.connect();
    limiters(&mut redis);
    fill_up(&mut redis);
    assert_they_decide(&mut redis, "full");
    assert_nothing_new(&mut redis, "full");
    assert_they_decide(&mut redis, "after what was refused");
}

/// A short string that was loaded may lie in one piece with its object, which the first call that changes it moves out. That takes a few
/// bytes, but the limiter exists: it is no growth. All servers do so up to some length; on Redis 7.0 it is 44 bytes.
fn assert_short_strings_turn_raw(redis: &mut Connection, case: &str) {
    let mut in_one_piece = ["f", "s", "b", "l"].to_vec();
    let encoding = |redis: &mut Connection, key: &str| ask::<String>(redis, &format!("OBJECT ENCODING {key}"));
    in_one_piece.retain(|key| encoding(redis, key) == "embstr");
    println!("{case}: in one piece are {in_one_piece:?}");
    assert!(in_one_piece.len() == 4 || version(redis) >= (7, 2), "{case}: {in_one_piece:?}");
    fill_up(redis);
    assert_they_decide(redis, case);
    for key in in_one_piece {
        assert_eq!(encoding(redis, key), "raw", "{case}: {key}");
    }
    assert_nothing_new(redis, case);
}

#[test]
fn a_limiter_that_was_loaded_is_no_new_one() {
    let mut server = Options::new().set("maxmemory-policy", "noeviction").start();
    let mut redis = server.connect();
    limiters(&mut redis);
    ask::<()>(&mut redis, "DEBUG RELOAD");
    assert_short_strings_turn_raw(&mut redis, "DEBUG RELOAD");

    ask::<()>(&mut redis, "CONFIG SET maxmemory 0");
    ask::<()>(&mut redis, "SAVE");
    server.kill();
    server.start_again(|options| options.set("maxmemory-policy", "noeviction"));
    assert_short_strings_turn_raw(&mut server.connect(), "a restart");
}

#[test]
fn a_limiter_that_was_restored_is_no_new_one() {
    let server = Options::new().set("maxmemory-policy", "noeviction").start();
    let mut redis = server.connect();
    limiters(&mut redis);
    for call in CALLS {
        let key = call.split(' ').nth(1).unwrap();
        let dump: Vec<u8> = ask(&mut redis, &format!("DUMP {key}"));
        send_words::<()>(&mut redis, &[b"RESTORE", key.as_bytes(), b"0", &dump, b"REPLACE"]).unwrap();
    }
    assert_short_strings_turn_raw(&mut redis, "RESTORE");
}

/// A log fills the allocation that it has, and only then is refused more; refunds, denials and looks go on.
#[test]
fn a_log_uses_up_what_it_has() {
    let mut server = Options::new().set("maxmemory-policy", "noeviction").with_clock().start();
    let mut redis = server.connect();
    for entries in [1, 12, 100, 3_000] {
        ask::<()>(&mut redis, "CONFIG SET maxmemory 0");
        ask::<()>(&mut redis, "FLUSHALL");
        data(&mut redis);
        let take = |redis: &mut Connection, server: &mut Server| {
            server.clock().advance(10);
            send::<Vec<i64>>(redis, "RL.SLIDINGLOG log 1000000 1h")
        };
        for _ in 0..entries {
            take(&mut redis, &mut server).unwrap();
        }
        fill_up(&mut redis);
        let length: usize = ask(&mut redis, "STRLEN log");
        let more = (0..10_000).take_while(|_| take(&mut redis, &mut server).is_ok()).count();
        println!("{entries} entries, {length} bytes: {more} more");
        let before = digest(&mut redis);
        assert_eq!(error(&mut redis, "RL.SLIDINGLOG log 1000000 1h"), OOM);
        let taken = entries + more as i64;
        assert_eq!(decide(&mut redis, "RL.PEEK log")[2], 1_000_000 - taken, "what was refused took nothing");
        assert_eq!(decide(&mut redis, "RL.SLIDINGLOG log 1 1h")[0], 0, "denied");
        assert_eq!(digest(&mut redis), before);
        assert_eq!(ask::<usize>(&mut redis, "STRLEN log"), length);
        assert_eq!(decide(&mut redis, "RL.REFUND log 1 AGE 0")[0], 1);
        server.clock().advance(HOUR);
        assert_eq!(decide(&mut redis, "RL.SLIDINGLOG log 1000000 1h")[0], 1, "an unused log makes room for itself");
    }
}

/// The one denial that would need memory: the clock went back, what is later becomes one entry, and that one is so large that the
/// block around it must be written wider.
#[test]
fn a_denial_that_only_wanted_to_move_the_time_is_a_denial() {
    let mut server = Options::new().set("maxmemory-policy", "noeviction").with_clock().start();
    let mut redis = server.connect();
    for (hours, micros, cost) in [(0, 0, 1), (20, 0, 1), (20, 1_000_000, 300_000), (20, 2_000_000, 300_000)] {
        server.clock().set(NOON + hours * HOUR + micros);
        assert_eq!(decide(&mut redis, &format!("RL.SLIDINGLOG k 600002 1d {cost}"))[0], 1);
    }
    data(&mut redis);
    fill_up(&mut redis);
    server.clock().set(NOON + 20 * HOUR + 500_000);
    let before = digest(&mut redis);
    let day = 24 * 3_600_000;
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 600002 1d 3"), [0, 600_002, 0, day, day]);
    assert_eq!(decide(&mut redis, "RL.REFUND k 5 AGE 23h")[..3], [0, 600_002, 0], "nothing of it is so old");
    assert_eq!(digest(&mut redis), before, "it stays as it was");
    assert_eq!(error(&mut redis, "RL.REFUND k 5 AGE 0"), OOM, "what can't be stored is not given back");
    assert_eq!(error(&mut redis, "RL.SLIDINGLOG k 9000000 1d"), OOM, "nor taken");
    assert_eq!(digest(&mut redis), before);

    // Later, but not as late as the entries: still nothing is granted.
    server.clock().advance(200_000);
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 600002 1d 3")[..4], [0, 600_002, 0, day]);
    ask::<()>(&mut redis, "CONFIG SET maxmemory 0");
    assert_eq!(decide(&mut redis, "RL.SLIDINGLOG k 600002 1d 3")[..4], [0, 600_002, 0, day]);
    assert_ne!(digest(&mut redis), before, "with memory again it is brought to now");
    let evicted = info(&mut redis, "stats", "evicted_keys");
    assert_eq!(evicted.as_deref(), Some("0"));
}
