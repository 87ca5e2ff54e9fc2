//! Several limits in one call: all take, or none does.

mod alone;
mod callers;
mod grammar;
mod meddling;
mod places;
mod told;

use redis::Connection;

use crate::support::{Options, ask, decide};

/// What a call is told.
#[derive(Debug, PartialEq)]
struct Reply {
    allowed: bool,
    index: usize,
    limits: Vec<[i64; 5]>,
}

/// Calls `RL.MULTI` with these words behind its name.
fn call(redis: &mut Connection, words: &str) -> Reply {
    let numbers: Vec<i64> = ask(redis, &format!("RL.MULTI {words}"));
    let (limits, rest) = numbers[2..].as_chunks();
    assert!(rest.is_empty(), "{words}: {numbers:?}");
    Reply { allowed: numbers[0] == 1, index: usize::try_from(numbers[1]).unwrap(), limits: limits.to_vec() }
}

fn reply<const N: usize>(allowed: bool, index: usize, limits: [[i64; 5]; N]) -> Reply {
    Reply { allowed, index, limits: limits.to_vec() }
}

#[test]
fn all_take_or_none_does() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let both = "{u}:s FIXED 2 1s 1 {u}:m FIXED 3 1m 1";
    assert_eq!(call(&mut redis, both), reply(true, 0, [[1, 2, 1, 0, 500], [1, 3, 2, 0, 59_500]]));
    assert_eq!(call(&mut redis, both), reply(true, 0, [[1, 2, 0, 0, 500], [1, 3, 1, 0, 59_500]]));
    // The first denies; the second has lost nothing by it, and says what it would have said alone.
    assert_eq!(call(&mut redis, both), reply(false, 0, [[0, 2, 0, 500, 500], [1, 3, 1, 0, 59_500]]));
    server.clock().advance(500_000);
    assert_eq!(call(&mut redis, both), reply(true, 1, [[1, 2, 1, 0, 1_000], [1, 3, 0, 0, 59_000]]));
    assert_eq!(call(&mut redis, both), reply(false, 1, [[1, 2, 1, 0, 1_000], [0, 3, 0, 59_000, 59_000]]));
    assert_eq!(decide(&mut redis, "RL.PEEK {u}:s")[2], 1);
}

#[test]
fn each_kind_answers_as_its_command_does() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let all = "f fixed 9 1m 2 s Sliding 9 1m 2 log SLIDINGLOG 9 1m 2 b TokenBucket 9 1 2 q LEAKY 9 1 2";
    let expected =
        [[1, 9, 7, 0, 59_500], [1, 9, 7, 0, 119_500], [1, 9, 7, 0, 60_000], [1, 9, 7, 0, 2_000], [1, 9, 7, 0, 2_000]];
    assert_eq!(call(&mut redis, all), reply(true, 0, expected));
    assert_eq!(
        call(&mut redis, all).limits[4],
        [1, 9, 5, 2_000, 4_000],
        "a delay of the queue is the caller's to keep"
    );
    assert_eq!(decide(&mut redis, "RL.PEEK log"), [1, 9, 5, 0, 60_000]);
    assert_eq!(call(&mut redis, "alone TOKENBUCKET 5 1 1"), reply(true, 0, [[1, 5, 4, 0, 1_000]]));
}

#[test]
fn a_cost_of_0_reports_and_never_denies() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED full 5 1m 5");
    let told = call(&mut redis, "full FIXED 5 1m 0 f FIXED 9 1m 4");
    assert_eq!(told, reply(true, 0, [[0, 5, 0, 59_500, 59_500], [1, 9, 5, 0, 59_500]]));
    assert_eq!(call(&mut redis, "new FIXED 5 1m 0").limits, [[1, 5, 5, 0, 0]]);
    // Where another limit denies, it is that one which is named, though the first waits as long.
    let told = call(&mut redis, "full FIXED 5 1m 0 f FIXED 9 1m 6");
    assert_eq!((told.allowed, told.index), (false, 1));
    assert_eq!(ask::<i64>(&mut redis, "EXISTS new"), 0);
}

#[test]
fn the_limit_is_named_that_says_how_long_to_wait_or_has_the_smallest_share() {
    let server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let named = |redis: &mut Connection, words: &str| {
        let told = call(redis, words);
        (told.allowed, told.index)
    };
    for line in ["RL.FIXED s 1 1s", "RL.FIXED m 1 1m", "RL.FIXED m2 1 1m"] {
        decide(&mut redis, line);
    }
    assert_eq!(named(&mut redis, "s FIXED 1 1s 1 m FIXED 1 1m 1 m2 FIXED 1 1m 1"), (false, 1), "the first of equals");
    assert_eq!(named(&mut redis, "s FIXED 1 1s 1 m FIXED 1 1m 2 m2 FIXED 1 1m 1"), (false, 1), "never is longest");
    assert_eq!(named(&mut redis, "m FIXED 1 1m 1 off FIXED 0 1s 1"), (false, 1));
    assert_eq!(named(&mut redis, "off FIXED 0 1s 1 m FIXED 1 1m 1"), (false, 0));
    // 99 of 100 is less than 199 of 200, and as much as 990 of 1000.
    assert_eq!(named(&mut redis, "a FIXED 200 1m 1 b FIXED 100 1m 1"), (true, 1));
    assert_eq!(named(&mut redis, "c FIXED 100 1m 1 d FIXED 1000 1m 10"), (true, 0));
    assert_eq!(named(&mut redis, "e FIXED 1000 1m 10 g FIXED 100 1m 1"), (true, 0));
    assert_eq!(named(&mut redis, "off FIXED 0 1s 0 h FIXED 100 1m 100"), (true, 0), "of nothing, nothing remains");
    // A third of a millionth of a token apart, where both have 99 left.
    let words = "x TOKENBUCKET 100 1/3s 0 y TOKENBUCKET 100 1/3s 1";
    assert_eq!(named(&mut redis, words), (true, 1));
}

/// A request and its tokens, for a language model: what the answer really cost comes later.
#[test]
fn tokens_are_charged_with_the_request_and_settled_with_the_answer() {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let ask_for = |tokens: u64| format!("{{acme}}:rpm SLIDINGLOG 3 1m 1 {{acme}}:tpm TOKENBUCKET 2000 2000/m {tokens}");
    assert_eq!(call(&mut redis, &ask_for(850)).limits[1], [1, 2_000, 1_150, 0, 25_500]);
    server.clock().advance(3_000_000);
    // It took 600: 250 come back, less what has flowed back of them in three seconds.
    assert_eq!(decide(&mut redis, "RL.REFUND {acme}:tpm 250 AGE 3s")[2], 1_400);
    // Another took 700 more than was thought.
    assert!(call(&mut redis, &ask_for(850)).allowed);
    let debited: Vec<i64> = ask(&mut redis, "RL.DEBIT {acme}:tpm 2000 2000/m 700");
    assert_eq!(debited, [0, 2_000, 0, 4_530, 64_500, 0]);
    // So tokens deny, and the request is not counted.
    let told = call(&mut redis, &ask_for(850));
    assert_eq!((told.allowed, told.index, told.limits[0][2]), (false, 1, 1));
    server.clock().advance(30_000_000);
    assert_eq!(call(&mut redis, &ask_for(850)).limits[0], [1, 3, 0, 0, 60_000]);
}
