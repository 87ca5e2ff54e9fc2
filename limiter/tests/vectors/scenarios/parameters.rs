use crate::book::script::{Book, HOUR, MILLI, MINUTE, SECOND};

pub fn scenarios(book: &mut Book) {
    for (command, first, raised, lowered) in [
        ("RL.FIXED k", "10 1m", "15 1m", "4 1m"),
        ("RL.SLIDING k", "10 1m", "15 1m", "4 1m"),
        ("RL.SLIDINGLOG k", "10 1m", "15 1m", "4 1m"),
        ("RL.TOKENBUCKET k", "10 10/m", "15 10/m", "4 10/m"),
        ("RL.LEAKY k", "10 10/m", "15 10/m", "4 10/m"),
    ] {
        book.add(&format!("{} raised", &command[..command.len() - 2]), "the difference is free at once", |s| {
            s.calls(&[&format!("{command} {first} 8"), &format!("{command} {raised} 0")]);
            s.pass(SECOND);
            s.calls(&[&format!("{command} {raised} 7"), &format!("{command} {raised}"), "RL.PEEK k"]);
            s.wait_out(&format!("{command} {raised} 3"));
        });
        book.add(
            &format!("{} lowered", &command[..command.len() - 2]),
            "used is cut to the new limit, a log never",
            |s| {
                s.pass(20 * SECOND);
                s.calls(&[&format!("{command} {first} 8"), &format!("{command} {lowered} 0"), "RL.PEEK k"]);
                s.pass(SECOND + 1);
                s.calls(&[&format!("{command} {lowered}"), &format!("{command} {first} 0"), "RL.PEEK k"]);
                s.wait_out(&format!("{command} {lowered} 1"));
                s.calls(&[&format!("{command} {first} 0"), "RL.PEEK k"]);
            },
        );
        book.add(
            &format!("{} to 0 and back", &command[..command.len() - 2]),
            "0 cuts nothing and is not remembered",
            |s| {
                let zero = format!("0 {}", first.split(' ').nth(1).unwrap());
                s.calls(&[
                    &format!("{command} {first} 8"),
                    &format!("{command} {zero}"),
                    &format!("{command} {first} 0"),
                    "RL.PEEK k",
                ]);
                s.pass(6 * SECOND);
                s.calls(&[
                    &format!("{command} {zero} 0"),
                    &format!("{command} {first} 3"),
                    &format!("{command} {first} 2"),
                ]);
            },
        );
    }
    book.add("two callers who disagree", "one key, one policy: the laxest wins", |s| {
        for (key, strict, lax) in [
            ("a", "RL.FIXED a 3 1m", "RL.FIXED a 5 1m"),
            ("b", "RL.SLIDING b 3 1m", "RL.SLIDING b 5 1m"),
            ("c", "RL.SLIDINGLOG c 3 1m", "RL.SLIDINGLOG c 5 1m"),
            ("d", "RL.TOKENBUCKET d 3 3/m", "RL.TOKENBUCKET d 5 5/m"),
            ("e", "RL.LEAKY e 3 3/m", "RL.LEAKY e 5 5/m"),
        ] {
            for _ in 0..4 {
                s.calls(&[strict, lax]);
                s.pass(700 * MILLI);
            }
            s.call(&format!("RL.PEEK {key}"));
        }
    });
    book.add("fixed window, another window", "the count moves to the new window that holds the last time", |s| {
        s.pass(MINUTE + 50 * SECOND);
        s.calls(&["RL.FIXED k 10 1m 6", "RL.FIXED k 10 1h 0"]);
        s.pass(20 * SECOND);
        s.calls(&["RL.FIXED k 10 1h 0", "RL.FIXED k 10 1m 0", "RL.FIXED l 10 1h 6"]);
        s.pass(5 * SECOND);
        s.calls(&["RL.FIXED l 10 10s 0", "RL.FIXED l 10 10s 5"]);
        s.pass(4_999 * MILLI);
        s.wait_out("RL.FIXED l 10 10s 6");
        s.calls(&["RL.FIXED l 10 1h 0", "RL.FIXED l 10 7s 0", "RL.FIXED l 3 1h 0", "RL.FIXED l 3 1h"]);
    });
    book.add(
        "a wait is the shorter one",
        "of that by the new window and the end of all use by the remembered one",
        |s| {
            s.pass(59 * SECOND);
            s.calls(&[
                "RL.FIXED a 5 1m 5",
                "RL.SLIDINGLOG c 5 2s 5",
                "RL.TOKENBUCKET d 5 5/2s 5",
                "RL.SLIDING b 5 2s 5",
            ]);
            s.calls(&["RL.FIXED a 5 1d", "RL.SLIDINGLOG c 5 1h", "RL.TOKENBUCKET d 5 5/h", "RL.SLIDING b 5 1d"]);
            s.pass(SECOND - 1);
            s.calls(&["RL.FIXED a 5 1d", "RL.SLIDINGLOG c 5 1h", "RL.TOKENBUCKET d 5 5/h", "RL.SLIDING b 5 1d"]);
            s.pass(1);
            s.calls(&["RL.FIXED a 5 1d", "RL.SLIDINGLOG c 5 1h", "RL.TOKENBUCKET d 5 5/h", "RL.SLIDING b 5 1d"]);
            s.pass(SECOND);
            s.calls(&["RL.SLIDINGLOG c 5 1h", "RL.TOKENBUCKET d 5 5/h", "RL.SLIDING b 5 1d"]);
            s.pass(SECOND);
            s.call("RL.SLIDING b 5 1d");
        },
    );
    book.add("sliding window, another window", "the estimate, rounded up, becomes the count of the new window", |s| {
        s.call("RL.SLIDING k 10 1m 7");
        s.pass(MINUTE + 13 * SECOND);
        s.calls(&[
            "RL.SLIDING k 10 1m 2",
            "RL.PEEK k",
            "RL.SLIDING k 10 50s 0",
            "RL.SLIDING k 10 7m 0",
            "RL.SLIDING k 5 50s 0",
        ]);
        s.pass(20 * SECOND);
        s.calls(&["RL.SLIDING k 10 50s 0", "RL.SLIDING k 10 50s", "RL.SLIDING k 10 1m 0"]);
        s.wait_out("RL.SLIDING k 10 1m 4");
    });
    book.add("log, another window", "entries are judged by the window of the call", |s| {
        for _ in 0..5 {
            s.call("RL.SLIDINGLOG k 10 1m 2");
            s.pass(10 * SECOND);
        }
        s.calls(&[
            "RL.SLIDINGLOG k 10 25s 0",
            "RL.SLIDINGLOG k 10 1h 0",
            "RL.SLIDINGLOG k 10 1h",
            "RL.SLIDINGLOG k 10 25s 4",
        ]);
        s.calls(&["RL.PEEK k", "RL.SLIDINGLOG k 10 1m 0", "RL.SLIDINGLOG k 10 1m 5"]);
        s.pass(20 * SECOND);
        s.calls(&["RL.SLIDINGLOG k 10 1h 0", "RL.SLIDINGLOG k 2 1h", "RL.SLIDINGLOG k 2 1m"]);
        s.pass(5 * SECOND);
        s.calls(&["RL.SLIDINGLOG k 10 1h 0", "RL.PEEK k"]);
    });
    book.add(
        "bucket, another rate",
        "all time since the last call that took something counts at the rate of the call",
        |s| {
            s.call("RL.TOKENBUCKET k 10 1 10");
            s.pass(2 * SECOND);
            s.calls(&[
                "RL.TOKENBUCKET k 10 2 0",
                "RL.TOKENBUCKET k 10 1/3s 0",
                "RL.TOKENBUCKET k 10 2 1",
                "RL.TOKENBUCKET k 10 1 0",
            ]);
            s.pass(2 * SECOND);
            s.calls(&["RL.TOKENBUCKET k 10 1/3s 0", "RL.TOKENBUCKET k 10 1/3s 0", "RL.TOKENBUCKET k 10 1 1"]);
            s.wait_out("RL.TOKENBUCKET k 10 1/3s 5");
        },
    );
    book.add(
        "bucket, a part of a unit of another rate",
        "rounded up, so that a unit is back a microsecond later and not earlier",
        |s| {
            s.call("RL.TOKENBUCKET k 10 1/3s 10");
            s.pass(3 * SECOND + 1);
            s.call("RL.TOKENBUCKET k 10 1/3s");
            s.pass(7 * SECOND - 3);
            s.call("RL.TOKENBUCKET k 10 1/7s 0");
            s.pass(1);
            s.calls(&["RL.TOKENBUCKET k 10 1/7s 0", "RL.TOKENBUCKET k 10 1/7s"]);
        },
    );
    book.add("bucket, fractions of another rate", "rounded against the caller by less than one unit", |s| {
        s.call("RL.TOKENBUCKET k 10 1/3s 10");
        s.pass(1_000_003);
        s.calls(&["RL.TOKENBUCKET k 10 1/7s 0", "RL.TOKENBUCKET k 10 1/7s"]);
        s.pass(7 * SECOND);
        s.calls(&["RL.TOKENBUCKET k 10 1/7s", "RL.TOKENBUCKET k 10 1/11s 0", "RL.TOKENBUCKET k 10 3/11s 0"]);
        s.pass(1_000_001);
        s.wait_out("RL.TOKENBUCKET k 10 1/11s");
        s.pass(HOUR);
        s.call("RL.PEEK k");
    });
}
