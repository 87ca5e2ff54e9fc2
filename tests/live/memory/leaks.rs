//! Calls leave no memory behind: after many on keys that come and go, the server uses what it used before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::{HOUR, Options, Server, ask, info, wait_until};

/// Keys of each kind at a time.
const KEYS: usize = 200;

fn used(redis: &mut Connection) -> i64 {
    info(redis, "memory", "used_memory").unwrap().parse().unwrap()
}

/// What happens to each key: it is made, takes, is denied, gives back, is looked at, is called wrongly and by another kind; a log grows
/// and shrinks. Then it expires or is deleted.
fn lines(key: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for call in
        ["FIXED f{} 5 1h", "SLIDING s{} 5 1h", "TOKENBUCKET b{} 5 5/h", "LEAKY l{} 5 5/h", "SLIDINGLOG log{} 5 1h"]
    {
        let call = format!("RL.{}", call.replace("{}", &key.to_string()));
        let name = call.split(' ').nth(1).unwrap();
        lines.extend([
            call.clone(),
            format!("{call} 2"),
            format!("{call} 5"),
            format!("{call} 0"),
            format!("{call} x"),
        ]);
        lines.extend([format!("RL.PEEK {name}"), format!("RL.REFUND {name} 1"), format!("RL.FIXED {name} 5 1h")]);
    }
    lines.push(format!("RL.DEBIT b{key} 5 5/h 3"));
    lines.push(format!("RL.DEBIT b{key} 5 5/h 100"));
    // Another form, and back.
    lines.push(format!("RL.TOKENBUCKET b{key} 9007199254740991 1/h"));
    lines.push(format!("RL.TOKENBUCKET b{key} 5 5/h"));
    lines.push(format!("RL.INSPECT log{key}"));
    lines.push(format!("RL.REFUND f{key} 99"));
    lines.extend(key.is_multiple_of(2).then(|| format!("UNLINK s{key}")));
    lines.push(format!("RL.SLIDINGLOG grows{} 1000000 1h {key}", key % 4));
    lines
}

/// Calls as the bytes that are sent, and how many.
struct Batch {
    packed: Vec<u8>,
    calls: usize,
}

/// What the last reply of a batch ends with.
const END: &[u8] = b"$3\r\nend\r\n";

impl Batch {
    fn of(keys: Range<usize>) -> Self {
        let mut pipe = redis::pipe();
        for line in keys.flat_map(lines) {
            let mut words = line.split(' ');
            pipe.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
        }
        let calls = pipe.len();
        Self { packed: pipe.cmd("ECHO").arg("end").get_packed_pipeline(), calls }
    }

    /// Sends it and waits for all replies, which are not read: that would take longer than the calls.
    fn run(&self, stream: &mut TcpStream) {
        stream.write_all(&self.packed).unwrap();
        let mut replies = Vec::new();
        let mut some = [0; 1 << 16];
        while !replies.ends_with(END) {
            let length = stream.read(&mut some).unwrap();
            assert!(length > 0, "the server closed the connection");
            replies.extend_from_slice(&some[..length]);
        }
    }
}

/// Makes at least so many calls. Each time around all keys have expired.
fn churn(server: &mut Server, stream: &mut TcpStream, redis: &mut Connection, calls: usize) {
    let batches: Vec<_> = (0..KEYS / 20).map(|part| Batch::of(part * 20..(part + 1) * 20)).collect();
    let (mut made, mut told) = (0, Instant::now());
    while made < calls {
        for batch in batches.iter().cycle().take(batches.len() * 4) {
            batch.run(stream);
            server.clock().advance(1_000);
            made += batch.calls;
        }
        server.clock().advance(100 * HOUR);
        if told.elapsed() > Duration::from_secs(10) {
            println!("{made} calls");
            told = Instant::now();
        }
    }
    wait_until("all keys have expired", || ask::<i64>(redis, "DBSIZE") == 0);
}

/// Fails if the server uses more than before by one part in a hundred, after calls of every kind.
fn assert_nothing_is_left(calls: usize) {
    let mut server = Options::new().with_clock().start();
    let mut redis = server.connect();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    // Buffers, tables and statistics have then the size that they keep.
    churn(&mut server, &mut stream, &mut redis, 20_000);
    let before = used(&mut redis);
    let began = Instant::now();
    churn(&mut server, &mut stream, &mut redis, calls);
    let took = began.elapsed();
    // The server shrinks its tables and buffers when it has time, maybe below what they were before.
    wait_until("the memory is as it was", || used(&mut redis) <= before + before / 100);
    println!("{calls} calls in {took:?}: {before} bytes before, {} after", used(&mut redis));
}

#[test]
fn two_hundred_thousand_calls_leave_nothing_behind() {
    assert_nothing_is_left(200_000);
}

#[test]
#[ignore = "takes a minute or two"]
fn ten_million_calls_leave_nothing_behind() {
    assert_nothing_is_left(10_000_000);
}
