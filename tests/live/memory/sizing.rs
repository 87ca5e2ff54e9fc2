//! How much memory limiters take.

use redis::Connection;

use crate::support::{Options, Server, ask, decide, info};

const KEYS: u64 = 100_000;

const CALLS: [(&str, &str); 8] = [
    ("FIXED", "RL.FIXED {} 100 1h"),
    ("SLIDING", "RL.SLIDING {} 100 1h"),
    ("TOKENBUCKET", "RL.TOKENBUCKET {} 100 100/h"),
    ("TOKENBUCKET, wide", "RL.TOKENBUCKET {} 9007199254740991 1/d"),
    ("LEAKY", "RL.LEAKY {} 100 100/h"),
    ("SLIDINGLOG, 1 entry", "RL.SLIDINGLOG {} 100 1h"),
    ("a counter, for comparison", "SET {} 1 EX 3600"),
    ("SET of 44 bytes with EX", "SET {} xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx EX 3600"),
];

fn used(redis: &mut Connection) -> u64 {
    info(redis, "memory", "used_memory").unwrap().parse().unwrap()
}

/// Bytes by `MEMORY USAGE`, and bytes that the server uses more for each of many keys: with their places in its tables.
fn bytes_of(call: &str) -> [u64; 2] {
    let server = Server::new();
    let mut redis = server.connect();
    let before = used(&mut redis);
    let key = |number: u64| format!("api:{{user:{number:08}}}");
    for some in 0..KEYS / 1_000 {
        let mut pipe = redis::pipe();
        for number in some * 1_000..(some + 1) * 1_000 {
            let line = call.replace("{}", &key(number));
            let mut words = line.split(' ');
            pipe.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>()).ignore();
        }
        pipe.query::<()>(&mut redis).unwrap();
    }
    [ask(&mut redis, &format!("MEMORY USAGE {}", key(7))), (used(&mut redis) - before) / KEYS]
}

#[test]
#[ignore = "measures: prints a table"]
fn what_limiters_take() {
    println!("{:<28} {:>12} {:>16} {:>14}", "keys of 19 bytes", "MEMORY USAGE", "bytes of a key", "keys in 1 GB");
    for (name, call) in CALLS {
        let [usage, bytes] = bytes_of(call);
        println!("{name:<28} {usage:>12} {bytes:>16} {:>14}", 1_000_000_000 / bytes);
    }
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let mut entries = 0;
    for wanted in [1, 4, 5, 11, 25, 43, 61, 100, 1_000, 10_000, 100_000] {
        while entries < wanted {
            server.clock().advance(1_000);
            decide(&mut redis, "RL.SLIDINGLOG api:{user:00000007} 1000000 1h");
            entries += 1;
        }
        let usage: i64 = ask(&mut redis, "MEMORY USAGE api:{user:00000007}");
        println!("log of {wanted:>6} entries {usage:>17} {:>14}.{} an entry", usage / wanted, usage * 10 / wanted % 10);
    }
}
