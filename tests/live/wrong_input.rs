//! Wrong arguments, wrong types, planted bytes: an error, and nothing else happens.

use redis::Connection;

use crate::support::{Options, Server, ask, decide, digest, error, error_of_words, send, send_words};

const LIMIT: &str = "ERR limit must be an integer from 0 to 9007199254740991";
const CAPACITY: &str = "ERR capacity must be an integer from 0 to 9007199254740991";
const COST: &str = "ERR cost must be an integer from 0 to 9007199254740991";
const AMOUNT: &str = "ERR amount must be an integer from 0 to 9007199254740991";
const AGE: &str = "ERR AGE must be a duration from 0 to 36500d, such as 60, 250ms or 1h";
const WINDOW: &str = "ERR window must be a duration from 1ms to 36500d, such as 60, 250ms or 1h";
const RATE: &str = "ERR rate must be a number above 0 of at most 15 digits, per second or per duration, such as 10, 0.5, 100/60 or 5/h";

/// Wrong wherever a number of any sort stands.
const NO_NUMBERS: [&[u8]; 24] = [
    b"",
    b" ",
    b"-1",
    b"+1",
    b"-0",
    b" 1",
    b"1 ",
    b"1e3",
    b"1E3",
    b"0x10",
    b"nan",
    b"NaN",
    b"inf",
    b"infinity",
    b"01",
    b"00",
    b".5",
    b"1.",
    b"1,5",
    b"1_000",
    b"\xff\xfe",
    b"1\0",
    b"\0",
    "\u{661}".as_bytes(),
];

#[test]
fn each_wrong_argument_is_named() {
    let server = Server::new();
    let mut redis = server.connect();
    let megabyte = vec![b'9'; 1 << 20];
    let zeros = [b"0.".as_slice(), &vec![b'0'; 1 << 20], b"1"].concat();

    let wrong_integers: [&[u8]; 5] = [b"9007199254740992", b"18446744073709551616", b"1.0", b"1ms", &megabyte];
    for text in NO_NUMBERS.into_iter().chain(wrong_integers) {
        for (command, expected) in [
            (b"RL.FIXED".as_slice(), LIMIT),
            (b"RL.SLIDING", LIMIT),
            (b"RL.SLIDINGLOG", LIMIT),
            (b"RL.TOKENBUCKET", CAPACITY),
            (b"RL.LEAKY", CAPACITY),
        ] {
            assert_eq!(error_of_words(&mut redis, &[command, b"k", text, b"60"]), expected);
            assert_eq!(error_of_words(&mut redis, &[command, b"k", b"9", b"60", text]), COST);
        }
        assert_eq!(error_of_words(&mut redis, &[b"RL.DEBIT", b"k", b"9", b"60", text]), AMOUNT);
        assert_eq!(error_of_words(&mut redis, &[b"RL.REFUND", b"k", text]), AMOUNT);
        assert_eq!(error_of_words(&mut redis, &[b"RL.PEEK", b"k", text]), COST);
    }
    let wrong_windows: [&[u8]; 12] = [
        b"0",
        b"0ms",
        b"0.5ms",
        b"0.0001",
        b"1.0000001",
        b"36501d",
        b"36500.1d",
        b"1y",
        b"1S",
        b"1 s",
        b"ms",
        &megabyte,
    ];
    for text in NO_NUMBERS.into_iter().chain(wrong_windows) {
        assert_eq!(error_of_words(&mut redis, &[b"RL.FIXED", b"k", b"9", text]), WINDOW);
        assert_eq!(error_of_words(&mut redis, &[b"RL.SLIDING", b"k", b"9", text]), WINDOW);
        if ![b"0".as_slice(), b"0ms", b"0.5ms", b"0.0001"].contains(&text) {
            assert_eq!(error_of_words(&mut redis, &[b"RL.REFUND", b"k", b"9", b"AGE", text]), AGE);
        }
    }
    let wrong_rates: [&[u8]; 12] = [
        b"0",
        b"0.0",
        b"0/60",
        b"/60",
        b"60/",
        b"1/0",
        b"1/-1",
        b"1/36501d",
        b"1//m",
        b"1234567890123456",
        &zeros,
        &megabyte,
    ];
    for text in NO_NUMBERS.into_iter().chain(wrong_rates) {
        assert_eq!(error_of_words(&mut redis, &[b"RL.TOKENBUCKET", b"k", b"9", text]), RATE);
        assert_eq!(error_of_words(&mut redis, &[b"RL.LEAKY", b"k", b"9", text]), RATE);
        assert_eq!(error_of_words(&mut redis, &[b"RL.DEBIT", b"k", b"9", text, b"1"]), RATE);
    }
    for line in ["RL.REFUND k 9 AGE", "RL.REFUND k 9 OLD 1", "RL.REFUND k 9 1 AGE"] {
        assert_eq!(error(&mut redis, line), "ERR only AGE and a duration may follow the amount");
    }
    assert_eq!(ask::<i64>(&mut redis, "DBSIZE"), 0);
}

#[test]
fn the_number_of_arguments_is_checked() {
    let server = Server::new();
    let mut redis = server.connect();
    for line in [
        "RL.FIXED k 1",
        "RL.FIXED k 1 1 1 1",
        "RL.SLIDING k 1",
        "RL.SLIDING k 1 1 1 1",
        "RL.TOKENBUCKET k 1",
        "RL.TOKENBUCKET k 1 1 1 1",
        "RL.LEAKY k 1",
        "RL.LEAKY k 1 1 1 1",
        "RL.PEEK",
        "RL.PEEK k 1 1",
        "RL.REFUND k",
        "RL.REFUND k 1 AGE 1 1",
        "RL.DEBIT k 1 1",
        "RL.DEBIT k 1 1 1 1",
        "RL.INSPECT",
        "RL.INSPECT k 1",
    ] {
        let name = line.split(' ').next().unwrap().to_lowercase();
        assert_eq!(error(&mut redis, line), format!("ERR wrong number of arguments for '{name}' command"));
    }
}

#[test]
fn other_values_are_left_alone() {
    let server = Server::new();
    let mut redis = server.connect();
    let long = "x".repeat(500);
    let plant: [&str; 9] = [
        "SET int 12345",
        "SET text abc",
        &format!("SET long {long}"),
        "SET empty ",
        "RPUSH list a",
        "SADD set a",
        "HSET hash a b",
        "ZADD zset 1 a",
        "XADD stream * a b",
    ];
    for line in plant {
        ask::<redis::Value>(&mut redis, line);
    }
    let keys: Vec<String> = ask(&mut redis, "KEYS *");
    let encodings = |redis: &mut Connection| -> Vec<String> {
        keys.iter().map(|key| ask(redis, &format!("OBJECT ENCODING {key}"))).collect()
    };
    let before = (digest(&mut redis), encodings(&mut redis));
    for key in &keys {
        for line in [
            format!("RL.FIXED {key} 9 60"),
            format!("RL.TOKENBUCKET {key} 9 60"),
            format!("RL.PEEK {key}"),
            format!("RL.REFUND {key} 1"),
            format!("RL.DEBIT {key} 9 60 1"),
            format!("RL.INSPECT {key}"),
        ] {
            let error = error(&mut redis, &line);
            let is_string = ["int", "text", "long", "empty"].contains(&key.as_str());
            let expected = if is_string {
                "WRONGTYPE the key holds a string that is no limiter"
            } else {
                "WRONGTYPE Operation against a key holding the wrong kind of value"
            };
            assert_eq!(error, expected, "{line}");
        }
    }
    assert_eq!((digest(&mut redis), encodings(&mut redis)), before);
}

#[test]
fn a_wrong_argument_leaves_a_limiter_as_it_is() {
    let server = Server::new();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET b 10 1/d 5");
    decide(&mut redis, "RL.FIXED f 10 36500d 5");
    let before = digest(&mut redis);
    for line in
        ["RL.TOKENBUCKET b x 1", "RL.TOKENBUCKET b 1 x", "RL.TOKENBUCKET b 1 1 x", "RL.FIXED f 1 x", "RL.PEEK f x"]
    {
        error(&mut redis, line);
    }
    assert_eq!(digest(&mut redis), before);
}

#[test]
fn bytes_that_are_no_state_are_neither_believed_nor_mended() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.TOKENBUCKET b 10 1/d 5");
    decide(&mut redis, "RL.FIXED f 10 36500d 5");
    decide(&mut redis, "RL.TOKENBUCKET w 9007199254740991 1/d 5");
    decide(&mut redis, "RL.SLIDING s 10 36500d 5");
    decide(&mut redis, "RL.LEAKY l 10 1/d 5");

    let no_limiter = "WRONGTYPE the key holds a string that is no limiter";
    let newer = "WRONGTYPE the key holds a limiter of a newer version of redis-rl";
    for key in ["b", "f", "w", "s", "l"] {
        let state: Vec<u8> = ask(&mut redis, &format!("GET {key}"));
        let with = |at: usize, byte: u8| {
            let mut bytes = state.clone();
            bytes[at] = byte;
            bytes
        };
        let filled = |from: usize| [&state[..from], &vec![0xFF; state.len() - from]].concat();
        let broken = [
            (state[..state.len() - 1].to_vec(), no_limiter),
            ([state.as_slice(), b"x"].concat(), no_limiter),
            (with(0, b'x'), no_limiter),
            (with(1, b'x'), no_limiter),
            (with(2, 0), no_limiter),
            (with(2, 2), newer),
            (with(3, 0xF0), no_limiter),
            (filled(4), no_limiter),
            (filled(state.len() - 16), no_limiter),
            (filled(state.len() - 8), no_limiter),
            (vec![0; state.len()], no_limiter),
        ];
        for (bytes, expected) in broken {
            send_words::<()>(&mut redis, &[b"SET", b"planted", &bytes]).unwrap();
            for line in [
                "RL.TOKENBUCKET planted 10 1",
                "RL.FIXED planted 10 60",
                "RL.SLIDING planted 10 60",
                "RL.LEAKY planted 10 1",
                "RL.PEEK planted",
                "RL.REFUND planted 1",
                "RL.DEBIT planted 10 1 1",
                "RL.INSPECT planted",
            ] {
                assert_eq!(error(&mut redis, line), expected, "{line} on {}", bytes.escape_ascii());
            }
            assert_eq!(ask::<Vec<u8>>(&mut redis, "GET planted"), bytes);
        }
    }
}

#[test]
fn a_state_with_any_bit_flipped_is_refused_or_answers_within_bounds() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for line in [
        "RL.TOKENBUCKET k 10 1/d 5",
        "RL.FIXED k 10 36500d 5",
        "RL.TOKENBUCKET k 9007199254740991 1/d 5",
        "RL.SLIDING k 10 36500d 5",
        "RL.LEAKY k 10 1/d 5",
    ] {
        ask::<()>(&mut redis, "DEL k");
        decide(&mut redis, line);
        let state: Vec<u8> = ask(&mut redis, "GET k");
        for bit in 0..state.len() * 8 {
            let mut flipped = state.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            send_words::<()>(&mut redis, &[b"SET", b"planted", &flipped]).unwrap();
            for line in ["RL.PEEK planted", "RL.REFUND planted 1", &line.replace(" k ", " planted ")] {
                match send::<Option<Vec<i64>>>(&mut redis, line) {
                    Ok(Some(reply)) => {
                        assert!(
                            reply[2] <= reply[1] && reply.iter().all(|&number| (-1..1 << 53).contains(&number)),
                            "{reply:?}"
                        );
                    }
                    Ok(None) => {}
                    Err(error) if error.to_string().contains("takes nothing back") => {}
                    Err(error) => assert_eq!(error.code(), Some("WRONGTYPE"), "{error}"),
                }
            }
        }
    }
}

#[test]
fn too_few_arguments_are_refused_where_a_transaction_queues_them() {
    let server = Server::new();
    let mut redis = server.connect();
    for line in ["RL.FIXED k 1", "RL.TOKENBUCKET k 1", "RL.PEEK"] {
        ask::<()>(&mut redis, "MULTI");
        error(&mut redis, line);
        assert!(error(&mut redis, "EXEC").starts_with("EXECABORT"), "{line}");
    }
}
