//! A replica whose clock differs from its primary's takes over: what it grants earlier than one with the right clock.

use super::history::{Event, Witness};
use super::kind::{Kind, WINDOW};
use crate::support::{NOON, Options, SECOND, ask, replica_of, wait_for_replicas};

/// A unit each 100 ms.
const LIMIT: i64 = 600;
const TICK: i64 = WINDOW / LIMIT;

/// Five seconds before the minute is over, so that a clock ahead is in the next one.
const LATE: i64 = NOON + 54 * SECOND + SECOND / 2;

/// Half of each limiter is used up by one call and the rest 15 s later; then the primary is killed and its replica, whose clock is `offset`
/// ahead, promoted. A minute long, everybody takes what there is, each 100 ms. Returns what each kind has admitted by then, for each time.
fn promoted(began: i64, offset: i64) -> [Vec<i64>; 5] {
    let mut primary = Options::new().with_clock().start();
    primary.clock().set(began - 15 * SECOND);
    let mut redis = primary.connect();
    let mut replica = replica_of(&primary, Options::new().with_clock());
    let mut witnesses = Kind::ALL.map(|kind| Witness::with_limit(kind, LIMIT));
    let key = |witness: &Witness| format!("{:?}", witness.kind);
    for witness in &mut witnesses {
        assert_eq!(witness.call(&mut redis, &key(witness), LIMIT / 2)[0], 1);
    }
    primary.clock().set(began);
    replica.clock().set(began + offset);
    for witness in &mut witnesses {
        witness.events.push(Event::Moved { from: began - 15 * SECOND, to: began });
        witness.exhaust(&mut redis, &key(witness));
        witness.events.push(Event::Moved { from: began, to: began + offset });
    }
    wait_for_replicas(&mut redis, 1);
    primary.kill();
    let mut redis = replica.connect();
    ask::<()>(&mut redis, "REPLICAOF NO ONE");

    let mut admitted = [(); 5].map(|()| vec![0]);
    for tick in 0..=WINDOW / TICK {
        for (witness, admitted) in witnesses.iter_mut().zip(&mut admitted) {
            let (units, denied) = witness.exhaust(&mut redis, &key(witness));
            assert!(denied[3] <= witness.kind.longest_wait(), "{:?}: {} ms", witness.kind, denied[3]);
            admitted.push(admitted[admitted.len() - 1] + units);
            let from = began + offset + tick * TICK;
            witness.events.push(Event::Moved { from, to: from + TICK });
        }
        replica.clock().advance(TICK);
    }
    witnesses.iter().for_each(Witness::assert_kept);
    admitted
}

/// By how much one series is ahead of another where it is so most.
fn most_ahead(admitted: &[i64], right: &[i64]) -> i64 {
    admitted.iter().zip(right).map(|(admitted, right)| admitted - right).max().unwrap()
}

#[test]
fn a_replica_whose_clock_is_ten_seconds_off_grants_at_most_what_ten_seconds_bring() {
    println!("Limit {LIMIT} a minute. Units admitted at once by the promoted replica, and the most by which it is");
    println!("ahead of one with the right clock within a minute:");
    println!(
        "{:34} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "clock", "FIXED", "SLIDING", "SLIDINGLOG", "TOKENBUCKET", "LEAKY"
    );
    for (when, began) in [("", NOON + 20 * SECOND), (", the minute ends in 5 s", LATE)] {
        let right = promoted(began, 0);
        for (clock, offset) in [("10 s behind", -10 * SECOND), ("10 s ahead", 10 * SECOND)] {
            let admitted = promoted(began, offset);
            let extra = [0, 1, 2, 3, 4].map(|kind| most_ahead(&admitted[kind], &right[kind]));
            let cells =
                [0, 1, 2, 3, 4].map(|kind| format!("{:>12}", format!("{} / {}", admitted[kind][1], extra[kind])));
            println!("{:34} {}", format!("{clock}{when}"), cells.join(" "));
            let ten_seconds = LIMIT / 6;
            let most = match offset {
                // What was used stays used, and comes back later.
                ..0 => [0; 5],
                // Fixed window: the next window, ten seconds early. Log: what was taken within ten seconds leaves so much earlier.
                _ => [LIMIT, ten_seconds, LIMIT / 2, ten_seconds, ten_seconds],
            };
            assert!(
                extra.iter().zip(most).all(|(&extra, most)| extra <= most),
                "{clock}{when}: {extra:?}, at most {most:?}"
            );
        }
    }
}
