use super::traffic::{self, Traffic};
use crate::book::script::{Book, MILLI, MINUTE, MOST, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add("an entry counts for exactly one window", "from its time on, and not a microsecond longer", |s| {
        s.call("RL.SLIDINGLOG k 2 1m");
        s.pass(20 * SECOND + 500);
        s.calls(&["RL.SLIDINGLOG k 2 1m", "RL.SLIDINGLOG k 2 1m"]);
        s.pass(39 * SECOND + 999_499);
        s.call("RL.SLIDINGLOG k 2 1m");
        s.pass(1);
        s.calls(&["RL.SLIDINGLOG k 2 1m", "RL.SLIDINGLOG k 2 1m"]);
        s.pass(20 * SECOND + 499);
        s.call("RL.SLIDINGLOG k 2 1m");
        s.pass(1);
        s.call("RL.SLIDINGLOG k 2 1m");
    });
    book.add("the wait for several entries", "until so many have left that the cost fits, each at its own time", |s| {
        for cost in [1, 3, 2, 1, 3] {
            s.call(&format!("RL.SLIDINGLOG k 10 30s {cost}"));
            s.pass(1_300_007);
        }
        for cost in [1, 2, 4, 5, 6, 7, 10] {
            s.call(&format!("RL.PEEK k {cost}"));
        }
        s.wait_out("RL.SLIDINGLOG k 10 30s 5");
        s.wait_out("RL.SLIDINGLOG k 10 30s 10");
    });
    book.add("no edge around which more passes", "in no stretch of a window more than the limit", |s| {
        s.pass(59 * SECOND);
        for _ in 0..4 {
            s.exhaust("RL.SLIDINGLOG k 3 1m", 900 * MILLI);
        }
    });
    book.add("calls of one microsecond", "share an entry", |s| {
        s.calls(&[
            "RL.SLIDINGLOG k 5 1s 2",
            "RL.SLIDINGLOG k 5 1s 2",
            "RL.SLIDINGLOG k 5 1s 2",
            "RL.SLIDINGLOG k 5 1s",
        ]);
        s.pass(999_999);
        s.call("RL.PEEK k 5");
        s.pass(1);
        s.call("RL.PEEK k 5");
    });
    book.add("windows of a millisecond", "whole microseconds", |s| {
        s.call("RL.SLIDINGLOG k 1 1ms");
        s.pass(999);
        s.call("RL.SLIDINGLOG k 1 1ms");
        s.pass(1);
        s.calls(&["RL.SLIDINGLOG k 1 1ms", "RL.SLIDINGLOG k 1 1.001ms"]);
        s.pass(1_000);
        s.calls(&["RL.PEEK k", "RL.SLIDINGLOG k 1 1ms"]);
    });
    book.add("limit 0, cost 0, and cost above the limit", "nothing is taken; -1 is never", |s| {
        s.calls(&["RL.SLIDINGLOG k 0 60", "RL.SLIDINGLOG k 3 60 0", "RL.PEEK k", "RL.SLIDINGLOG k 3 60 2"]);
        s.calls(&[
            "RL.SLIDINGLOG k 0 60",
            "RL.SLIDINGLOG k 3 60 4",
            "RL.SLIDINGLOG k 3 60 2",
            "RL.SLIDINGLOG k 3 60 0",
        ]);
        s.calls(&["RL.SLIDINGLOG k 3 60", "RL.SLIDINGLOG k 3 60", "RL.SLIDINGLOG k 3 60 0"]);
    });
    book.add("the largest numbers", "sums up to 2^53 - 1 are exact", |s| {
        for cost in [MOST - 2, 2, 1, 1] {
            s.call(&format!("RL.SLIDINGLOG k {MOST} 36500d {cost}"));
            s.pass(MINUTE);
        }
        s.call(&format!("RL.PEEK k {MOST}"));
    });
    book.add("more entries than a small log has", "blocks, sums and a ring change no answer", |s| {
        for call in 0..90_u64 {
            s.call(&format!("RL.SLIDINGLOG k 170 20s {}", 1 + call * 7 % 5));
            s.pass(300_000 + call * 1_001);
        }
        for cost in [1, 10, 100, 170] {
            s.call(&format!("RL.PEEK k {cost}"));
        }
    });
    traffic::add(
        book,
        Traffic {
            name: "traffic",
            command: "RL.SLIDINGLOG k",
            policies: &["10 10s", "14 10s", "4 10s", "10 6s"],
            most_cost: 4,
            gap: 3 * SECOND,
            refunds: true,
            debits: false,
        },
    );
}
