use crate::book::script::{Book, DAY, HOUR, MILLI, MINUTE, SECOND};

const CALLS: [(&str, &str); 5] = [
    ("RL.FIXED", "10 1m"),
    ("RL.SLIDING", "10 1m"),
    ("RL.SLIDINGLOG", "10 1m"),
    ("RL.TOKENBUCKET", "10 10/m"),
    ("RL.LEAKY", "10 10/m"),
];

pub fn scenarios(book: &mut Book) {
    for (command, policy) in CALLS {
        let call = |cost: u64| format!("{command} k {policy} {cost}");
        book.add(&format!("{command}: back by an hour"), "used stays used, as if it were used now", |s| {
            s.pass(30 * SECOND);
            s.call(&call(10));
            s.step_back(HOUR);
            s.calls(&["RL.PEEK k", &call(1), "RL.PEEK k"]);
            s.wait_out(&call(1));
            s.wait_out(&call(10));
        });
        book.add(
            &format!("{command}: back by a day"),
            "nobody is locked out longer than one full refill or two windows",
            |s| {
                s.pass(7 * SECOND);
                s.calls(&[&call(6), &call(6)]);
                s.step_back(DAY);
                s.calls(&[&call(4), &call(1)]);
                s.pass(MINUTE);
                s.calls(&[&call(1), &call(5)]);
                s.pass(MINUTE);
                s.calls(&["RL.PEEK k", &call(10)]);
            },
        );
        book.add(
            &format!("{command}: back by a little, again and again"),
            "each step costs at most its own length",
            |s| {
                s.pass(20 * SECOND);
                s.call(&call(10));
                for _ in 0..6 {
                    s.step_back(3 * SECOND);
                    s.call(&call(1));
                    s.pass(5 * SECOND + 77);
                    s.call(&call(1));
                }
            },
        );
        book.add(
            &format!("{command}: back within the window"),
            "the stamp moves, and what is later counts as now",
            |s| {
                s.pass(40 * SECOND);
                s.call(&call(3));
                s.pass(10 * SECOND);
                s.call(&call(3));
                s.step_back(15 * SECOND);
                s.calls(&[&call(0), &call(2), "RL.PEEK k 3"]);
                s.pass(25 * SECOND);
                s.calls(&["RL.PEEK k 5", &call(5)]);
            },
        );
        book.add(
            &format!("{command}: cost 0 and looks write nothing"),
            "when the clock comes back nothing has happened",
            |s| {
                s.pass(45 * SECOND);
                s.call(&call(10));
                s.step_back(20 * SECOND);
                s.calls(&["RL.PEEK k", &call(0), &call(0)]);
                s.pass(20 * SECOND);
                s.calls(&["RL.PEEK k", &call(1)]);
            },
        );
        book.add(
            &format!("{command}: a denied call moves the stamp"),
            "so the way back ahead is time that passes",
            |s| {
                s.pass(45 * SECOND);
                s.call(&call(10));
                s.step_back(20 * SECOND);
                s.calls(&[&call(1), &call(11)]);
                s.pass(20 * SECOND);
                s.calls(&["RL.PEEK k", &call(3), &call(1)]);
            },
        );
        book.add(&format!("{command}: ahead"), "as if that time had passed", |s| {
            s.call(&call(10));
            s.pass(36_500 * DAY);
            s.calls(&["RL.PEEK k", &call(10), &call(1)]);
        });
        book.add(&format!("{command}: ahead, used there, and back"), "what was used ahead is used now", |s| {
            s.call(&call(2));
            s.pass(DAY);
            s.call(&call(9));
            s.step_back(DAY - MILLI);
            s.calls(&["RL.PEEK k", &call(1), &call(1)]);
            s.pass(2 * MINUTE);
            s.call("RL.PEEK k");
        });
        book.add(&format!("{command}: other parameters while the clock is back"), "both rules hold at once", |s| {
            s.pass(50 * SECOND);
            s.call(&call(9));
            s.step_back(MINUTE);
            let [lower, longer] = match policy.ends_with("1m") {
                true => ["4 1m", "10 7m"],
                false => ["4 10/m", "10 10/7m"],
            };
            s.calls(&[
                &format!("{command} k {lower} 0"),
                &format!("{command} k {longer} 0"),
                &format!("{command} k {longer} 2"),
            ]);
            s.calls(&["RL.PEEK k", &format!("{command} k {lower} 1"), &format!("{command} k {longer} 1"), "RL.PEEK k"]);
        });
    }
    book.add("refunds and debts while the clock is back", "what is given counts from the new now", |s| {
        for (key, call) in
            [("a", "RL.FIXED a 10 1m 8"), ("b", "RL.SLIDING b 10 1m 8"), ("c", "RL.SLIDINGLOG c 10 1m 8")]
        {
            s.call(call);
            s.pass(SECOND);
            s.call(&format!("RL.PEEK {key}"));
        }
        s.calls(&["RL.TOKENBUCKET d 10 10/m 8", "RL.DEBIT e 10 10/m 8"]);
        s.step_back(10 * SECOND);
        for key in ["a", "b", "c", "d", "e"] {
            s.calls(&[
                &format!("RL.REFUND {key} 0"),
                &format!("RL.REFUND {key} 2 AGE 5"),
                &format!("RL.REFUND {key} 2"),
            ]);
        }
        s.calls(&["RL.DEBIT d 10 10/m 1", "RL.DEBIT e 10 10/m 20", "RL.DEBIT e 10 10/m 1"]);
        s.pass(10 * SECOND);
        for key in ["a", "b", "c", "d", "e"] {
            s.call(&format!("RL.PEEK {key} 5"));
        }
    });
    book.add("a single unit while the clock is back", "a denied call moves it to now too", |s| {
        for (command, policy) in CALLS {
            let key = command.to_lowercase();
            let policy = policy.replace("10", "1");
            s.call(&format!("{command} {key} {policy}"));
        }
        s.step_back(20 * SECOND);
        for _ in 0..4 {
            for (command, policy) in CALLS {
                let key = command.to_lowercase();
                let policy = policy.replace("10", "1");
                s.call(&format!("{command} {key} {policy}"));
            }
            s.pass(20 * SECOND);
        }
    });
    book.add("several limits while the clock is back", "each with a cost moves to now, whatever the others say", |s| {
        s.pass(30 * SECOND);
        s.call(
            "RL.MULTI a FIXED 10 1m 8 b SLIDINGLOG 10 1m 8 c TOKENBUCKET 10 10/m 8 d LEAKY 10 10/m 8 e SLIDING 10 1m 8",
        );
        s.step_back(10 * SECOND);
        s.call(
            "RL.MULTI a FIXED 10 1m 1 b SLIDINGLOG 10 1m 1 c TOKENBUCKET 10 10/m 0 d LEAKY 10 10/m 5 e SLIDING 10 1m 0",
        );
        s.pass(6 * SECOND);
        s.call(
            "RL.MULTI a FIXED 10 1m 0 b SLIDINGLOG 10 1m 0 c TOKENBUCKET 10 10/m 0 d LEAKY 10 10/m 0 e SLIDING 10 1m 0",
        );
        s.call(
            "RL.MULTI a FIXED 10 1m 1 b SLIDINGLOG 10 1m 1 c TOKENBUCKET 10 10/m 1 d LEAKY 10 10/m 1 e SLIDING 10 1m 1",
        );
        s.pass(50 * SECOND);
        s.calls(&["RL.PEEK a", "RL.PEEK b", "RL.PEEK c", "RL.PEEK d", "RL.PEEK e"]);
    });
}
