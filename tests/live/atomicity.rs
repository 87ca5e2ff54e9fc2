//! Many connections, one key: exactly the limit gets in.

use std::sync::Barrier;
use std::thread;

use crate::support::{Server, decide};

const CONNECTIONS: usize = 64;
const CALLS: usize = 50;
const LIMIT: i64 = 1_000;

/// How many of all calls from all connections are admitted.
fn admitted(server: &Server, line: &str) -> i64 {
    let barrier = Barrier::new(CONNECTIONS);
    let hammer = || {
        let mut redis = server.connect();
        barrier.wait();
        (0..CALLS).map(|_| decide(&mut redis, line)[0]).sum::<i64>()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(hammer)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn sixty_four_connections_get_exactly_the_limit() {
    let server = Server::new();
    assert!(CONNECTIONS * CALLS > 3 * LIMIT as usize, "far more than the limit is asked for");
    // Windows and refills of a hundred years: nothing comes back meanwhile.
    assert_eq!(admitted(&server, &format!("RL.FIXED f {LIMIT} 36500d")), LIMIT);
    assert_eq!(admitted(&server, &format!("RL.SLIDING s {LIMIT} 36500d")), LIMIT);
    assert_eq!(admitted(&server, &format!("RL.SLIDINGLOG log {LIMIT} 36500d")), LIMIT);
    assert_eq!(admitted(&server, &format!("RL.TOKENBUCKET b {LIMIT} 1/36500d")), LIMIT);
    assert_eq!(admitted(&server, &format!("RL.LEAKY l {LIMIT} 1/36500d")), LIMIT);
}
