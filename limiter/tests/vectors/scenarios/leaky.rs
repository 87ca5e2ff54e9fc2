use super::traffic::{self, Traffic};
use crate::book::script::{Book, MILLI, MOST, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add("each call waits for its turn", "field 4 of an allowed call is the level before it over the rate", |s| {
        s.calls(&["RL.LEAKY k 5 2", "RL.LEAKY k 5 2", "RL.LEAKY k 5 2 2", "RL.LEAKY k 5 2", "RL.LEAKY k 5 2"]);
        s.pass(250 * MILLI);
        s.calls(&["RL.LEAKY k 5 2", "RL.PEEK k"]);
        s.pass(250 * MILLI);
        s.calls(&["RL.LEAKY k 5 2", "RL.LEAKY k 5 2", "RL.PEEK k 2"]);
    });
    book.add("denied until exactly a place is free", "overflow is denied, and its wait is that for a place", |s| {
        s.exhaust("RL.LEAKY k 3 7/3s", 3_333);
        s.wait_out("RL.LEAKY k 3 7/3s 2");
        s.wait_out("RL.LEAKY k 3 7/3s 3");
    });
    book.add("delays are rounded up", "thirds of a second", |s| {
        s.calls(&["RL.LEAKY k 9 3", "RL.LEAKY k 9 3", "RL.LEAKY k 9 3", "RL.LEAKY k 9 3"]);
        s.pass(1);
        s.call("RL.LEAKY k 9 3");
        s.pass(333_332);
        s.call("RL.LEAKY k 9 3");
    });
    book.add("capacity 0, cost 0, and cost above the capacity", "nothing is taken; -1 is never", |s| {
        s.calls(&["RL.LEAKY k 0 1", "RL.LEAKY k 0 1 0", "RL.LEAKY k 3 1 4", "RL.PEEK k", "RL.LEAKY k 3 1 2"]);
        s.calls(&["RL.LEAKY k 3 1 0", "RL.LEAKY k 0 1", "RL.LEAKY k 3 1 4", "RL.LEAKY k 3 1", "RL.LEAKY k 3 1 0"]);
    });
    book.add("the largest numbers", "delays that no reply can hold are told as 2^53 - 1", |s| {
        s.call(&format!("RL.LEAKY k {MOST} 1 {}", MOST - 1));
        s.call(&format!("RL.LEAKY k {MOST} 1"));
        s.call(&format!("RL.LEAKY k {MOST} 1"));
        s.call(&format!("RL.LEAKY l {MOST} 1000000 {}", MOST - 1));
        s.call(&format!("RL.LEAKY l {MOST} 1000000"));
    });
    book.add("the delay is by the rate of the call", "whatever the remembered rate is", |s| {
        s.calls(&["RL.LEAKY k 10 1 6", "RL.LEAKY k 10 2", "RL.LEAKY k 10 1", "RL.LEAKY k 20 0.5"]);
        s.pass(SECOND);
        s.calls(&["RL.LEAKY k 10 2 0", "RL.LEAKY k 10 4", "RL.PEEK k"]);
    });
    for rate in ["8000", "1000000000/d"] {
        book.add(&format!("no drift at {rate}"), "the level is exact over any number of calls", |s| {
            s.call(&format!("RL.LEAKY k 100 {rate} 100"));
            for gap in 0..30_u64 {
                s.pass(125 + gap * gap % 91);
                s.call(&format!("RL.LEAKY k 100 {rate}"));
            }
        });
    }
    traffic::add(
        book,
        Traffic {
            name: "traffic",
            command: "RL.LEAKY k",
            policies: &["10 3/7s", "14 3/7s", "4 3/7s", "10 1.7"],
            most_cost: 4,
            gap: 6 * SECOND,
            refunds: false,
            debits: false,
        },
    );
}
