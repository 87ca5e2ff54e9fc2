use crate::book::script::{Book, MINUTE, SECOND};

/// A call of each kind, that leaves its key in use for a minute or so.
const CALLS: [&str; 8] = [
    "RL.FIXED k 5 1m 2",
    "RL.SLIDING k 5 1m 2",
    "RL.SLIDINGLOG k 5 1m 2",
    "RL.TOKENBUCKET k 5 2/m 2",
    "RL.LEAKY k 5 2/m 2",
    "RL.CONCURRENT k 5 1m a 2",
    "RL.LEASE k 5 2/m node 1 0 2 1m",
    "RL.DEBIT k 5 2/m 2",
];

pub fn scenarios(book: &mut Book) {
    for holder in &CALLS[..7] {
        let kind = holder.split(' ').next().unwrap();
        book.add(&format!("a key that {kind} uses"), "calls of other kinds are WRONGTYPE, and change nothing", |s| {
            s.call(holder);
            s.call("RL.PEEK k");
            for call in CALLS {
                s.call(call);
            }
            s.calls(&["RL.RELEASE k a", "RL.PEEK k"]);
        });
        book.add(&format!("a key that {kind} no longer uses"), "unused is missing: another kind takes it over", |s| {
            s.call(holder);
            for _ in 0..3 {
                s.pass(MINUTE);
                s.calls(&["RL.PEEK k", "RL.REFUND k 0"]);
            }
            s.calls(&["RL.CONCURRENT k 5 1s somebody", "RL.RELEASE k somebody", "RL.FIXED k 5 1s 3"]);
            s.pass(SECOND);
            s.calls(&["RL.LEAKY k 5 1 3", "RL.PEEK k"]);
        });
    }
    book.add("what a look is told", "peek has the remembered parameters, and cost 1 unless told otherwise", |s| {
        for (key, call) in [
            ("a", "RL.FIXED a 5 1m 2"),
            ("b", "RL.SLIDING b 5 1m 2"),
            ("c", "RL.SLIDINGLOG c 5 1m 2"),
            ("d", "RL.TOKENBUCKET d 5 2/m 2"),
            ("e", "RL.LEAKY e 5 2/m 2"),
            ("f", "RL.CONCURRENT f 5 1m a 2"),
            ("g", "RL.LEASE g 5 2/m node 1 0 2 1m"),
        ] {
            s.call(call);
            for cost in ["", " 0", " 1", " 3", " 4", " 5", " 6"] {
                s.call(&format!("RL.PEEK {key}{cost}"));
            }
        }
        s.calls(&["RL.PEEK none", "RL.PEEK none 0", "RL.PEEK none 9007199254740991"]);
    });
    book.add("names of keys", "any, the empty one too", |s| {
        for key in ["", " ", "K", "k", "{k}:a", "\u{20ac}"] {
            s.call_words(&["RL.FIXED", key, "1", "1m"]);
        }
        for key in ["", " ", "K", "k", "{k}:a", "\u{20ac}"] {
            s.call_words(&["RL.FIXED", key, "1", "1m"]);
        }
    });
}
