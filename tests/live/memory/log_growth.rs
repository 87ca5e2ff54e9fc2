//! What the calls cost that must move a log into a larger allocation.

use std::time::Instant;

use redis::Connection;

use crate::support::{Server, ask, send_words};

const CALL: [&[u8]; 4] = [b"RL.SLIDINGLOG", b"log", b"1000000", b"36500d"];

/// Microseconds from a call until its answer is there.
fn micros(redis: &mut Connection, words: &[&[u8]]) -> u128 {
    let began = Instant::now();
    send_words::<redis::Value>(redis, words).unwrap();
    began.elapsed().as_micros()
}

/// The least of several times: what else the machine does only adds.
fn least(redis: &mut Connection, mut measure: impl FnMut(&mut Connection) -> u128) -> u128 {
    (0..7).map(|_| measure(redis)).min().unwrap()
}

/// Adds so many entries, or as many as it takes until the log has another length.
fn add(redis: &mut Connection, entries: usize, until_longer: bool) {
    let length = |redis: &mut Connection| ask::<usize>(redis, "STRLEN log");
    let before = length(redis);
    for _ in 0..entries {
        if until_longer {
            ask::<()>(redis, "COPY log before REPLACE");
        }
        send_words::<Vec<i64>>(redis, &CALL).unwrap();
        if until_longer && length(redis) != before {
            return;
        }
    }
}

/// Each growth is done again several times, from a copy that was made before it.
#[test]
fn no_growth_up_to_100_000_entries_takes_ten_times_a_get_of_the_log() {
    let server = Server::new();
    let mut redis = server.connect();
    ask::<()>(&mut redis, "CONFIG SET rl.max-log-entries 200000");
    let (mut entries, mut length) = (0, 0);
    let mut growths = Vec::new();
    while entries < 100_000 {
        let some = (entries / 100).max(1);
        ask::<i64>(&mut redis, "COPY log start REPLACE");
        add(&mut redis, some, false);
        entries += some;
        let longer: usize = ask(&mut redis, "STRLEN log");
        if longer == length {
            continue;
        }
        length = longer;
        if ask::<i64>(&mut redis, "COPY start log REPLACE") == 0 {
            continue;
        }
        add(&mut redis, some, true);
        let call = least(&mut redis, |redis| {
            ask::<()>(redis, "COPY before log REPLACE");
            micros(redis, &CALL)
        });
        assert_eq!(ask::<usize>(&mut redis, "STRLEN log"), length, "it grew each time");
        let get = least(&mut redis, |redis| micros(redis, &[b"GET", b"log"]));
        growths.push((length, call, get));
        entries += some;
    }
    for (length, call, get) in &growths {
        println!("to {length} bytes: {call} µs, a GET of it {get} µs");
    }
    assert!(growths.len() > 20 && length > 700_000, "{growths:?}");
    // A module that was built without optimisation copies six times as slowly.
    let most = if cfg!(debug_assertions) { 60 } else { 10 };
    let slow: Vec<_> = growths.iter().filter(|(_, call, get)| *call > most * get).collect();
    assert!(slow.is_empty(), "{slow:?}");
}
