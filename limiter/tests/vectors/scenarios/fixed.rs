use super::traffic::{self, Traffic};
use crate::book::script::{Book, DAY, MILLI, MINUTE, MOST, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add("counts to the limit", "allowed as long as count + cost does not exceed the limit", |s| {
        s.calls(&["RL.FIXED k 3 60", "RL.FIXED k 3 60 1", "RL.FIXED k 3 60", "RL.FIXED k 3 60", "RL.FIXED k 3 60 2"]);
    });
    book.add("denied until exactly the window's end", "retry_after_ms is rounded up and enough", |s| {
        s.pass(1_234_567);
        s.exhaust("RL.FIXED k 2 10", 1_111);
    });
    book.add("a wait that is no whole number of milliseconds", "999.999 ms are told as 1000", |s| {
        s.pass(1);
        s.exhaust("RL.FIXED k 1 1", 0);
        s.pass(999);
        s.wait_out("RL.FIXED k 1 1");
    });
    book.add("the last microsecond of a window", "an edge belongs to the window that it begins", |s| {
        s.pass(MINUTE - 1);
        s.calls(&["RL.FIXED k 1 1m", "RL.FIXED k 1 1m"]);
        s.pass(1);
        s.calls(&["RL.FIXED k 1 1m", "RL.FIXED k 1 1m"]);
    });
    for (window, why) in [
        ("1d", "a day begins at midnight UTC"),
        ("1w", "a week begins on Thursday at 00:00 UTC"),
        ("7s", "windows are counted from the epoch, whatever their length"),
        ("1.5h", "windows are counted from the epoch, whatever their length"),
        ("36500d", "the longest window: its end is that of the first since the epoch"),
    ] {
        book.add(&format!("windows of {window} are aligned to the epoch"), why, |s| {
            let line = format!("RL.FIXED k 5 {window} 3");
            let told = s.call(&line);
            s.call(&line);
            if told.reset() < DAY * 8 / MILLI {
                s.pass((told.reset() - 1) * MILLI);
                s.call(&line);
                s.pass(MILLI);
                s.call(&line);
            }
        });
    }
    book.add(
        "windows of less than a millisecond do not exist",
        "1 ms is the shortest, in whole microseconds above",
        |s| {
            s.calls(&["RL.FIXED k 2 0.5ms", "RL.FIXED k 2 0.999999ms", "RL.FIXED k 2 1ms", "RL.FIXED k 2 1ms 2"]);
            s.pass(999);
            s.call("RL.FIXED k 2 1ms 2");
            s.pass(1);
            s.call("RL.FIXED k 2 1ms 2");
            s.calls(&["RL.FIXED l 2 1.001ms", "RL.FIXED l 2 1.001ms 2"]);
            s.pass(1_001);
            s.calls(&["RL.FIXED l 2 1.001ms 2", "RL.FIXED l 2 1.0001ms"]);
        },
    );
    book.add("limit 0", "nothing is ever allowed, and nothing is there to be waited for", |s| {
        s.calls(&["RL.FIXED k 0 60", "RL.FIXED k 0 60 0", "RL.PEEK k"]);
    });
    book.add("limit 0 on a key in use", "the use stays, and lifting it grants nothing extra", |s| {
        s.calls(&["RL.FIXED k 5 60 3", "RL.FIXED k 0 60", "RL.PEEK k", "RL.FIXED k 5 60 3", "RL.FIXED k 5 60 2"]);
    });
    book.add("cost 0", "takes nothing, and is answered as cost 1 would be", |s| {
        s.calls(&["RL.FIXED k 2 60 0", "RL.PEEK k", "RL.FIXED k 2 60 2", "RL.FIXED k 2 60 0", "RL.FIXED k 2 60"]);
    });
    book.add("cost above the limit", "never: retry_after_ms is -1, and nothing is taken", |s| {
        s.calls(&["RL.FIXED k 5 60 6", "RL.PEEK k", "RL.FIXED k 5 60 2", "RL.FIXED k 5 60 6", "RL.FIXED k 5 60 3"]);
    });
    book.add("the largest numbers", "no overflow and no rounding at 2^53 - 1", |s| {
        s.call(&format!("RL.FIXED k {MOST} 1d {}", MOST - 1));
        s.call(&format!("RL.FIXED k {MOST} 1d 2"));
        s.call(&format!("RL.FIXED k {MOST} 1d 1"));
        s.call(&format!("RL.FIXED k {MOST} 1d"));
        s.call(&format!("RL.FIXED l {MOST} 36500d {MOST}"));
        s.call(&format!("RL.FIXED l {MOST} 36500d"));
        s.call(&format!("RL.FIXED l {} 36500d", MOST - 1));
    });
    book.add("near the epoch", "the first window begins at 0", |s| {
        // Scripts begin at noon of a late day, so a long window is what reaches back to the epoch.
        s.calls(&["RL.FIXED k 10 20788d 3", "RL.FIXED k 10 20787d 3", "RL.FIXED l 10 20787d 3"]);
    });
    traffic::add(
        book,
        Traffic {
            name: "traffic",
            command: "RL.FIXED k",
            policies: &["10 10s", "12 10s", "4 10s", "10 7s"],
            most_cost: 4,
            gap: 3 * SECOND,
            refunds: true,
            debits: false,
        },
    );
}
