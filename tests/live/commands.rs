//! What the commands reply.

use redis::Value;

use crate::support::{Options, Server, ask, decide, error, send_words, skip, version};

#[test]
fn a_token_bucket_empties_and_refills() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();

    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1"), [1, 3, 2, 0, 1_000]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1 2"), [1, 3, 0, 0, 3_000]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1"), [0, 3, 0, 1_000, 3_000]);
    server.clock().advance(998_500);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1"), [0, 3, 0, 2, 2_002]);
    server.clock().advance(2_000);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1"), [1, 3, 0, 0, 3_000]);
    server.clock().advance(2_500_000);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1 3"), [0, 3, 2, 500, 500]);
    server.clock().advance(500_000);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 3 1 3"), [1, 3, 0, 0, 3_000]);
}

#[test]
fn a_fixed_window_fills_and_starts_anew_on_the_clock() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();

    // The clock stands half a second past a full minute.
    assert_eq!(decide(&mut redis, "RL.FIXED k 3 1m"), [1, 3, 2, 0, 59_500]);
    assert_eq!(decide(&mut redis, "RL.FIXED k 3 60 2"), [1, 3, 0, 0, 59_500]);
    assert_eq!(decide(&mut redis, "RL.FIXED k 3 60000ms"), [0, 3, 0, 59_500, 59_500]);
    server.clock().advance(59_498_500);
    assert_eq!(decide(&mut redis, "RL.FIXED k 3 1m"), [0, 3, 0, 2, 2]);
    server.clock().advance(2_000);
    assert_eq!(decide(&mut redis, "RL.FIXED k 3 1m"), [1, 3, 2, 0, 60_000]);
}

#[test]
fn a_sliding_window_counts_the_window_before() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();

    // Half a second into the minute; all of it taken. It counts until the end of the next minute, less and less.
    assert_eq!(decide(&mut redis, "RL.SLIDING k 60 1m 60"), [1, 60, 0, 0, 119_500]);
    assert_eq!(decide(&mut redis, "RL.SLIDING k 60 1m"), [0, 60, 0, 60_500, 119_500]);
    server.clock().advance(60_498_500);
    assert_eq!(decide(&mut redis, "RL.SLIDING k 60 1m"), [0, 60, 0, 2, 59_002]);
    server.clock().advance(2_000);
    assert_eq!(decide(&mut redis, "RL.SLIDING k 60 1m"), [1, 60, 0, 0, 119_000]);
    server.clock().advance(29_000_000);
    assert_eq!(decide(&mut redis, "RL.SLIDING k 60 1m 0")[..3], [1, 60, 29]);
}

#[test]
fn a_leaky_bucket_tells_each_call_its_turn() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();

    assert_eq!(decide(&mut redis, "RL.LEAKY k 3 1"), [1, 3, 2, 0, 1_000]);
    assert_eq!(decide(&mut redis, "RL.LEAKY k 3 1"), [1, 3, 1, 1_000, 2_000]);
    assert_eq!(decide(&mut redis, "RL.LEAKY k 3 1"), [1, 3, 0, 2_000, 3_000]);
    assert_eq!(decide(&mut redis, "RL.LEAKY k 3 1"), [0, 3, 0, 1_000, 3_000]);
    server.clock().advance(1_500_500);
    assert_eq!(decide(&mut redis, "RL.PEEK k"), [1, 3, 1, 1_500, 1_500]);
    assert_eq!(decide(&mut redis, "RL.LEAKY k 3 1"), [1, 3, 0, 1_500, 2_500]);
}

#[test]
fn replies_are_the_same_in_both_protocols() {
    let server = Options::new().with_clock().start();
    let replies = [2, 3].map(|protocol| {
        let mut redis = server.connect_by(protocol);
        ask::<()>(&mut redis, "FLUSHALL");
        let lines = [
            "RL.FIXED f 2 1m",
            "RL.FIXED f 2 1m 2",
            "RL.TOKENBUCKET b 2 1/h 2",
            "RL.TOKENBUCKET b 2 1/h",
            "RL.TOKENBUCKET b 2 1/h 3",
            "RL.SLIDING s 2 1m",
            "RL.SLIDINGLOG log 2 1m 2",
            "RL.SLIDINGLOG log 2 1m",
            "RL.LEAKY l 2 1/h",
            "RL.DEBIT b 2 1/h 3",
            "RL.REFUND f 1",
            "RL.PEEK f",
            "RL.PEEK b 2",
            "RL.PEEK missing",
        ];
        lines.map(|line| ask::<Value>(&mut redis, line))
    });
    assert_eq!(replies[0], replies[1]);
    let integers = |numbers: [i64; 5]| Value::Array(numbers.map(Value::Int).to_vec());
    assert_eq!(replies[0][1], integers([0, 2, 1, 59_500, 59_500]));
    assert_eq!(replies[0][4], integers([0, 2, 0, -1, 7_200_000]));
    assert_eq!(replies[0][13], Value::Nil);
}

#[test]
fn peek_tells_what_a_call_would_be_told_and_takes_nothing() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();

    decide(&mut redis, "RL.TOKENBUCKET k 10 1 4");
    for _ in 0..3 {
        assert_eq!(decide(&mut redis, "RL.PEEK k"), [1, 10, 6, 0, 4_000]);
        assert_eq!(decide(&mut redis, "RL.PEEK k 7"), [0, 10, 6, 1_000, 4_000]);
        assert_eq!(decide(&mut redis, "RL.PEEK k 11"), [0, 10, 6, -1, 4_000]);
        assert_eq!(decide(&mut redis, "RL.PEEK k 0"), [1, 10, 6, 0, 4_000]);
    }
    decide(&mut redis, "RL.FIXED f 10 1h 10");
    assert_eq!(decide(&mut redis, "RL.PEEK f"), [0, 10, 0, 3_599_500, 3_599_500]);
}

#[test]
fn cost_0_answers_as_cost_1_and_takes_nothing() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();

    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 2 1 0"), [1, 2, 2, 0, 0]);
    assert_eq!(decide(&mut redis, "RL.FIXED f 2 1m 0"), [1, 2, 2, 0, 0]);
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k f"), 0);
    decide(&mut redis, "RL.TOKENBUCKET k 2 1 2");
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 2 1 0"), [0, 2, 0, 1_000, 2_000]);
}

#[test]
fn limit_0_is_a_kill_switch_that_grants_nothing_when_it_is_lifted() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let cases = [
        ("RL.TOKENBUCKET", "1", 4_000),
        ("RL.FIXED", "1m", 59_500),
        ("RL.SLIDING", "1m", 119_500),
        ("RL.SLIDINGLOG", "1m", 60_000),
        ("RL.LEAKY", "1", 4_000),
    ];
    for (command, parameter, reset) in cases {
        assert_eq!(decide(&mut redis, &format!("{command} k 0 {parameter}")), [0, 0, 0, -1, 0]);
        assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0, "{command}: what denies writes nothing");

        decide(&mut redis, &format!("{command} k 5 {parameter} 4"));
        assert_eq!(decide(&mut redis, &format!("{command} k 0 {parameter}")), [0, 0, 0, -1, reset]);
        assert_eq!(decide(&mut redis, &format!("{command} k 5 {parameter} 0"))[2], 1, "{command}");
        ask::<()>(&mut redis, "DEL k");
    }
}

#[test]
fn a_changed_limit_frees_the_difference_or_cuts_the_use() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();

    decide(&mut redis, "RL.FIXED f 10 1m 10");
    assert_eq!(decide(&mut redis, "RL.FIXED f 15 1m"), [1, 15, 4, 0, 59_500]);
    assert_eq!(decide(&mut redis, "RL.FIXED f 5 1m"), [0, 5, 0, 59_500, 59_500]);
    decide(&mut redis, "RL.TOKENBUCKET b 1000 1 1000");
    // At the remembered parameters the bucket is full in 1000 s; cut to 10 it has a token again after one second.
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 10 1"), [0, 10, 0, 1_000, 10_000]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 1000 100"), [0, 1_000, 0, 10, 10_000]);
}

#[test]
fn keys_may_be_any_bytes() {
    let server = Server::new();
    let mut redis = server.connect();
    let long = vec![b'k'; 100_000];
    let keys: [&[u8]; 6] = [b"", b" ", b"a b\r\nc", b"\0\x01\xff%n%s", "schl\u{fc}ssel".as_bytes(), &long];
    for key in keys {
        for (taken, remaining) in [(1, 2), (2, 1)] {
            let reply: Vec<i64> = send_words(&mut redis, &[b"RL.FIXED", key, b"3", b"36500d"]).unwrap();
            assert_eq!(reply[..3], [1, 3, remaining], "{taken} taken from {:?}", key.escape_ascii().to_string());
        }
        let peeked: Vec<i64> = send_words(&mut redis, &[b"RL.PEEK", key]).unwrap();
        assert_eq!(peeked[2], 1);
    }
    assert_eq!(ask::<usize>(&mut redis, "DBSIZE"), keys.len());
}

#[test]
fn the_largest_numbers_are_exact() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let most = (1_i64 << 53) - 1;

    assert_eq!(decide(&mut redis, &format!("RL.FIXED f {most} 36500d {most}"))[..4], [1, most, 0, 0]);
    assert_eq!(decide(&mut redis, &format!("RL.FIXED f {most} 36500d"))[2], 0);
    // 2^53 − 1 tokens at one in a hundred years: the wait saturates, the count doesn't.
    let bucket = format!("RL.TOKENBUCKET b {most} 1/36500d {most}");
    assert_eq!(decide(&mut redis, &bucket), [1, most, 0, 0, most]);
    assert_eq!(decide(&mut redis, &bucket), [0, most, 0, most, most]);
    assert_eq!(ask::<i64>(&mut redis, "STRLEN b"), 52, "the wide form");
}

#[test]
fn a_key_of_one_kind_is_not_another() {
    let server = Server::new();
    let mut redis = server.connect();
    let kinds = [
        ("RL.FIXED k 10 36500d", "fixed window"),
        ("RL.SLIDING k 10 36500d", "sliding window"),
        ("RL.SLIDINGLOG k 10 36500d", "sliding window log"),
        ("RL.TOKENBUCKET k 10 1/d", "token bucket"),
        ("RL.LEAKY k 10 1/d", "leaky bucket"),
    ];
    for (line, kind) in kinds {
        ask::<()>(&mut redis, "DEL k");
        decide(&mut redis, line);
        for (other, _) in kinds.iter().filter(|(other, _)| *other != line) {
            assert_eq!(error(&mut redis, other), format!("WRONGTYPE the key holds a {kind} limiter"));
        }
        if kind != "token bucket" {
            assert_eq!(error(&mut redis, "RL.DEBIT k 10 1/d 1"), format!("WRONGTYPE the key holds a {kind} limiter"));
        }
        assert_eq!(decide(&mut redis, "RL.PEEK k")[2], 9);
    }
}

#[test]
fn in_a_transaction_and_in_a_script_calls_decide_as_outside() {
    let server = Server::new();
    let mut redis = server.connect();

    ask::<()>(&mut redis, "MULTI");
    for _ in 0..3 {
        ask::<()>(&mut redis, "RL.FIXED k 2 36500d");
    }
    let replies: Vec<Vec<i64>> = ask(&mut redis, "EXEC");
    assert_eq!(replies.iter().map(|reply| reply[0]).collect::<Vec<_>>(), [1, 1, 0]);

    let script = "local seen = {} for i = 1, 3 do seen[i] = redis.call('RL.TOKENBUCKET', KEYS[1], '2', '1/d')[1] end return seen";
    let replies: Vec<i64> = send_words(&mut redis, &[b"EVAL", script.as_bytes(), b"1", b"bucket"]).unwrap();
    assert_eq!(replies, [1, 1, 0]);
}

#[test]
fn one_time_holds_for_a_whole_script_where_the_server_keeps_one() {
    let server = Server::new();
    let mut redis = server.connect();
    if version(&mut redis) < (7, 2) {
        return skip("keeps no time for a script, as 7.2 does");
    }
    let script = b"local before = redis.call('RL.FIXED', KEYS[1], '9', '36500d')[5]
        local start = os.clock()
        while os.clock() < start + 0.02 do end
        return before - redis.call('RL.PEEK', KEYS[1])[5]";
    let passed: i64 = send_words(&mut redis, &[b"EVAL", script, b"1", b"k"]).unwrap();
    assert_eq!(passed, 0, "milliseconds between two calls of one script");
}

#[test]
fn time_is_counted_in_microseconds() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET k 1000000 1000000 1000000");
    server.clock().advance(300);
    assert_eq!(decide(&mut redis, "RL.PEEK k")[2], 300, "one token a microsecond");
}
