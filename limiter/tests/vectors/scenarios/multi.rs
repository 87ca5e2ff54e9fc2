use crate::book::script::{Book, DAY, MILLI, MINUTE, MOST, SECOND};
use crate::sequence::Random;

const KINDS: [&str; 5] = ["FIXED", "SLIDING", "SLIDINGLOG", "TOKENBUCKET", "LEAKY"];

/// A limit of a kind: the same number a minute.
fn limit(kind: &str, most: u64) -> String {
    match kind {
        "TOKENBUCKET" | "LEAKY" => format!("k:{kind} {kind} {most} {most}/m"),
        _ => format!("k:{kind} {kind} {most} 1m"),
    }
}

pub fn scenarios(book: &mut Book) {
    book.add("one limit", "as its own command, with an index before it", |s| {
        for kind in KINDS {
            for cost in [2, 0, 2, 1, 4] {
                s.call(&format!("RL.MULTI {} {cost}", limit(kind, 3)));
            }
        }
        for kind in KINDS {
            s.call(&format!("RL.PEEK k:{kind}"));
        }
    });
    book.add("all or nothing", "if one denies none takes, and each says what it alone would have said", |s| {
        s.call("RL.MULTI a FIXED 2 1m 1 b TOKENBUCKET 1000 100 850");
        s.call("RL.MULTI a FIXED 2 1m 1 b TOKENBUCKET 1000 100 850");
        s.calls(&["RL.PEEK a", "RL.PEEK b", "RL.MULTI a FIXED 2 1m 1 b TOKENBUCKET 1000 100 100"]);
        s.calls(&["RL.MULTI a FIXED 2 1m 1 b TOKENBUCKET 1000 100 10", "RL.PEEK b"]);
    });
    book.add("a wait that is enough for all", "the index is that of the longest wait", |s| {
        let line = "RL.MULTI a FIXED 1 10s 1 b TOKENBUCKET 2 1/7s 2 c SLIDINGLOG 1 3s 1 d LEAKY 1 1/9.5s 1";
        s.pass(1_500);
        s.call(line);
        for _ in 0..3 {
            let told = s.call(line);
            if told.is_allowed() {
                break;
            }
            let named = usize::try_from(told.field(1)).unwrap();
            let wait = u64::try_from(told.field(2 + 5 * named + 3)).unwrap();
            s.pass((wait - 1) * MILLI);
            assert!(!s.call(line).is_allowed());
            s.pass(MILLI);
            assert!(s.call(line).is_allowed());
        }
    });
    book.add("never is the longest wait", "before any other; of equals the first", |s| {
        s.call("RL.MULTI a FIXED 1 1d 1 b FIXED 5 1m 1");
        s.call("RL.MULTI a FIXED 1 1d 1 b FIXED 5 1m 6");
        s.call("RL.MULTI b FIXED 5 1m 6 a FIXED 1 1d 1 c FIXED 0 1m 1");
        s.call("RL.MULTI c FIXED 0 1m 1 b FIXED 5 1m 6");
        s.call("RL.MULTI a FIXED 1 1d 1 e FIXED 1 1h 1");
        s.call("RL.MULTI e FIXED 1 1h 1 a FIXED 1 1d 1");
        s.call("RL.MULTI f FIXED 1 1d 1");
        s.call("RL.MULTI e FIXED 9 1h 1 f FIXED 1 1d 1 a FIXED 1 1d 1");
    });
    book.add("the smallest share", "(limit - used) / limit unrounded, after taking; of equals the first", |s| {
        s.call("RL.MULTI a FIXED 3 1m 1 b FIXED 30 1m 10 c FIXED 300 1m 100");
        s.call("RL.MULTI a FIXED 3 1m 0 b FIXED 30 1m 0 c FIXED 300 1m 1");
        s.call("RL.MULTI a FIXED 3 1m 0 b FIXED 30 1m 1 c FIXED 300 1m 0");
        s.call(&format!("RL.MULTI d FIXED {MOST} 1m 1 e FIXED {} 1m 1", MOST - 1));
        s.call(&format!("RL.MULTI f FIXED {} 1m 1 g FIXED {MOST} 1m 1", MOST - 1));
        s.call("RL.MULTI h TOKENBUCKET 10 1/m 5 i TOKENBUCKET 10 1/h 5");
        s.pass(1);
        s.call("RL.MULTI h TOKENBUCKET 10 1/m 0 i TOKENBUCKET 10 1/h 0");
        s.call("RL.MULTI i TOKENBUCKET 10 1/h 0 h TOKENBUCKET 10 1/m 0");
    });
    book.add("limit 0 and cost 0", "cost 0 reports and never denies; of limit 0 nothing remains", |s| {
        s.call("RL.MULTI a FIXED 0 1m 0 b FIXED 5 1m 5");
        s.call("RL.MULTI b FIXED 5 1m 0 a FIXED 0 1m 0");
        s.call("RL.MULTI a FIXED 0 1m 1 b FIXED 5 1m 0");
        s.call("RL.MULTI c FIXED 5 1m 0 d LEAKY 5 1 0 e SLIDINGLOG 5 1m 0");
        s.calls(&["RL.PEEK c", "RL.PEEK d", "RL.PEEK e"]);
    });
    book.add("the delays of leaky buckets", "each is its own, whether or not all allow", |s| {
        let line = "RL.MULTI a LEAKY 3 1 1 b LEAKY 5 2 2";
        s.calls(&[line, line, line, "RL.MULTI a LEAKY 3 1 1 b LEAKY 5 2 1", line]);
        s.pass(1_300 * MILLI);
        s.calls(&["RL.MULTI a LEAKY 3 1 1 b LEAKY 5 2 5", "RL.MULTI a LEAKY 3 1 1 b LEAKY 5 2 3"]);
    });
    book.add("errors take nothing anywhere", "they name the limit, counted from 0", |s| {
        s.call("RL.CONCURRENT held 1 1m holder");
        s.call("RL.MULTI a FIXED 5 1m 1 b FIXED 5 0 1");
        s.call("RL.MULTI a FIXED 5 1m 1 b FIXED -1 1m 1");
        s.call("RL.MULTI a FIXED 5 1m x b FIXED 5 1m 1");
        s.call("RL.MULTI a FIXED 5 1m 1 b CONCURRENT 5 1m 1");
        s.call("RL.MULTI a FIXED 5 1m 1 b TOKENBUCKET 5 0 1");
        s.call("RL.MULTI a FIXED 5 1m 1 held FIXED 5 1m 1");
        s.call("RL.MULTI a FIXED 5 1m 1 b FIXED 5 1m 1 a FIXED 5 1m 1");
        s.calls(&["RL.MULTI a FIXED 5 1m 1 b FIXED 5", "RL.MULTI a FIXED 5 1m", "RL.MULTI a"]);
        let many: Vec<String> = (0..33).map(|index| format!("k{index} FIXED 1 1m 1")).collect();
        s.call(&format!("RL.MULTI {}", many.join(" ")));
        s.calls(&["RL.PEEK a", "RL.PEEK b", "RL.PEEK k0"]);
    });
    book.add("as many limits as a call may have", "32", |s| {
        let many: Vec<String> = (0..32).map(|index| format!("k{index} FIXED {} 1m 1", 1 + (index * 7) % 32)).collect();
        s.call(&format!("RL.MULTI {}", many.join(" ")));
        s.call(&format!("RL.MULTI {}", many.join(" ")));
    });
    book.add("kinds in any case", "keywords are read in any case", |s| {
        s.call("RL.MULTI a fixed 2 1m 1 b Sliding 2 1m 1 c slidingLog 2 1m 1 d tokenbucket 2 1 1 e LeAkY 2 1 1");
    });
    for seed in 1..=3_u64 {
        book.add(&format!("traffic {seed}"), "limits of all kinds, changed too, and a clock that steps", |s| {
            let mut random = Random(seed);
            for _ in 0..30 {
                if random.one_in(10) && s.may_step_back() {
                    s.step_back(random.any_size(DAY / 1_000));
                }
                s.pass(random.any_size(20 * SECOND));
                let first = random.below(5);
                let count = 1 + random.below(5);
                let limits: Vec<String> = (0..count)
                    .map(|index| {
                        let kind = KINDS[usize::try_from((first + index) % 5).unwrap()];
                        let most = if random.one_in(5) { 7 } else { 12 };
                        format!("{} {}", limit(kind, most), random.below(5))
                    })
                    .collect();
                s.call(&format!("RL.MULTI {}", limits.join(" ")));
            }
            s.pass(2 * MINUTE);
            for kind in KINDS {
                s.call(&format!("RL.PEEK k:{kind}"));
            }
        });
    }
}
