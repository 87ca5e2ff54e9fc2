use super::traffic::{self, Traffic};
use crate::book::script::{Book, MILLI, MINUTE, MOST, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add(
        "what the window before still counts for",
        "current + previous x the part still covered, as a fraction",
        |s| {
            s.pass(30 * SECOND);
            s.call("RL.SLIDING k 10 1m 10");
            s.pass(30 * SECOND);
            for _ in 0..12 {
                s.call("RL.SLIDING k 10 1m");
                s.pass(5 * SECOND + 1);
            }
        },
    );
    book.add(
        "denied until exactly a fraction is covered",
        "the first millisecond at which the estimate has fallen enough",
        |s| {
            s.pass(59 * SECOND + 1_007);
            s.call("RL.SLIDING k 7 1m 7");
            s.pass(SECOND);
            s.wait_out("RL.SLIDING k 7 1m");
            s.wait_out("RL.SLIDING k 7 1m 2");
            s.wait_out("RL.SLIDING k 7 1m 3");
        },
    );
    book.add("denied within the window of the calls", "the wait goes beyond the end of the window", |s| {
        s.pass(17 * SECOND + 3);
        s.exhaust("RL.SLIDING k 3 1m", 250 * MILLI);
    });
    book.add("the edge of a window", "at the edge all of the window before is still covered", |s| {
        s.pass(MINUTE - 1);
        s.calls(&["RL.SLIDING k 2 1m 2", "RL.SLIDING k 2 1m"]);
        s.pass(1);
        s.calls(&["RL.SLIDING k 2 1m", "RL.PEEK k"]);
        s.pass(MINUTE - 1);
        s.calls(&["RL.SLIDING k 2 1m 0", "RL.SLIDING k 2 1m"]);
        s.pass(1);
        s.calls(&["RL.SLIDING k 2 1m", "RL.PEEK k"]);
    });
    book.add("windows of a millisecond", "parts of it are whole microseconds", |s| {
        s.call("RL.SLIDING k 1000 1ms 1000");
        for micros in [999, 1, 1, 7, 492, 499, 1_000] {
            s.pass(micros);
            s.calls(&["RL.SLIDING k 1000 1ms", "RL.PEEK k 1000"]);
        }
    });
    book.add("a third of a window", "thirds are compared exactly, not as 0.333", |s| {
        s.call("RL.SLIDING k 3 3ms 3");
        s.pass(3 * MILLI);
        for _ in 0..4 {
            s.pass(MILLI - 1);
            s.call("RL.SLIDING k 3 3ms");
            s.pass(1);
            s.call("RL.SLIDING k 3 3ms");
        }
    });
    book.add("limit 0", "nothing is ever allowed, and the use stays", |s| {
        s.calls(&["RL.SLIDING k 0 60", "RL.PEEK k", "RL.SLIDING k 5 60 3", "RL.SLIDING k 0 60", "RL.SLIDING k 5 60 3"]);
    });
    book.add("cost 0, and cost above the limit", "nothing is taken; -1 is never", |s| {
        s.calls(&[
            "RL.SLIDING k 2 60 0",
            "RL.PEEK k",
            "RL.SLIDING k 2 60 3",
            "RL.SLIDING k 2 60 2",
            "RL.SLIDING k 2 60 0",
        ]);
        s.pass(MINUTE + 30 * SECOND);
        s.calls(&["RL.SLIDING k 2 60 0", "RL.SLIDING k 2 60 3", "RL.SLIDING k 2 60 2", "RL.SLIDING k 2 60"]);
    });
    book.add("the largest numbers", "products of 2^53 - 1 and a window of centuries are exact", |s| {
        s.call(&format!("RL.SLIDING k {MOST} 1d {MOST}"));
        s.pass(12 * 60 * MINUTE);
        s.call(&format!("RL.SLIDING k {MOST} 1d"));
        s.pass(1);
        s.call(&format!("RL.SLIDING k {MOST} 1d {}", MOST / 2));
        s.wait_out(&format!("RL.SLIDING k {MOST} 1d {}", MOST / 3));
        s.calls(&[&format!("RL.SLIDING l {MOST} 36500d {MOST}"), &format!("RL.SLIDING l {MOST} 36500d"), "RL.PEEK l"]);
    });
    book.add("idle for a window, and for two", "after two edges nothing counts, and the key is unused", |s| {
        s.pass(10 * SECOND);
        s.call("RL.SLIDING k 5 1m 5");
        for seconds in [49, 1, 30, 29, 1] {
            s.pass(seconds * SECOND);
            s.calls(&["RL.PEEK k", "RL.SLIDING k 5 1m 0"]);
        }
    });
    traffic::add(
        book,
        Traffic {
            name: "traffic",
            command: "RL.SLIDING k",
            policies: &["10 10s", "13 10s", "4 10s", "10 7s"],
            most_cost: 4,
            gap: 4 * SECOND,
            refunds: true,
            debits: false,
        },
    );
}
