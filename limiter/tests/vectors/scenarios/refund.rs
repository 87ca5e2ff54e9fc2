use crate::book::script::{Book, MILLI, MINUTE, MOST, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add("nothing there", "a missing key and an unused one are null", |s| {
        s.calls(&["RL.REFUND k 1", "RL.REFUND k 0", "RL.REFUND k 1 AGE 5", "RL.FIXED k 5 1s 2"]);
        s.pass(SECOND);
        s.calls(&["RL.REFUND k 1", "RL.TOKENBUCKET l 5 1 2"]);
        s.pass(2 * SECOND);
        s.calls(&["RL.REFUND l 1", "RL.REFUND l 0 AGE 1"]);
    });
    book.add("all is given back", "never beyond unused; then the key is gone", |s| {
        for line in ["FIXED a 5 1m 3", "SLIDING b 5 1m 3", "SLIDINGLOG c 5 1m 3", "TOKENBUCKET d 5 1/m 3"] {
            let key = line.split(' ').nth(1).unwrap();
            s.call(&format!("RL.{line}"));
            s.calls(&[
                &format!("RL.REFUND {key} 2"),
                &format!("RL.REFUND {key} 0"),
                &format!("RL.REFUND {key} {MOST}"),
            ]);
            s.calls(&[&format!("RL.PEEK {key}"), &format!("RL.REFUND {key} 1"), &format!("RL.{line}")]);
        }
    });
    book.add(
        "not for LEAKY and CONCURRENT",
        "their callers have been told their turns, and release their places",
        |s| {
            s.calls(&["RL.LEAKY k 5 1 3", "RL.REFUND k 1", "RL.REFUND k 0", "RL.PEEK k", "RL.CONCURRENT l 5 1m a 3"]);
            s.calls(&["RL.REFUND l 1", "RL.PEEK l"]);
        },
    );
    book.add("fixed window: of the window it was taken in", "what has left by itself is not given back twice", |s| {
        s.pass(50 * SECOND);
        s.call("RL.FIXED k 10 1m 6");
        s.pass(5 * SECOND);
        s.calls(&["RL.REFUND k 1 AGE 5", "RL.REFUND k 1 AGE 55", "RL.REFUND k 1 AGE 55.000001"]);
        s.pass(15 * SECOND);
        s.calls(&["RL.FIXED k 10 1m 3", "RL.REFUND k 2 AGE 20", "RL.REFUND k 2 AGE 10.000001", "RL.REFUND k 2 AGE 10"]);
        s.calls(&["RL.REFUND k 9 AGE 36500d", "RL.REFUND k 9 AGE 0", "RL.PEEK k"]);
    });
    book.add("sliding window: no spilling into another", "to the count of the window in which it was taken", |s| {
        s.pass(50 * SECOND);
        s.call("RL.SLIDING k 10 1m 6");
        s.pass(30 * SECOND);
        s.calls(&["RL.SLIDING k 10 1m 3", "RL.REFUND k 9 AGE 30", "RL.SLIDING k 10 1m 0", "RL.REFUND k 2"]);
        s.calls(&["RL.REFUND k 1 AGE 90", "RL.REFUND k 1 AGE 20", "RL.PEEK k", "RL.FIXED k 1 1m"]);
    });
    book.add(
        "sliding window: part of the window before",
        "each unit given back counts for the part still covered",
        |s| {
            s.call("RL.SLIDING k 9 1m 9");
            s.pass(MINUTE + 20 * SECOND);
            s.calls(&[
                "RL.PEEK k",
                "RL.REFUND k 3 AGE 80",
                "RL.PEEK k 5",
                "RL.REFUND k 3 AGE 20",
                "RL.REFUND k 3 AGE 20.000001",
            ]);
        },
    );
    book.add("log: the oldest first without AGE", "all entries, and at most what they hold", |s| {
        for cost in [3, 2, 4] {
            s.call(&format!("RL.SLIDINGLOG k 10 1m {cost}"));
            s.pass(10 * SECOND);
        }
        s.calls(&["RL.REFUND k 4", "RL.PEEK k 6", "RL.PEEK k 10", "RL.REFUND k 1", "RL.PEEK k"]);
        s.pass(20 * SECOND);
        s.calls(&["RL.REFUND k 1", "RL.PEEK k 9"]);
        s.pass(MINUTE);
        s.call("RL.REFUND k 1");
    });
    book.add("log: the newest no younger than AGE", "entries in the window of the remembered parameters", |s| {
        for cost in [3, 2, 4, 1] {
            s.call(&format!("RL.SLIDINGLOG k 10 1m {cost}"));
            s.pass(10 * SECOND);
        }
        s.calls(&[
            "RL.REFUND k 3 AGE 20",
            "RL.PEEK k 4",
            "RL.PEEK k 10",
            "RL.REFUND k 9 AGE 40.000001",
            "RL.REFUND k 9 AGE 40",
        ]);
        s.calls(&["RL.REFUND k 9 AGE 10", "RL.PEEK k", "RL.REFUND k 1 AGE 0"]);
    });
    book.add("log: what is emptied", "and the newest entry, which decides when all is unused", |s| {
        s.call("RL.SLIDINGLOG k 10 10s 3");
        s.pass(6 * SECOND);
        s.calls(&["RL.SLIDINGLOG k 10 10s 2", "RL.REFUND k 2 AGE 0", "RL.PEEK k 8"]);
        s.pass(3_999_999);
        s.call("RL.PEEK k");
        s.pass(1);
        s.calls(&["RL.PEEK k", "RL.FIXED k 5 1m"]);
    });
    book.add("token bucket: less what was refilled since", "max(0, amount - rate x AGE), exact", |s| {
        s.call("RL.TOKENBUCKET k 100 2 80");
        s.pass(10 * SECOND);
        s.calls(&["RL.PEEK k", "RL.REFUND k 30 AGE 10", "RL.REFUND k 20 AGE 10", "RL.REFUND k 20 AGE 9.999999"]);
        s.calls(&["RL.PEEK k 31", "RL.REFUND k 3 AGE 1ms", "RL.REFUND k 1", "RL.REFUND k 1 AGE 36500d"]);
    });
    book.add("token bucket: fractions", "thirds given back add up", |s| {
        s.call("RL.TOKENBUCKET k 9 1/3s 9");
        s.pass(SECOND);
        s.calls(&[
            "RL.REFUND k 1 AGE 1",
            "RL.REFUND k 1 AGE 1",
            "RL.PEEK k 2",
            "RL.REFUND k 1 AGE 2.000001",
            "RL.PEEK k 2",
        ]);
        s.pass(1);
        s.wait_out("RL.TOKENBUCKET k 9 1/3s 3");
    });
    book.add("of a debt", "the balance rises from below 0", |s| {
        s.calls(&["RL.DEBIT k 10 1 18", "RL.REFUND k 5", "RL.REFUND k 5", "RL.REFUND k 5 AGE 2"]);
        s.pass(SECOND);
        s.calls(&["RL.REFUND k 100 AGE 50", "RL.REFUND k 100 AGE 97", "RL.PEEK k"]);
    });
    book.add("by the remembered parameters", "those of the last call that took something, never capacity 0", |s| {
        s.calls(&[
            "RL.TOKENBUCKET k 10 1 5",
            "RL.TOKENBUCKET k 20 2 1",
            "RL.TOKENBUCKET k 99 9 99",
            "RL.TOKENBUCKET k 0 9",
        ]);
        s.pass(500 * MILLI);
        s.calls(&["RL.REFUND k 2 AGE 250ms", "RL.FIXED l 10 1m 5", "RL.FIXED l 3 1h 1", "RL.REFUND l 1", "RL.PEEK l"]);
    });
}
