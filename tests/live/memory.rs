//! A server whose memory is full.

use crate::support::{Options, Server, ask, decide, error, send};

/// A server with data up to its limit.
fn full(policy: &str) -> Server {
    let server = Options::new().set("maxmemory-policy", policy).start();
    let mut redis = server.connect();
    decide(&mut redis, "RL.FIXED f 100 36500d");
    decide(&mut redis, "RL.TOKENBUCKET b 100 1/d");
    ask::<()>(&mut redis, "CONFIG SET maxmemory 1");
    server
}

#[test]
fn limiters_that_exist_go_on_and_new_ones_are_refused() {
    let server = full("noeviction");
    let mut redis = server.connect();
    assert!(
        send::<()>(&mut redis, "SET x y").is_err(),
        "the server refuses to grow"
    );
    assert_eq!(
        decide(&mut redis, "RL.FIXED f 100 36500d")[..3],
        [1, 100, 98]
    );
    assert_eq!(
        decide(&mut redis, "RL.TOKENBUCKET b 100 1/d 98")[..3],
        [1, 100, 1]
    );
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 100 1/d 2")[0], 0);
    assert_eq!(decide(&mut redis, "RL.PEEK f")[2], 98);
    for line in [
        "RL.FIXED new 100 60",
        "RL.TOKENBUCKET new 100 60",
        "RL.TOKENBUCKET b 9007199254740991 1/d",
    ] {
        assert_eq!(
            error(&mut redis, line),
            "OOM command not allowed when used memory > 'maxmemory'."
        );
    }
    assert_eq!(
        decide(&mut redis, "RL.FIXED new 0 60")[0],
        0,
        "what is denied needs no memory"
    );
    assert_eq!(
        decide(&mut redis, "RL.PEEK b")[2],
        1,
        "what was refused took nothing"
    );

    ask::<()>(&mut redis, "CONFIG SET maxmemory 0");
    assert_eq!(decide(&mut redis, "RL.FIXED new 100 60")[0], 1);
}

#[test]
fn a_policy_that_evicts_is_left_to_make_room() {
    let server = full("allkeys-lru");
    let mut redis = server.connect();
    assert_eq!(decide(&mut redis, "RL.FIXED new 100 60")[0], 1);
}
