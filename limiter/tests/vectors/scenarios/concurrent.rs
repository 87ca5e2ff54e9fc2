use crate::book::script::{Book, DAY, MILLI, MINUTE, MOST, SECOND};
use crate::sequence::Random;

pub fn scenarios(book: &mut Book) {
    book.add("at most so many at once", "denied until a place is released", |s| {
        s.calls(&["RL.CONCURRENT k 2 30 a", "RL.CONCURRENT k 2 30 b", "RL.CONCURRENT k 2 30 c", "RL.RELEASE k b"]);
        s.calls(&["RL.CONCURRENT k 2 30 c", "RL.RELEASE k b", "RL.RELEASE k a", "RL.RELEASE k c", "RL.RELEASE k c"]);
        s.calls(&["RL.PEEK k", "RL.RELEASE never a"]);
    });
    book.add("a holder that crashed", "its place comes back after exactly its ttl", |s| {
        s.call("RL.CONCURRENT k 1 2500ms a");
        s.pass(1_000_001);
        s.wait_out("RL.CONCURRENT k 1 30 b");
        s.calls(&["RL.RELEASE k a", "RL.CONCURRENT k 1 30 a"]);
    });
    book.add("the last microsecond of a place", "a place is held in [t, t + ttl)", |s| {
        s.call("RL.CONCURRENT k 1 1ms a");
        s.pass(999);
        s.calls(&["RL.CONCURRENT k 1 1ms b", "RL.PEEK k"]);
        s.pass(1);
        s.calls(&["RL.PEEK k", "RL.CONCURRENT k 1 1ms b"]);
    });
    book.add("a holder renews", "its place then ends ttl from now, later or sooner", |s| {
        s.calls(&["RL.CONCURRENT k 1 10 a", "RL.CONCURRENT k 1 10 b"]);
        s.pass(8 * SECOND);
        s.calls(&[
            "RL.CONCURRENT k 1 10 a",
            "RL.CONCURRENT k 1 10 b",
            "RL.CONCURRENT k 1 3 a",
            "RL.CONCURRENT k 1 10 b",
        ]);
        s.pass(3 * SECOND - 1);
        s.call("RL.CONCURRENT k 1 10 b");
        s.pass(1);
        s.calls(&["RL.CONCURRENT k 1 10 b", "RL.CONCURRENT k 1 10 a"]);
    });
    book.add("renewal always succeeds up to what is held", "limit lowered or 0 included", |s| {
        s.calls(&["RL.CONCURRENT k 10 30 a 6", "RL.CONCURRENT k 10 30 b 4"]);
        s.pass(SECOND);
        for limit in [10, 3, 0] {
            s.call(&format!("RL.CONCURRENT k {limit} 30 a 6"));
        }
        s.calls(&["RL.PEEK k", "RL.CONCURRENT k 3 30 b 5", "RL.CONCURRENT k 10 30 a 2", "RL.PEEK k 4"]);
        s.calls(&["RL.CONCURRENT k 10 30 b 8", "RL.CONCURRENT k 10 30 b 9", "RL.RELEASE k b"]);
    });
    book.add("more than fits is denied but renews", "the one denied call that changes something", |s| {
        s.calls(&["RL.CONCURRENT k 5 10 a 3", "RL.CONCURRENT k 5 20 b 2"]);
        s.pass(9 * SECOND);
        s.call("RL.CONCURRENT k 5 10 a 4");
        s.pass(9 * SECOND);
        s.calls(&["RL.CONCURRENT k 5 10 a 3", "RL.PEEK k", "RL.CONCURRENT k 5 10 a 6"]);
    });
    book.add("XX renews only", "who has lost its place is told -1 and takes no new one", |s| {
        s.calls(&["RL.CONCURRENT k 2 10 a XX", "RL.PEEK k", "RL.CONCURRENT k 2 10 a", "RL.CONCURRENT k 2 10 a xx"]);
        s.pass(10 * SECOND - 1);
        s.call("RL.CONCURRENT k 2 10 a XX");
        s.pass(10 * SECOND);
        s.calls(&["RL.CONCURRENT k 2 10 a XX", "RL.CONCURRENT k 2 10 a 1 XX", "RL.PEEK k"]);
    });
    book.add("XX for more than is held", "a wait that ends before the place does; else never", |s| {
        s.calls(&["RL.CONCURRENT k 4 20 a 2", "RL.CONCURRENT k 4 5 b", "RL.CONCURRENT k 4 60 c"]);
        s.calls(&["RL.CONCURRENT k 4 20 a 3 XX", "RL.CONCURRENT k 4 20 a 4 XX", "RL.CONCURRENT k 4 4 a 3 XX"]);
        s.calls(&["RL.CONCURRENT k 4 5 a 3 XX", "RL.CONCURRENT k 4 5001ms a 3 XX", "RL.CONCURRENT k 4 20 a 0 XX"]);
    });
    book.add("the wait for several places", "until so many have ended that it fits, in the order of their ends", |s| {
        for (holder, (ttl, cost)) in [("a", (30, 1)), ("b", (10, 2)), ("c", (20, 3)), ("d", (10, 1))] {
            s.call(&format!("RL.CONCURRENT k 7 {ttl} {holder} {cost}"));
        }
        for cost in [0, 1, 3, 4, 6, 7, 8] {
            s.call(&format!("RL.PEEK k {cost}"));
        }
        s.call("RL.CONCURRENT k 7 30 a 2");
        s.wait_out("RL.CONCURRENT k 7 30 e 4");
    });
    book.add("cost 0", "renews nothing, and answers for this holder at cost 1", |s| {
        s.calls(&["RL.CONCURRENT k 1 10 a 0", "RL.PEEK k", "RL.CONCURRENT k 1 10 a"]);
        s.pass(5 * SECOND);
        s.calls(&["RL.CONCURRENT k 1 60 a 0", "RL.CONCURRENT k 1 60 b 0", "RL.PEEK k", "RL.CONCURRENT k 1 60 b 0 XX"]);
        s.pass(5 * SECOND);
        s.call("RL.CONCURRENT k 1 60 a 0 XX");
    });
    book.add("limit 0 and cost above the limit", "never for who holds nothing", |s| {
        s.calls(&["RL.CONCURRENT k 0 10 a", "RL.PEEK k", "RL.CONCURRENT k 3 10 a 4", "RL.CONCURRENT k 3 10 a 3"]);
        s.calls(&["RL.CONCURRENT k 3 10 b 4", "RL.CONCURRENT k 3 10 a 4", "RL.CONCURRENT k 0 10 b"]);
    });
    book.add("the largest numbers", "sums up to 2^53 - 1, and the longest ttl", |s| {
        s.call(&format!("RL.CONCURRENT k {MOST} 36500d a {}", MOST - 1));
        s.call(&format!("RL.CONCURRENT k {MOST} 36500d b"));
        s.call(&format!("RL.CONCURRENT k {MOST} 36500d c"));
        s.call(&format!("RL.CONCURRENT k {MOST} 1d b {MOST}"));
        s.calls(&["RL.RELEASE k a", &format!("RL.PEEK k {MOST}"), &format!("RL.CONCURRENT k {MOST} 1d b {MOST}")]);
        s.call("RL.RELEASE k b");
    });
    book.add("names", "1 to 64 bytes, told apart by all of them", |s| {
        let long = "x".repeat(63);
        for name in ["a", "aa", "A", "12345678", "123456789", "\u{fc}ber", &format!("{long}1"), &format!("{long}2")] {
            s.call(&format!("RL.CONCURRENT k 7 1m {name}"));
        }
        s.call(&format!("RL.RELEASE k {long}2"));
        s.calls(&[&format!("RL.RELEASE k {long}1"), "RL.RELEASE k 1234567", "RL.RELEASE k 123456789"]);
        s.call_words(&["RL.CONCURRENT", "k", "7", "1m", "two words"]);
        s.call_words(&["RL.CONCURRENT", "k", "7", "1m", "xx"]);
        s.call_words(&["RL.CONCURRENT", "k", "7", "1m", ""]);
        s.call(&format!("RL.CONCURRENT k 7 1m {long}12"));
    });
    for (seed, steps) in [(1, false), (2, false), (3, true)] {
        let why = if steps { "places end no later than their ttl from now, whatever the clock did" } else { "a list" };
        book.add(&format!("traffic {seed}"), why, |s| {
            let mut random = Random(seed);
            for _ in 0..70 {
                if steps && random.one_in(9) && s.may_step_back() {
                    s.step_back(random.any_size(20 * SECOND));
                }
                s.pass(random.any_size(3 * SECOND));
                let holder = random.pick(&["a", "b", "c", "d", "a-longer-name", "f"]);
                let ttl = random.pick(&["5", "10", "2500ms", "12.000001"]);
                let limit = if random.one_in(6) { random.below(9) } else { 8 };
                let cost = random.below(4);
                match random.below(8) {
                    0 => s.call(&format!("RL.RELEASE k {holder}")),
                    1 => s.call(&format!("RL.PEEK k {}", cost * 2)),
                    2 => s.call(&format!("RL.CONCURRENT k {limit} {ttl} {holder} {} XX", cost + 1)),
                    _ => s.call(&format!("RL.CONCURRENT k {limit} {ttl} {holder} {}", cost + random.below(2))),
                };
            }
            s.pass(13 * SECOND);
            s.calls(&["RL.PEEK k", "RL.RELEASE k a"]);
        });
    }
    book.add("the clock goes back", "places end no later than their ttl from the new now", |s| {
        s.calls(&["RL.CONCURRENT k 2 10 a", "RL.CONCURRENT k 2 60 b"]);
        s.step_back(MINUTE);
        s.calls(&["RL.PEEK k", "RL.CONCURRENT k 2 5 c", "RL.PEEK k"]);
        s.pass(10 * SECOND - 1);
        s.call("RL.CONCURRENT k 2 5 c");
        s.pass(1);
        s.calls(&["RL.CONCURRENT k 2 5 c", "RL.RELEASE k a", "RL.RELEASE k b"]);
    });
    book.add("the clock goes ahead", "as if that time had passed", |s| {
        s.calls(&["RL.CONCURRENT k 2 10 a", "RL.CONCURRENT k 2 2d b"]);
        s.pass(DAY);
        s.calls(&["RL.CONCURRENT k 2 10 c", "RL.RELEASE k a"]);
        s.step_back(DAY - MILLI);
        s.calls(&["RL.RELEASE k a", "RL.CONCURRENT k 2 10 d"]);
    });
}
