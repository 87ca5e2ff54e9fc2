//! Many connections at once, on sets of keys that overlap.

use std::sync::Barrier;
use std::thread;

use super::call;
use crate::support::{Server, decide};

const CONNECTIONS: usize = 16;
const CALLS: usize = 120;
const KEYS: usize = 5;
const LIMIT: i64 = 300;

/// For each key, how much the calls that were allowed took of it.
fn hammer(server: &Server, barrier: &Barrier, connection: usize) -> [i64; KEYS] {
    let mut redis = server.connect();
    let mut taken = [0; KEYS];
    barrier.wait();
    for round in 0..CALLS {
        let (first, second) = ((connection + round) % KEYS, (connection + 2 * round + 1) % KEYS);
        let (cost, other) = (1 + i64::try_from(round % 3).unwrap(), 2);
        let second = if first == second { (second + 1) % KEYS } else { second };
        let kinds = ["FIXED", "SLIDING", "SLIDINGLOG", "TOKENBUCKET", "LEAKY"];
        let words = |key: usize, cost| {
            let pace = if key < 3 { "36500d" } else { "1/36500d" };
            format!("k{key} {} {LIMIT} {pace} {cost}", kinds[key])
        };
        if call(&mut redis, &format!("{} {}", words(first, cost), words(second, other))).allowed {
            taken[first] += cost;
            taken[second] += other;
        }
    }
    taken
}

#[test]
fn no_limit_is_broken_and_no_budget_lost() {
    let server = Server::new();
    let barrier = Barrier::new(CONNECTIONS);
    let taken = thread::scope(|scope| {
        let (server, barrier) = (&server, &barrier);
        let callers: Vec<_> =
            (0..CONNECTIONS).map(|index| scope.spawn(move || hammer(server, barrier, index))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).fold([0; KEYS], |mut sum, taken| {
            sum.iter_mut().zip(taken).for_each(|(sum, taken)| *sum += taken);
            sum
        })
    });
    let mut redis = server.connect();
    for (key, taken) in taken.into_iter().enumerate() {
        assert!(taken > LIMIT / 2 && taken <= LIMIT, "{taken} of k{key}");
        assert_eq!(decide(&mut redis, &format!("RL.PEEK k{key}"))[2], LIMIT - taken, "k{key}");
    }
}
