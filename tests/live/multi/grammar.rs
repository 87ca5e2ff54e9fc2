//! Wrong calls: an error before anything is touched, even keys that come first.

use redis::Connection;

use super::call;
use crate::support::{Server, ask, decide, digest, error, error_of_words};

/// Behind a limit that is right, each of these must be an error, and leave everything as it is.
fn refuses(redis: &mut Connection, words: &str, expected: &str) {
    let before = digest(redis);
    let line = format!("RL.MULTI good FIXED 9 36500d 1 new TOKENBUCKET 9 1 1 {words}");
    assert_eq!(error(redis, &line), expected, "{words}");
    assert_eq!(digest(redis), before, "{words}");
}

#[test]
fn a_wrong_limit_is_named_and_nothing_is_touched() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED good 9 36500d");
    decide(&mut redis, "RL.FIXED other 9 36500d");
    ask::<()>(&mut redis, "RPUSH list a");
    ask::<()>(&mut redis, "SET text abc");

    let kind = "ERR kind must be FIXED, SLIDING, SLIDINGLOG, TOKENBUCKET or LEAKY (limit 2)";
    for name in ["CONCURRENT", "FIX", "FIXEDX", "*", "1"] {
        refuses(&mut redis, &format!("k {name} 9 60 1"), kind);
    }
    for (words, expected) in [
        ("k FIXED x 60 1", "ERR limit must be an integer from 0 to 9007199254740991 (limit 2)"),
        ("k SLIDING 9 0 1", "ERR window must be a duration from 1ms to 36500d, such as 60, 250ms or 1h (limit 2)"),
        ("k SLIDINGLOG -1 60 1", "ERR limit must be an integer from 0 to 9007199254740991 (limit 2)"),
        ("k TOKENBUCKET 1.5 60 1", "ERR capacity must be an integer from 0 to 9007199254740991 (limit 2)"),
        ("k LEAKY 9 9 01", "ERR cost must be an integer from 0 to 9007199254740991 (limit 2)"),
        ("other TOKENBUCKET 9 9 1", "WRONGTYPE the key holds a fixed window limiter (limit 2)"),
        ("other SLIDINGLOG 9 9 1", "WRONGTYPE the key holds a fixed window limiter (limit 2)"),
        ("text FIXED 9 9 1", "WRONGTYPE the key holds a string that is no limiter (limit 2)"),
        ("list FIXED 9 9 1", "WRONGTYPE Operation against a key holding the wrong kind of value (limit 2)"),
        ("good FIXED 9 36500d 1", "ERR the same key is named twice"),
        ("new TOKENBUCKET 9 1 0", "ERR the same key is named twice"),
        ("k FIXED 9 60", "ERR wrong number of arguments for 'rl.multi' command"),
        ("k FIXED 9 60 1 k", "ERR wrong number of arguments for 'rl.multi' command"),
    ] {
        refuses(&mut redis, words, expected);
    }
    for line in ["RL.MULTI", "RL.MULTI k FIXED 9 60"] {
        assert_eq!(error(&mut redis, line), "ERR wrong number of arguments for 'rl.multi' command");
    }
    // Names are compared whole, whatever bytes they have.
    let twice: [&[u8]; 11] =
        [b"RL.MULTI", b"\0\xff", b"FIXED", b"9", b"60", b"1", b"\0\xff", b"FIXED", b"9", b"60", b"1"];
    assert_eq!(error_of_words(&mut redis, &twice), "ERR the same key is named twice");
    let [mut apart, at] = [twice, twice];
    apart[6] = b"\0\xfe";
    assert_ne!(apart, at);
    assert_eq!(crate::support::send_words::<Vec<i64>>(&mut redis, &apart).unwrap()[0], 1);
}

#[test]
fn at_most_32_limits_are_asked() {
    let server = Server::new();
    let mut redis = server.connect();
    let words = |limits: usize| {
        let kinds = ["FIXED", "SLIDING", "SLIDINGLOG", "TOKENBUCKET", "LEAKY"];
        let pace = |index: usize| if index % 5 < 3 { "1w" } else { "1/w" };
        let limit = |index: usize| format!("k{index} {} 100 {} {index}", kinds[index % 5], pace(index));
        (0..limits).map(limit).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(error(&mut redis, &format!("RL.MULTI {}", words(33))), "ERR a call may ask from 1 to 32 limits, not 33");
    assert_eq!(ask::<i64>(&mut redis, "DBSIZE"), 0);
    let told = call(&mut redis, &words(32));
    assert_eq!((told.allowed, told.index, told.limits.len()), (true, 31, 32));
    assert!(told.limits.iter().zip(0..).all(|(limit, index)| limit[..3] == [1, 100, 100 - index]), "{told:?}");
    assert_eq!(ask::<i64>(&mut redis, "DBSIZE"), 31, "the first asked for nothing");
}

#[test]
fn a_full_log_is_an_error_where_all_would_be_allowed_and_nothing_is_taken() {
    let server = Server::new();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "CONFIG SET rl.max-log-entries 2");
    for _ in 0..2 {
        decide(&mut redis, "RL.SLIDINGLOG log 9 36500d");
    }
    decide(&mut redis, "RL.FIXED full 1 36500d");
    let before = digest(&mut redis);
    let line = "RL.MULTI f FIXED 9 36500d 1 log SLIDINGLOG 9 36500d 1 b TOKENBUCKET 9 1/d 1";
    assert_eq!(error(&mut redis, line), "ERR the log is full: rl.max-log-entries is 2 (limit 1)");
    assert_eq!(digest(&mut redis), before);
    // What another limit denies needs no room in the log.
    let told = call(&mut redis, "f FIXED 9 36500d 1 log SLIDINGLOG 9 36500d 1 full FIXED 1 36500d 1");
    assert_eq!((told.allowed, told.index, told.limits[1][0]), (false, 2, 1));
    assert_eq!(digest(&mut redis), before);
}
