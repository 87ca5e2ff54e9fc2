use super::traffic::{self, Traffic};
use crate::book::script::{Book, HOUR, MILLI, MINUTE, MOST, SECOND};
use crate::sequence::Random;

pub fn scenarios(book: &mut Book) {
    book.add("a burst, then the rate", "starts full, and is denied until exactly a unit is back", |s| {
        s.exhaust("RL.TOKENBUCKET k 3 1", 4_321);
        s.wait_out("RL.TOKENBUCKET k 3 1");
        s.wait_out("RL.TOKENBUCKET k 3 1 2");
        s.wait_out("RL.TOKENBUCKET k 3 1 3");
    });
    book.add("refill is continuous", "parts of a unit count, though remaining is rounded down", |s| {
        s.call("RL.TOKENBUCKET k 10 100/m 10");
        for _ in 0..8 {
            s.pass(599_999);
            s.call("RL.PEEK k");
            s.pass(1);
            s.call("RL.PEEK k");
        }
    });
    book.add("refill stops at the capacity", "a quiet spell saves up no more than a burst", |s| {
        s.call("RL.TOKENBUCKET k 5 1 2");
        s.pass(HOUR);
        s.calls(&["RL.PEEK k", "RL.TOKENBUCKET k 5 1 5", "RL.TOKENBUCKET k 5 1"]);
    });
    for (rate, gap, why) in [
        ("8000", 125, "one unit is 125 microseconds"),
        ("1000000000/d", 86, "one unit is 86.4 microseconds"),
        ("3/7", 777_777, "sevenths of a unit are kept"),
        ("0.3", 1_111_111, "a decimal fraction is a fraction, not a double"),
        ("1/36500d", 36_000_000_007, "one unit in a century"),
        ("999999999999999", 1, "more than a thousand million units a microsecond"),
    ] {
        book.add(&format!("no drift at {rate}"), why, |s| {
            let mut random = Random(gap);
            let burst = if rate == "999999999999999" { 3_000_000_000_u64 } else { 20 };
            s.call(&format!("RL.TOKENBUCKET k {burst} {rate} {burst}"));
            for _ in 0..30 {
                s.pass(gap * random.below(9) + random.below(3));
                // All that is there, so a fraction that gets lost shows.
                let there = s.call("RL.PEEK k").remaining();
                if there > 0 && random.one_in(2) {
                    s.call(&format!("RL.TOKENBUCKET k {burst} {rate} {there}"));
                }
            }
            s.call(&format!("RL.TOKENBUCKET k {burst} {rate} {burst}"));
        });
    }
    book.add("a call for each unit at 8000 a second", "every 125 microseconds one is allowed, 124 are too few", |s| {
        s.call("RL.TOKENBUCKET k 10 8000 10");
        for _ in 0..40 {
            s.pass(124);
            s.call("RL.TOKENBUCKET k 10 8000");
            s.pass(1);
            s.call("RL.TOKENBUCKET k 10 8000");
        }
    });
    book.add("a call for each unit at a billion a day", "five units are 432 microseconds", |s| {
        s.call("RL.TOKENBUCKET k 1000 1000000000/d 1000");
        for micros in [86, 1, 86, 86, 87, 86, 431, 1, 432, 432, 431, 433] {
            s.pass(micros);
            s.calls(&["RL.TOKENBUCKET k 1000 1000000000/d", "RL.TOKENBUCKET k 1000 1000000000/d 5"]);
        }
        s.pass(86_400 * SECOND / 1_000_000);
        s.call("RL.PEEK k 1000");
    });
    book.add("capacity 0", "nothing is ever allowed, the use stays, and 0 is not remembered", |s| {
        s.calls(&[
            "RL.TOKENBUCKET k 0 1",
            "RL.PEEK k",
            "RL.TOKENBUCKET k 5 1/m 3",
            "RL.TOKENBUCKET k 0 1/m",
            "RL.PEEK k",
        ]);
        s.calls(&["RL.TOKENBUCKET k 5 1/m 3", "RL.TOKENBUCKET k 5 1/m 2"]);
    });
    book.add("cost 0, and cost above the capacity", "nothing is taken; -1 is never", |s| {
        s.calls(&["RL.TOKENBUCKET k 5 1 0", "RL.PEEK k", "RL.TOKENBUCKET k 5 1 6", "RL.TOKENBUCKET k 5 1 5"]);
        s.calls(&["RL.TOKENBUCKET k 5 1 0", "RL.TOKENBUCKET k 5 1 6", "RL.PEEK k 6", "RL.PEEK k 0"]);
    });
    book.add("the largest capacity", "no overflow and no rounding at 2^53 - 1", |s| {
        s.call(&format!("RL.TOKENBUCKET k {MOST} 1 {MOST}"));
        s.call(&format!("RL.TOKENBUCKET k {MOST} 1"));
        s.pass(SECOND);
        s.calls(&[&format!("RL.TOKENBUCKET k {MOST} 1"), &format!("RL.TOKENBUCKET k {MOST} 1 {MOST}")]);
    });
    book.add("times that no reply can hold", "they are told as 2^53 - 1", |s| {
        s.call(&format!("RL.TOKENBUCKET k {MOST} 1/36500d {MOST}"));
        s.calls(&[&format!("RL.TOKENBUCKET k {MOST} 1/36500d"), &format!("RL.TOKENBUCKET k {MOST} 1/36500d {MOST}")]);
    });
    book.add("the slowest and the fastest rate", "terms of 2^63 at most", |s| {
        s.calls(&["RL.TOKENBUCKET k 1 0.00000000000000001/36500d", "RL.TOKENBUCKET k 1 0.000001/36500d"]);
        s.call("RL.TOKENBUCKET k 1 0.000001/36500d");
        s.call("RL.TOKENBUCKET l 10 999999999999999/1ms 10");
        s.pass(1);
        s.call("RL.PEEK l");
    });
    book.add("the same rate in other words", "100/m is 100/60 is 5/3s; so nothing has changed", |s| {
        for rate in ["100/m", "100/60", "5/3s", "100/1m", "6000/h", "10/6s", "0.01/6ms"] {
            s.call(&format!("RL.TOKENBUCKET k 10 {rate}"));
            s.pass(7_001);
        }
    });
    book.add("unused to the microsecond", "a peek is null from the moment on at which all is back", |s| {
        s.call("RL.TOKENBUCKET k 4 3 2");
        s.pass(666_666);
        s.call("RL.PEEK k");
        s.pass(1);
        s.calls(&["RL.PEEK k", "RL.TOKENBUCKET k 4 3 0"]);
    });
    book.add("waits are rounded up", "two thirds of a second are 667 ms", |s| {
        s.call("RL.TOKENBUCKET k 1 3/2s");
        s.pass(MILLI / 2);
        s.wait_out("RL.TOKENBUCKET k 1 3/2s");
        s.pass(MINUTE);
        s.calls(&["RL.TOKENBUCKET k 1 1000000/7ms", "RL.TOKENBUCKET k 1 1000000/7ms"]);
    });
    traffic::add(
        book,
        Traffic {
            name: "traffic",
            command: "RL.TOKENBUCKET k",
            policies: &["10 3/7s", "14 3/7s", "4 3/7s", "10 1.7"],
            most_cost: 4,
            gap: 6 * SECOND,
            refunds: true,
            debits: true,
        },
    );
}
