//! What a primary's clock that leaps does to the link to its replica: it thinks that it has not heard of the replica for that long.

use redis::Connection;

use crate::support::{HOUR, Options, decide, digest, info, replica_of, wait_for_replicas, wait_until};

fn stat(redis: &mut Connection, field: &str) -> u64 {
    info(redis, "stats", field).and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
fn leaps_break_the_link_which_is_resumed_and_nothing_is_lost() {
    let mut primary = Options::new().with_clock().start();
    let replica = replica_of(&primary, Options::new().with_clock());
    let (mut redis, mut at_replica) = (primary.connect(), replica.connect());
    decide(&mut redis, "RL.TOKENBUCKET b 100 1/30d 60");
    decide(&mut redis, "RL.SLIDINGLOG log 100 3650d 60");
    let (full, partial) = (stat(&mut redis, "sync_full"), stat(&mut redis, "sync_partial_ok"));
    // An acknowledgement that comes in time saves the link, so one leap may not be enough.
    wait_until("the link broke and was resumed", || {
        primary.clock().advance(HOUR);
        stat(&mut redis, "sync_partial_ok") > partial
    });
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 100 1/30d 40")[0], 1);
    wait_for_replicas(&mut redis, 1);
    assert_eq!(stat(&mut redis, "sync_full"), full, "nothing was sent anew");
    assert_eq!(digest(&mut at_replica), digest(&mut redis));
}
