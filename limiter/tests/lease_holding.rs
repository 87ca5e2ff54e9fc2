//! A node's duties, one by one: breaking any of them could admit tokens that somebody else has.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use rl_limiter::lease::{Holding, Statement};

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A node that asked at 0 for 10 and got them, for a second.
fn holding_10() -> Holding {
    let mut node = Holding::new();
    assert_eq!(node.ask(at(0), 10), Statement { seq: 1, have: 0, want: 10 });
    assert!(node.hear(1, 10, 1_000));
    node
}

#[test]
fn what_it_holds_may_be_spent_once() {
    let mut node = holding_10();
    assert!(node.spend(at(1), 4) && node.spend(at(1), 6) && !node.spend(at(1), 1));
    assert!(node.spend(at(1), 0));
    assert_eq!(node.left(at(1)), 0);
}

#[test]
fn it_stops_at_99_hundredths_of_the_ttl_from_when_it_asked() {
    let mut node = Holding::new();
    node.ask(at(5_000), 10);
    assert_eq!(node.left(at(5_000)), 0, "nothing before the answer");
    // However late the answer comes.
    assert!(node.hear(1, 10, 1_000));
    assert_eq!(node.deadline(), at(5_990));
    let last = at(5_990) - Duration::from_nanos(1);
    assert_eq!((node.left(last), node.left(at(5_990))), (10, 0));
    assert!(!node.spend(at(5_990), 1));
    assert_eq!(node.ask(at(5_990), 7).have, 0, "what it may not spend it does not have");
}

#[test]
fn the_end_that_it_had_stays_until_it_is_told_another() {
    let mut node = holding_10();
    assert_eq!(node.ask(at(900), 10), Statement { seq: 2, have: 10, want: 10 });
    assert_eq!((node.left(at(989)), node.left(at(990))), (10, 0));
    assert!(node.hear(2, 10, 1_000));
    assert_eq!((node.left(at(1_889)), node.left(at(1_890))), (10, 0));
}

#[test]
fn only_the_first_answer_to_the_newest_call_counts() {
    let mut node = holding_10();
    assert!(!node.hear(1, 10, 9_000), "a second time");
    node.ask(at(10), 20);
    assert_eq!(node.ask(at(20), 30), Statement { seq: 3, have: 10, want: 30 });
    assert!(node.is_asking());
    assert!(!node.hear(2, 20, 9_000), "an older call");
    assert!(!node.hear(4, 20, 9_000), "no call");
    assert_eq!((node.left(at(30)), node.deadline()), (10, at(990)));
    assert!(node.is_asking() && node.hear(3, 30, 1_000) && !node.is_asking());
    assert_eq!(node.left(at(30)), 30);
}

#[test]
fn what_it_spent_since_it_asked_is_gone() {
    let mut node = holding_10();
    assert!(node.spend(at(1), 2));
    assert_eq!(node.ask(at(2), 20).have, 8);
    assert!(node.spend(at(3), 5));
    assert!(node.hear(2, 20, 1_000));
    assert_eq!(node.left(at(4)), 15, "the 2 were told, the 5 were not");
    // As much as it has, if the server forgot it.
    node.ask(at(5), 20);
    assert!(node.spend(at(6), 9));
    assert!(node.hear(3, 4, 1_000));
    assert_eq!(node.left(at(7)), 0);
}

#[test]
fn what_exceeds_its_wish_is_no_longer_its_own() {
    let mut node = holding_10();
    assert_eq!(node.ask(at(1), 3), Statement { seq: 2, have: 10, want: 3 });
    assert_eq!(node.left(at(1)), 3);
    assert!(!node.spend(at(1), 4));
    // The answer is lost: what it gave up stays so.
    assert_eq!(node.ask(at(2), 10), Statement { seq: 3, have: 3, want: 10 });
    assert_eq!(node.ask(at(2), 0), Statement { seq: 4, have: 3, want: 0 });
    assert_eq!(node.left(at(2)), 0);
}
