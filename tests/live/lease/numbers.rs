//! What calls are answered, worked out by hand.

use redis::Value;

use super::lease;
use crate::support::{Options, SECOND, Server, ask, decide, digest, error};

#[test]
fn a_node_gets_half_of_its_share_and_gives_back() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    // holding, free, outstanding, retry_after_ms, ttl_ms, nodes
    assert_eq!(lease(&mut redis, "k 100 1 a 1 0 80 1s"), [50, 50, 50, 0, 1_000, 1], "⌈100 / 2⌉");
    assert_eq!(lease(&mut redis, "k 100 1 b 1 0 80 2s"), [13, 37, 63, 0, 2_000, 2], "⌈50 / 4⌉");
    assert_eq!(lease(&mut redis, "k 100 1 a 2 10 80 1s"), [20, 27, 33, 0, 1_000, 2], "40 were spent, ⌈37 / 4⌉ come");
    assert_eq!(lease(&mut redis, "k 100 1 a 3 20 5 1s"), [5, 42, 18, 0, 1_000, 2], "15 go back");
    assert_eq!(lease(&mut redis, "k 100 1 b 2 99 0 1s"), [0, 55, 5, 0, 0, 1], "what it never had is not given back");
    assert_eq!(lease(&mut redis, "k 100 1 a 4 5 9 500ms MIN 4"), [9, 51, 9, 0, 1_000, 1], "the row's end stays");
    assert_eq!(decide(&mut redis, "RL.PEEK k"), [1, 100, 51, 0, 49_000], "40 spent, 9 in a row");
}

#[test]
fn a_repeated_or_late_call_changes_nothing() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "k 10 1 a 7 0 4 1s"), [4, 6, 4, 0, 1_000, 1]);
    let before = digest(&mut redis);
    for seq in [7, 6, 1] {
        assert_eq!(lease(&mut redis, &format!("k 10 1 a {seq} 0 9 1h")), [4, 6, 4, 0, 1_000, 1]);
        assert_eq!(lease(&mut redis, &format!("k 99 5 a {seq} 4 0 1h")), [4, 6, 4, 0, 1_000, 1]);
    }
    assert_eq!(lease(&mut redis, "k 10 1 b 1 0 0 1s"), [0, 6, 4, 0, 0, 1], "who has no row gives nothing back");
    assert_eq!(digest(&mut redis), before);
}

#[test]
fn refill_stops_where_rows_and_free_tokens_are_the_capacity() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 6 10s MIN 6"), [6, 4, 6, 0, 10_000, 1]);
    server.clock().advance(5 * SECOND);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 4"), [1, 10, 0, 0, 11_000], "the row ends, then 6 flow back");
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 5"), [0, 10, 0, 6_000, 11_000], "4 in 4 s, then 1 at the end");
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 11")[3], -1);
    assert_eq!(decide(&mut redis, "RL.REFUND k 100"), [1, 10, 4, 0, 11_000], "what is in a row does not come back");
    // Forfeited at 10 s: from there on 1 a second.
    server.clock().advance(7 * SECOND);
    assert_eq!(decide(&mut redis, "RL.PEEK k"), [1, 10, 6, 0, 4_000]);
    assert!(ask::<i64>(&mut redis, "STRLEN k") > 52, "a look writes nothing");
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 1"), [1, 10, 5, 0, 5_000]);
    assert_eq!(ask::<i64>(&mut redis, "STRLEN k"), 44, "a plain bucket again");
}

#[test]
fn a_node_is_put_off_once_in_a_row() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 8")[2], 2);
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 10 3s MIN 5"), [0, 2, 0, 3_000, 3_000, 1], "5 are there within the ttl");
    assert_eq!(lease(&mut redis, "k 10 1 a 2 0 10 3s MIN 5"), [2, 0, 2, 0, 3_000, 1], "once");
    assert_eq!(lease(&mut redis, "k 10 1 a 3 2 10 3s MIN 5"), [2, 0, 2, 1_000, 3_000, 1], "not within it");
    server.clock().advance(SECOND);
    assert_eq!(lease(&mut redis, "k 10 1 a 4 2 10 3s MIN 4"), [2, 1, 2, 3_000, 3_000, 1]);
    assert_eq!(ask::<Vec<i64>>(&mut redis, "RL.DEBIT k 10 1 1"), [0, 10, 0, 1_000, 10_000, 0]);
}

#[test]
fn a_capacity_of_0_grants_nothing_and_is_not_remembered() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "k 0 1 a 1 0 5 1s"), [0, 0, 0, -1, 0, 0], "of an unused key nothing is kept");
    assert_eq!(ask::<i64>(&mut redis, "EXISTS k"), 0);
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 5 1s"), [5, 5, 5, 0, 1_000, 1]);
    assert_eq!(lease(&mut redis, "k 0 1 a 2 3 9 2s"), [3, 0, 3, -1, 2_000, 1], "what it spent is heard");
    assert_eq!(lease(&mut redis, "k 0 1 a 3 3 1 1s"), [1, 0, 1, 0, 2_000, 1], "what it gives back too");
    assert_eq!(decide(&mut redis, "RL.PEEK k")[..3], [1, 10, 7]);
    server.clock().advance(2 * SECOND);
    assert_eq!(decide(&mut redis, "RL.PEEK k")[..3], [1, 10, 9], "the row is forfeited now, and 1 token of it");
}

#[test]
fn a_capacity_below_what_is_in_rows_refills_nothing() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 8 20s MIN 8"), [8, 2, 8, 0, 20_000, 1]);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 6 1 1"), [0, 6, 0, 21_000, 26_000], "nothing before the row ends");
    assert_eq!(ask::<Vec<i64>>(&mut redis, "RL.DEBIT k 6 1 2"), [0, 6, 0, 23_000, 28_000, 0], "a debt beside it");
    server.clock().advance(10 * SECOND);
    assert_eq!(decide(&mut redis, "RL.PEEK k"), [0, 6, 0, 13_000, 18_000], "which is not paid either");
    assert_eq!(decide(&mut redis, "RL.REFUND k 9"), [0, 6, 0, 11_000, 16_000], "a refund pays it, and no more");
    assert_eq!(lease(&mut redis, "k 6 1 a 2 8 4 1s"), [4, 2, 4, 0, 10_000, 1], "4 come back, then 2 fit");
}

#[test]
fn rows_end_no_later_than_their_ttl_after_the_clock_went_back() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 5 4s"), [5, 5, 5, 0, 4_000, 1]);
    server.clock().advance(-100 * SECOND);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 9")[..3], [0, 10, 5], "denied, and yet the stamp moves");
    server.clock().advance(4 * SECOND - 1);
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 0 4s")[4..], [0, 1], "answered from the row for its last microsecond");
    server.clock().advance(1);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 10 1 5"), [1, 10, 0, 0, 10_000], "forfeited at 4 s");
}

#[test]
fn ahead_a_row_is_gone_and_comes_not_back() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "k 10 1 a 1 0 5 4s"), [5, 5, 5, 0, 4_000, 1]);
    server.clock().advance(100 * SECOND);
    assert_eq!(lease(&mut redis, "k 10 1 b 1 0 4 1s"), [4, 6, 4, 0, 1_000, 1]);
    server.clock().advance(-100 * SECOND);
    assert_eq!(lease(&mut redis, "k 10 1 a 2 5 5 1s"), [2, 4, 6, 0, 1_000, 2], "what a has counts as 0: ⌈6 / 4⌉");
}

#[test]
fn inspect_tells_what_each_node_holds() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let now = server.clock().now() / 1_000;
    lease(&mut redis, "k 100 1 a 7 0 4 1s");
    lease(&mut redis, "k 100 1 b 9007199254740991 0 5 2500ms");
    let told: Vec<Value> = ask(&mut redis, "RL.INSPECT k");
    let at = told.iter().position(|field| *field == Value::BulkString(b"leases".to_vec())).unwrap();
    // node, tokens, ttl in ms, end in ms, number of the call
    let mut rows: Vec<(String, i64, i64, i64, i64)> = redis::from_redis_value(told[at + 1].clone()).unwrap();
    rows.sort();
    let expected = [("a".into(), 4, 1_000, now + 1_000, 7), ("b".into(), 5, 2_500, now + 2_500, 9_007_199_254_740_991)];
    assert_eq!(rows, expected);
}

/// Casebook RC-208: of a small limit the one node that is busy gets all.
#[test]
fn a_small_limit_is_not_left_where_nobody_calls() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    for node in ["a", "b", "c"] {
        assert_eq!(lease(&mut redis, &format!("k 3 3/1s {node} 1 0 1 1s"))[0], 1);
        assert_eq!(lease(&mut redis, &format!("k 3 3/1s {node} 2 1 0 1s"))[1], 3, "an idle one gives back");
    }
    let mut left = 0;
    for seq in 1..=3 {
        left = lease(&mut redis, &format!("k 3 3/1s busy {seq} {left} 3 1s"))[0];
        assert!(left > 0, "nothing for request {seq}");
        left -= 1;
    }
}

#[test]
fn several_limits_in_one_call_heed_what_is_in_rows() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    assert_eq!(lease(&mut redis, "{k}1 10 1 a 1 0 4 1s"), [4, 6, 4, 0, 1_000, 1]);
    let line = "RL.MULTI {k}1 TOKENBUCKET 10 1 5 {k}2 FIXED 10 1h 1";
    let told: Vec<i64> = ask(&mut redis, line);
    assert_eq!(told, [1, 0, 1, 10, 1, 0, 9_000, 1, 10, 9, 0, 3_599_500]);
    let before = digest(&mut redis);
    let told: Vec<i64> = ask(&mut redis, line);
    assert_eq!(told, [0, 0, 0, 10, 1, 4_000, 9_000, 1, 10, 9, 0, 3_599_500]);
    assert_eq!(digest(&mut redis), before);
}

#[test]
fn wrong_input_is_refused_before_anything_is_touched() {
    let server = Server::new();
    let mut redis = server.connect();
    let long = "n".repeat(65);
    for (line, expected) in [
        ("k x 1 n 1 0 1 1s", "ERR capacity must be an integer from 0 to 9007199254740991"),
        ("k 1 1 n 0 0 1 1s", "ERR seq must be an integer from 1 to 9007199254740991"),
        ("k 1 1 n 9007199254740992 0 1 1s", "ERR seq must be an integer from 1 to 9007199254740991"),
        ("k 1 1 n 1 -1 1 1s", "ERR have must be an integer from 0 to 9007199254740991"),
        ("k 1 1 n 1 0 x 1s", "ERR want must be an integer from 0 to 9007199254740991"),
        ("k 1 1 n 1 0 1 9ms", "ERR ttl must be a duration from 10ms to 1h, such as 500ms or 5"),
        ("k 1 1 n 1 0 1 61m", "ERR ttl must be a duration from 10ms to 1h, such as 500ms or 5"),
        ("k 1 1 n 1 0 1 1s MIN", "ERR only MIN and an integer may follow the ttl"),
        ("k 1 1 n 1 0 1 1s MAX 1", "ERR only MIN and an integer may follow the ttl"),
        ("k 1 1 n 1 0 1 1s min x", "ERR MIN must be an integer from 0 to 9007199254740991"),
        ("k 1 1  1 0 1 1s", "ERR node must be 1 to 64 bytes"),
        (&format!("k 1 1 {long} 1 0 1 1s"), "ERR node must be 1 to 64 bytes"),
    ] {
        assert_eq!(error(&mut redis, &format!("RL.LEASE {line}")), expected);
    }
    let empty = digest(&mut redis);
    decide(&mut redis, "RL.FIXED f 5 1h");
    assert_eq!(error(&mut redis, "RL.LEASE f 1 1 n 1 0 1 1s"), "WRONGTYPE the key holds a fixed window limiter");
    lease(&mut redis, "k 10 1 a 1 0 5 1h");
    assert_eq!(error(&mut redis, "RL.FIXED k 5 1h"), "WRONGTYPE the key holds a token bucket limiter");
    ask::<()>(&mut redis, "DEL f k");
    assert_eq!(digest(&mut redis), empty);
}
