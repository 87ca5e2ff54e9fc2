//! Other commands on a key with leases, clocks that step, and traffic.

use crate::book::script::{Book, HOUR, MILLI, MINUTE, SECOND};
use crate::sequence::Random;

pub fn scenarios(book: &mut Book) {
    book.add("refunds beside leases", "rule 1: what is in rows is not given back", |s| {
        s.calls(&["RL.TOKENBUCKET k 20 1 10", "RL.LEASE k 20 1 a 1 0 5 1m MIN 5", "RL.REFUND k 2", "RL.REFUND k 100"]);
        s.calls(&["RL.TOKENBUCKET k 20 1 6", "RL.REFUND k 10 AGE 8", "RL.REFUND k 10 AGE 10", "RL.REFUND k 0"]);
    });
    book.add("debts beside leases", "whole tokens, down to a balance of minus the capacity", |s| {
        s.calls(&["RL.LEASE k 10 1 a 1 0 4 5s MIN 4", "RL.DEBIT k 10 1 9", "RL.DEBIT k 10 1 99", "RL.PEEK k"]);
        s.calls(&["RL.LEASE k 10 1 a 2 4 9 5s", "RL.LEASE k 10 1 b 1 0 9 5s", "RL.TOKENBUCKET k 10 1"]);
        s.pass(7 * SECOND);
        s.calls(&["RL.PEEK k", "RL.DEBIT k 10 1 3", "RL.LEASE k 10 1 a 3 0 9 5s"]);
    });
    book.add("several limits, one with leases", "a bucket with rows denies and takes as any", |s| {
        s.calls(&["RL.LEASE k 10 1 a 1 0 6 10s MIN 6", "RL.MULTI k TOKENBUCKET 10 1 3 f FIXED 4 1m 1"]);
        s.calls(&["RL.MULTI k TOKENBUCKET 10 1 3 f FIXED 4 1m 1", "RL.MULTI k TOKENBUCKET 10 1 1 f FIXED 4 1m 4"]);
        s.calls(&["RL.MULTI f FIXED 4 1m 1 k TOKENBUCKET 10 1 1", "RL.MULTI f FIXED 4 1m 0 k TOKENBUCKET 10 1 0"]);
        s.pass(10 * SECOND);
        s.calls(&[
            "RL.MULTI f FIXED 4 1m 1 k TOKENBUCKET 10 1 5",
            "RL.MULTI f FIXED 4 1m 0 k LEAKY 10 1 5",
            "RL.PEEK f",
        ]);
    });
    book.add("parameters that change beside leases", "what is free is cut only to a smaller capacity", |s| {
        s.calls(&["RL.LEASE k 10 1 a 1 0 4 1m MIN 4", "RL.TOKENBUCKET k 20 1 2", "RL.LEASE k 20 2 b 1 0 4 1m"]);
        s.pass(1_500 * MILLI);
        s.calls(&[
            "RL.LEASE k 8 1/3s b 2 4 6 1m",
            "RL.PEEK k",
            "RL.TOKENBUCKET k 8 1/7s 1",
            "RL.TOKENBUCKET k 30 1/7s 1",
        ]);
        s.pass(7 * SECOND);
        s.calls(&["RL.LEASE k 30 1 a 2 0 20 1m", "RL.PEEK k 20"]);
    });
    book.add(
        "the clock goes back",
        "rows end no later than their ttl from the new now, and nothing is refilled",
        |s| {
            s.calls(&["RL.LEASE k 10 1 a 1 0 4 10s MIN 4", "RL.LEASE k 10 1 b 1 0 2 1m", "RL.TOKENBUCKET k 10 1 2"]);
            s.step_back(HOUR);
            s.calls(&[
                "RL.PEEK k",
                "RL.LEASE k 10 1 a 1 0 4 10s",
                "RL.TOKENBUCKET k 10 1 9",
                "RL.LEASE k 10 1 a 2 4 4 5s",
            ]);
            s.pass(9_999 * MILLI);
            s.calls(&["RL.PEEK k", "RL.LEASE k 10 1 c 1 0 0 5s"]);
            s.pass(MILLI);
            s.calls(&["RL.PEEK k", "RL.LEASE k 10 1 a 3 4 4 5s", "RL.LEASE k 10 1 b 2 1 2 1m"]);
        },
    );
    book.add("the clock goes ahead", "as if that time had passed: rows are forfeited", |s| {
        s.calls(&["RL.LEASE k 10 1/h a 1 0 4 10s MIN 4", "RL.LEASE k 10 1/h b 1 0 6 1h MIN 6"]);
        s.pass(MINUTE);
        s.calls(&["RL.LEASE k 10 1/h a 2 4 4 10s", "RL.TOKENBUCKET k 10 1/h"]);
        s.step_back(50 * SECOND);
        s.calls(&["RL.LEASE k 10 1/h a 3 4 4 10s", "RL.PEEK k"]);
    });
    for (seed, changes, steps) in [(1, false, false), (2, true, false), (3, false, true), (4, true, true)] {
        book.add(&format!("traffic {seed}"), "nodes and direct callers, that follow no plan", |s| {
            let mut random = Random(seed);
            let mut seq = 0;
            for _ in 0..80 {
                if steps && random.one_in(9) && s.may_step_back() {
                    s.step_back(random.any_size(9 * SECOND));
                }
                s.pass(random.any_size(3 * SECOND));
                let bucket = match random.below(10) {
                    0 if changes => "30 3/7s",
                    1 if changes => "9 2",
                    2 if changes => "20 1.7",
                    3 if changes => "0 2",
                    _ => "20 2",
                };
                let (have, want) = (random.below(9), random.below(14));
                seq += u64::from(!random.one_in(7));
                let node = random.pick(&["a", "b", "c", "a-node-with-a-longer-name"]);
                let ttl = random.pick(&["10s", "2500ms", "1", "30"]);
                let min = if random.one_in(3) { format!(" MIN {}", random.below(9)) } else { String::new() };
                match random.below(10) {
                    0 => s.call(&format!("RL.TOKENBUCKET k {bucket} {have}")),
                    1 => s.call(&format!("RL.PEEK k {want}")),
                    2 => s.call(&format!("RL.REFUND k {have} AGE {}ms", random.below(4_000))),
                    3 => s.call(&format!("RL.DEBIT k {bucket} {have}")),
                    _ => s.call(&format!("RL.LEASE k {bucket} {node} {} {have} {want} {ttl}{min}", seq.max(1))),
                };
            }
        });
    }
}
