//! Holders of places: who gets one, for how long, and what that costs.

mod crashing;

use redis::{Connection, Value};

use crate::support::{
    NOON, Options, SECOND, Server, ask, decide, digest, error, error_of_words, info, offset, replica_of, send,
    send_words, wait_for_replicas,
};

const HOLDER: &str = "ERR holder must be 1 to 64 bytes";
const TTL: &str = "ERR ttl must be a duration from 1ms to 36500d, such as 60, 250ms or 1h";

/// The places that `RL.INSPECT` tells: holder, units, ttl in ms, end in ms.
fn places(redis: &mut Connection, key: &str) -> Vec<(String, i64, i64, i64)> {
    let told: Vec<Value> = ask(redis, &format!("RL.INSPECT {key}"));
    let at = told.iter().position(|field| *field == Value::BulkString(b"places".to_vec())).expect("places");
    let mut places: Vec<_> = redis::from_redis_value(told[at + 1].clone()).unwrap();
    places.sort();
    places
}

#[test]
fn a_place_is_held_until_it_is_released_or_its_ttl_has_passed() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    server.clock().set(NOON);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 a"), [1, 3, 2, 0, 30_000]);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 b 2"), [1, 3, 0, 0, 30_000]);
    server.clock().set(NOON + 10 * SECOND);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 c"), [0, 3, 0, 20_000, 20_000]);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 c 4"), [0, 3, 0, -1, 20_000]);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 a"), [1, 3, 0, 0, 30_000], "renewed");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 c 3"), [0, 3, 0, 30_000, 30_000]);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k b"), 2);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k b"), 0);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 c 2"), [1, 3, 0, 0, 30_000]);
    // A crashes, C goes on.
    server.clock().set(NOON + 30 * SECOND);
    decide(&mut redis, "RL.CONCURRENT k 3 30 c 2 XX");
    server.clock().set(NOON + 40 * SECOND);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 d"), [1, 3, 0, 0, 30_000]);
    let end = (NOON + 60 * SECOND) / 1_000;
    assert_eq!(places(&mut redis, "k"), [("c".into(), 2, 30_000, end), ("d".into(), 1, 30_000, end + 10_000)]);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k c"), 2);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k d"), 1);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k d"), 0);
    let counted = ["allowed", "denied"].map(|field| info(&mut redis, "rl", &format!("rl_concurrency_{field}")));
    assert_eq!(counted, [Some("6".to_owned()), Some("3".to_owned())]);
}

#[test]
fn who_only_renews_gets_no_new_place() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    server.clock().set(NOON);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 a XX"), [0, 3, 3, -1, 0]);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0);
    decide(&mut redis, "RL.CONCURRENT k 3 30 a 2");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 b 1 XX"), [0, 3, 1, -1, 30_000]);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 b 0 xx"), [0, 3, 1, -1, 30_000]);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 a 0 XX"), [1, 3, 1, 0, 30_000]);
    decide(&mut redis, "RL.CONCURRENT k 3 10 b");
    server.clock().set(NOON + SECOND);
    // More than fits: B's place comes back in 9 s, A's would be over by then or not.
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 9 a 3 xX"), [0, 3, 0, -1, 9_000]);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 9.001 a 3 XX"), [0, 3, 0, 9_000, 9_001]);
    server.clock().set(NOON + 10 * SECOND);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 9 a 3 XX"), [1, 3, 0, 0, 9_000]);
    server.clock().set(NOON + 19 * SECOND);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 9 a 3 XX")[..4], [0, 3, 3, -1], "it has lost its place");
}

#[test]
fn a_denied_renewal_is_written_and_no_other_denial_is() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    server.clock().set(NOON);
    decide(&mut redis, "RL.CONCURRENT k 3 30 a 2");
    decide(&mut redis, "RL.CONCURRENT k 3 30 b");
    server.clock().set(NOON + SECOND);
    let before = digest(&mut redis);
    for line in
        ["k 3 30 c", "k 3 30 c 9", "k 3 30 c XX", "k 3 30 c 0", "k 3 30 a 0", "k 0 30 c", "new 0 30 c", "new 3 30 c 4"]
    {
        decide(&mut redis, &format!("RL.CONCURRENT {line}"));
    }
    for line in ["RL.PEEK k", "RL.INSPECT k", "RL.RELEASE k c", "RL.RELEASE new c"] {
        ask::<Value>(&mut redis, line);
    }
    assert_eq!(digest(&mut redis), before);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 a 3"), [0, 3, 0, 29_000, 30_000]);
    assert_ne!(digest(&mut redis), before);
    server.clock().set(NOON + 30 * SECOND);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 3 30 c 9")[1..3], [3, 1], "A still has its place");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1 30 a 2")[..3], [1, 1, 0], "whatever the limit is");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 0 30 a 1")[..3], [1, 0, 0]);
    assert_eq!(decide(&mut redis, "RL.PEEK k"), [0, 1, 0, 30_000, 30_000], "0 is not remembered");
}

#[test]
fn wrong_words_are_named() {
    let server = Server::new();
    let mut redis = server.connect();
    for (line, expected) in [
        ("RL.CONCURRENT k -1 30 a", "ERR limit must be an integer from 0 to 9007199254740991"),
        ("RL.CONCURRENT k 1 0 a", TTL),
        ("RL.CONCURRENT k 1 30x a", TTL),
        ("RL.CONCURRENT k 1 36501d a", TTL),
        ("RL.CONCURRENT k 1 30 a -1", "ERR cost must be an integer from 0 to 9007199254740991"),
        ("RL.CONCURRENT k 1 30 a XX XX", "ERR cost must be an integer from 0 to 9007199254740991"),
        ("RL.CONCURRENT k 1 30 a XX 1", "ERR cost must be an integer from 0 to 9007199254740991"),
        ("RL.CONCURRENT k 1 30 a 1 NX", "ERR only XX may follow the cost"),
    ] {
        assert_eq!(error(&mut redis, line), expected, "{line}");
    }
    for line in ["RL.CONCURRENT k 1 30", "RL.CONCURRENT k 1 30 a 1 XX 1", "RL.RELEASE k", "RL.RELEASE k a b"] {
        assert!(error(&mut redis, line).starts_with("ERR wrong number of arguments"), "{line}");
    }
    for holder in [b"".as_slice(), &[b'x'; 65]] {
        assert_eq!(error_of_words(&mut redis, &[b"RL.CONCURRENT", b"k", b"1", b"30", holder]), HOLDER);
        assert_eq!(error_of_words(&mut redis, &[b"RL.RELEASE", b"k", holder]), HOLDER);
    }
    let holder = b"\0\xff \r\n";
    send_words::<Value>(&mut redis, &[b"RL.CONCURRENT", b"k", b"2", b"30", holder]).unwrap();
    send_words::<Value>(&mut redis, &[b"RL.CONCURRENT", b"k", b"2", b"30", &[0xFF; 64]]).unwrap();
    assert_eq!(send_words::<i64>(&mut redis, &[b"RL.RELEASE", b"k", holder]).unwrap(), 1, "any bytes are a name");

    assert!(error(&mut redis, "RL.REFUND k 1").starts_with("ERR a concurrency limiter takes nothing back"));
    assert!(error(&mut redis, "RL.FIXED k 1 1").contains("holds a concurrency limiter"));
    decide(&mut redis, "RL.FIXED f 1 1h");
    for line in ["RL.CONCURRENT f 1 30 a", "RL.RELEASE f a"] {
        assert!(error(&mut redis, line).starts_with("WRONGTYPE the key holds a fixed window limiter"), "{line}");
    }
    ask::<()>(&mut redis, "LPUSH list 1");
    assert!(error(&mut redis, "RL.RELEASE list a").starts_with("WRONGTYPE"));
}

#[test]
fn one_holder_too_many_is_an_error_that_names_the_setting() {
    let server = Server::new();
    let mut redis = server.connect();
    assert_eq!(ask::<Vec<String>>(&mut redis, "CONFIG GET rl.max-holders"), ["rl.max-holders", "1000"]);
    for wrong in ["0", "-1", "10001", "many"] {
        assert!(send::<()>(&mut redis, &format!("CONFIG SET rl.max-holders {wrong}")).is_err(), "{wrong}");
    }
    ask::<()>(&mut redis, "CONFIG SET rl.max-holders 2");
    decide(&mut redis, "RL.CONCURRENT k 9 1h a");
    decide(&mut redis, "RL.CONCURRENT k 9 1h b");
    let before = digest(&mut redis);
    let full = "ERR there are too many holders: rl.max-holders is 2";
    assert_eq!(error(&mut redis, "RL.CONCURRENT k 9 1h c"), full);
    assert!(server.log().contains("rl.max-holders is 2"), "the server's log says it");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 2 1h c")[0], 0, "denied anyway");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 9 1h c XX")[0], 0);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 9 1h c 0")[..3], [1, 9, 7], "a look");
    assert_eq!(digest(&mut redis), before);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 9 1h a 8")[..3], [1, 9, 0], "who has a place keeps it");
    ask::<()>(&mut redis, "CONFIG SET rl.max-holders 1");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 9 1h b")[0], 1);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k a"), 8);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k b"), 1);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 9 1h c")[0], 1);
}

#[test]
fn when_the_clock_goes_back_no_place_is_held_for_longer_than_its_ttl() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    server.clock().set(NOON);
    decide(&mut redis, "RL.CONCURRENT k 1 30 a");
    server.clock().set(NOON - 3_600 * SECOND);
    let before = digest(&mut redis);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1 30 b 0"), [0, 1, 0, 30_000, 30_000]);
    assert_eq!(decide(&mut redis, "RL.PEEK k"), [0, 1, 0, 30_000, 30_000]);
    assert_eq!(digest(&mut redis), before, "a look writes nothing");
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1 30 b"), [0, 1, 0, 30_000, 30_000]);
    assert_ne!(digest(&mut redis), before, "a denied call brings it to now");
    assert_eq!(info(&mut redis, "rl", "rl_clock_steps_back").as_deref(), Some("1"));
    server.clock().set(NOON - 3_600 * SECOND + 30 * SECOND);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1 30 b")[0], 1);
}

#[test]
fn a_call_sends_one_row_whatever_the_number_of_holders() {
    let primary_options = Options::new().with_clock();
    let mut primary = primary_options.start();
    let mut redis = primary.connect();
    primary.clock().set(NOON);
    ask::<()>(&mut redis, "CONFIG SET repl-ping-replica-period 3600");
    let replica = replica_of(&primary, Options::new().module(None));
    let mut sent = Vec::new();
    let mut now = NOON;
    for holders in [10, 100, 1_000] {
        for holder in 0..holders {
            decide(&mut redis, &format!("RL.CONCURRENT k{holders:04} 100000 1h {holder:04}"));
        }
        wait_for_replicas(&mut redis, 1);
        let mut of = |line: &str| {
            let before = offset(&mut redis);
            for _ in 0..50 {
                now += 1_000;
                primary.clock().set(now);
                decide(&mut redis, line);
            }
            (offset(&mut redis) - before) / 50
        };
        let renewal = of(&format!("RL.CONCURRENT k{holders:04} 100000 1h 0003"));
        // Denied, and written all the same.
        let denied = of(&format!("RL.CONCURRENT k{holders:04} 5 1h 0003 2"));
        let before = offset(&mut redis);
        assert_eq!(ask::<i64>(&mut redis, &format!("RL.RELEASE k{holders:04} 0002")), 1);
        let release = offset(&mut redis) - before;
        let before = offset(&mut redis);
        decide(&mut redis, &format!("RL.CONCURRENT k{holders:04} 100000 1h new"));
        let new = offset(&mut redis) - before;
        println!(
            "{holders} holders: a renewal sends {renewal} bytes, a denied one {denied}, a release {release}, a new holder {new}"
        );
        sent.push([renewal, denied, release, new]);
        wait_for_replicas(&mut redis, 1);
        assert_eq!(digest(&mut replica.connect()), digest(&mut redis));
    }
    for of in sent {
        assert!(of[0] <= 120 && of[1] <= 120 && of[2] <= 400 && of[3] <= 300, "{of:?}");
    }
    let expiry: i64 = ask(&mut redis, "PEXPIRETIME k1000");
    assert_eq!(ask::<i64>(&mut replica.connect(), "PEXPIRETIME k1000"), expiry);
    // All of them go, and most of the memory; the last takes the key with it.
    for holder in (0..1_000).filter(|&holder| holder != 2) {
        assert_eq!(ask::<i64>(&mut redis, &format!("RL.RELEASE k1000 {holder:04}")), 1);
        if holder == 990 {
            assert!(ask::<i64>(&mut redis, "MEMORY USAGE k1000") < 2_000);
        }
    }
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k1000 new"), 1);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k1000"), 0);
    wait_for_replicas(&mut redis, 1);
    assert_eq!(digest(&mut replica.connect()), digest(&mut redis));
}

#[test]
fn a_holder_takes_few_bytes() {
    let server = Server::new();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "CONFIG SET rl.max-holders 10000");
    for (length, row) in [(8, 32), (16, 40), (36, 64), (64, 88)] {
        for holder in 0..1_000 {
            let name = format!("{holder:0length$}");
            assert_eq!(decide(&mut redis, &format!("RL.CONCURRENT k{length} 100000 1h {name}"))[0], 1);
            if [0, 9, 99, 999].contains(&holder) {
                let (bytes, holders): (i64, i64) = (ask(&mut redis, &format!("MEMORY USAGE k{length}")), holder + 1);
                println!("names of {length}: {holders} holders take {bytes} bytes, {} each", bytes / holders);
                assert!(bytes <= 160 + row * holders * 5 / 4, "{bytes} bytes for {holders} holders");
            }
        }
    }
}

#[test]
fn when_memory_is_full_holders_go_on_until_the_key_must_grow() {
    let server = Options::new().set("maxmemory-policy", "noeviction").start();
    let mut redis = server.connect();
    for holder in 0..100 {
        decide(&mut redis, &format!("RL.CONCURRENT k 1000 1h {holder}"));
    }
    for key in 0..1_000 {
        send_words::<()>(&mut redis, &[b"SET", format!("data:{key}").as_bytes(), &[b'x'; 1_000]]).unwrap();
    }
    let used: u64 = info(&mut redis, "memory", "used_memory").unwrap().parse().unwrap();
    ask::<()>(&mut redis, &format!("CONFIG SET maxmemory {}", used - 100_000));
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1000 1h 7")[0], 1);
    assert_eq!(ask::<i64>(&mut redis, "RL.RELEASE k 7"), 1);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1000 1h 7")[0], 1, "the room is there");
    let refused =
        (0..100).find_map(|call| send::<Value>(&mut redis, &format!("RL.CONCURRENT k 1000 1h n{call}")).err());
    assert!(refused.unwrap().to_string().contains("OOM"));
    let before = digest(&mut redis);
    assert!(error(&mut redis, "RL.CONCURRENT k 1000 1h another").starts_with("OOM"));
    assert!(error(&mut redis, "RL.CONCURRENT new 1 1h a").starts_with("OOM"));
    assert_eq!(decide(&mut redis, "RL.CONCURRENT new 0 1h a")[0], 0, "what is denied needs no memory");
    assert_eq!(digest(&mut redis), before);
    assert_eq!(decide(&mut redis, "RL.CONCURRENT k 1000 1h 8")[0], 1);
}

#[test]
fn holders_keep_their_places_over_a_restart() {
    let mut server = Options::new().with_clock().set("appendonly", "yes").start();
    let mut redis = server.connect();
    server.clock().set(NOON);
    for holder in 0..50 {
        decide(&mut redis, &format!("RL.CONCURRENT k 60 1h holder-{holder}"));
    }
    server.clock().set(NOON + 60 * SECOND);
    for holder in 0..20 {
        decide(&mut redis, &format!("RL.CONCURRENT k 60 1h holder-{holder}"));
        ask::<i64>(&mut redis, &format!("RL.RELEASE k holder-{}", holder + 25));
    }
    decide(&mut redis, "RL.CONCURRENT k 60 1h a-holder-with-a-name-that-is-longer-than-the-others");
    let before = (digest(&mut redis), decide(&mut redis, "RL.PEEK k"), places(&mut redis, "k"));
    server.shut_down();
    server.start_again(|options| options);
    let mut redis = server.connect();
    assert_eq!((digest(&mut redis), decide(&mut redis, "RL.PEEK k"), places(&mut redis, "k")), before);
    assert_eq!(before.2.len(), 31);
    server.clock().set(NOON + 3_600 * SECOND);
    assert_eq!(decide(&mut redis, "RL.PEEK k")[..3], [1, 60, 39], "those that were not renewed are gone");
}

#[test]
fn inspect_tells_a_hundred_places() {
    let server = Server::new();
    let mut redis = server.connect();
    for holder in 0..120 {
        decide(&mut redis, &format!("RL.CONCURRENT k 1000 1h {holder}"));
    }
    assert_eq!(places(&mut redis, "k").len(), 100);
    let told = format!("{:?}", ask::<Value>(&mut redis, "RL.INSPECT k"));
    for text in ["concurrency", "limit", "int(1000)", "used", "holders", "int(120)", "remaining", "int(880)"] {
        assert!(told.contains(text), "{text}: {told}");
    }
}

#[test]
fn planted_holders_are_refused_or_answered_and_the_server_lives() {
    let server = Server::new();
    let mut redis = server.connect();
    for holder in 0..5 {
        decide(&mut redis, &format!("RL.CONCURRENT k 9 1h {holder}"));
    }
    let state: Vec<u8> = ask(&mut redis, "GET k");
    for at in 0..state.len() {
        let mut lie = state.clone();
        lie[at] ^= 0xFF;
        send_words::<()>(&mut redis, &[b"SET", b"lie", &lie]).unwrap();
        for line in [
            "RL.PEEK lie",
            "RL.CONCURRENT lie 9 1h 3",
            "RL.CONCURRENT lie 9 1h a-longer-name",
            "RL.RELEASE lie 3",
            "RL.INSPECT lie",
            "RL.RELEASE lie 4",
        ] {
            let answer = send::<Value>(&mut redis, line);
            assert!(answer.is_ok() || answer.unwrap_err().to_string().contains("WRONGTYPE"), "byte {at}: {line}");
        }
    }
    assert_eq!(decide(&mut redis, "RL.PEEK k")[2], 4);
}
