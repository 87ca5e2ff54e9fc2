use crate::book::script::{Book, HOUR, MILLI, MINUTE, MOST, SECOND, Script};

/// A node's call: its name, the number of the call, what it has and wants, and more.
fn lease(s: &mut Script, bucket: &str, said: &str) -> i64 {
    s.call(&format!("RL.LEASE k {bucket} {said}")).field(0)
}

pub fn scenarios(book: &mut Book) {
    book.add("half of what is free, shared by the nodes", "rule 2: ceil(b / 2K), K the rows with the caller's", |s| {
        for said in
            ["a 1 0 80 1s", "b 1 0 80 2s", "c 1 0 80 2s", "a 2 10 80 1s", "a 3 20 5 1s", "b 2 99 0 1s", "a 4 5 9 500ms"]
        {
            lease(s, "100 1", said);
        }
        s.call("RL.PEEK k");
    });
    book.add("grants shrink to 1 as the budget ends", "rule 2: and the last token is granted whole", |s| {
        for seq in 1..=9 {
            lease(s, "10 1/h", &format!("a {seq} 0 10 1m"));
        }
        for seq in 1..=3 {
            lease(s, "10 1/h", &format!("b {seq} 0 3 1m MIN 1"));
        }
    });
    book.add(
        "MIN asks for more than the share",
        "rule 2: at least m' = min(m, want - have), if so much is free",
        |s| {
            for said in [
                "a 1 0 40 1m MIN 30",
                "b 1 0 40 1m MIN 50",
                "c 1 0 9 1m MIN 20",
                "d 1 0 40 1m MIN 1",
                "c 2 4 9 1m MIN 5",
            ] {
                lease(s, "100 1", said);
            }
        },
    );
    book.add("free plus outstanding never exceeds the capacity", "rule 1: refill stops there", |s| {
        lease(s, "10 1", "a 1 0 6 1h MIN 6");
        for _ in 0..4 {
            s.pass(30 * SECOND);
            s.calls(&["RL.PEEK k", "RL.TOKENBUCKET k 10 1 3"]);
        }
        lease(s, "10 1", "a 2 6 2 1h");
        s.call("RL.PEEK k 9");
        s.pass(MINUTE);
        lease(s, "10 1", "a 3 2 2 1h");
        s.calls(&[
            "RL.TOKENBUCKET k 10 1 9",
            "RL.TOKENBUCKET k 10 1 8",
            "RL.TOKENBUCKET k 10 1 10",
            "RL.TOKENBUCKET k 10 1 11",
        ]);
    });
    book.add(
        "refill between expiries sees what is out then",
        "rule 1: piecewise, rows in the order of their expiry",
        |s| {
            lease(s, "100 1", "a 1 0 40 10s MIN 40");
            lease(s, "100 1", "b 1 0 30 20s MIN 30");
            lease(s, "100 1", "c 1 0 30 30s MIN 30");
            s.calls(&["RL.PEEK k", "RL.PEEK k 40", "RL.PEEK k 41", "RL.PEEK k 71", "RL.PEEK k 100"]);
            for _ in 0..14 {
                s.pass(5 * SECOND - 1);
                s.call("RL.PEEK k 33");
                s.pass(1);
                s.call("RL.PEEK k 33");
            }
        },
    );
    book.add("put off once in a row", "rule 3: then it gets what there is", |s| {
        s.call("RL.TOKENBUCKET k 10 1 8");
        for seq in 1..=4 {
            lease(s, "10 1", &format!("a {seq} {} 10 3s MIN 5", if seq > 2 { 2 } else { 0 }));
        }
        s.pass(SECOND);
        lease(s, "10 1", "a 5 2 10 3s MIN 4");
        lease(s, "10 1", "a 6 2 10 3s MIN 9");
        lease(s, "10 1", "b 1 0 10 9s MIN 9");
    });
    book.add("a wait for MIN that is enough", "rule 3: within the ttl means up to it, and at its end is enough", |s| {
        s.call("RL.TOKENBUCKET k 10 1 10");
        lease(s, "10 1", "a 1 0 10 3s MIN 3");
        s.pass(3 * SECOND - MILLI);
        lease(s, "10 1", "b 1 0 10 1ms");
        lease(s, "10 1", "b 1 0 10 10ms MIN 3");
        s.pass(MILLI);
        lease(s, "10 1", "a 2 0 10 3s MIN 3");
        lease(s, "10 1", "c 1 0 4 3999ms MIN 4");
        lease(s, "10 1", "d 1 0 4 4000ms MIN 4");
    });
    book.add("an accepted call clears the flag", "rule 3: unless it is put off itself", |s| {
        s.call("RL.TOKENBUCKET k 10 1 10");
        lease(s, "10 1", "a 1 0 5 5s MIN 5");
        lease(s, "10 1", "a 2 0 0 5s");
        lease(s, "10 1", "a 3 0 5 5s MIN 5");
        lease(s, "10 1", "a 3 0 5 5s MIN 5");
        lease(s, "10 1", "a 4 0 5 5s MIN 5");
        lease(s, "10 1", "a 5 0 5 5s MIN 5");
    });
    book.add("what a node has is clamped to what it holds", "rule 4: nobody mints tokens", |s| {
        lease(s, "20 1/m", "a 1 0 8 1m");
        lease(s, "20 1/m", "a 2 99 99 1m");
        lease(s, "20 1/m", "a 3 99 0 1m");
        lease(s, "20 1/m", "b 1 50 6 1m");
        lease(s, "20 1/m", "b 2 6 1 1m");
        s.call("RL.PEEK k");
        s.pass(MINUTE);
        lease(s, "20 1/m", "b 3 1 6 1m");
    });
    book.add(
        "a row is kept until ttl after the last call",
        "rule 5: or until the end that it had, if that is later",
        |s| {
            lease(s, "10 1/h", "a 1 0 4 10s");
            s.pass(4 * SECOND + 1);
            lease(s, "10 1/h", "a 2 4 4 2s");
            s.pass(4 * SECOND);
            lease(s, "10 1/h", "a 3 4 4 9s");
            s.pass(8_999_999);
            lease(s, "10 1/h", "b 1 0 0 9s");
            s.call("RL.PEEK k");
            s.pass(1);
            s.call("RL.PEEK k");
            lease(s, "10 1/h", "a 4 4 4 9s");
        },
    );
    book.add("ttl_ms is rounded down", "a node must stop no later than the row ends", |s| {
        lease(s, "10 1", "a 1 0 4 10.999ms");
        s.pass(1);
        lease(s, "10 1", "a 1 0 4 10ms");
        s.pass(998);
        lease(s, "10 1", "a 1 0 4 10ms");
        s.pass(1);
        lease(s, "10 1", "a 1 0 4 10ms");
    });
    book.add("a repeated or late call", "rule 6: changes nothing, and is answered from the row", |s| {
        lease(s, "10 1", "a 7 0 4 5s");
        s.pass(SECOND);
        for said in ["a 7 0 9 1h", "a 6 4 0 1h", "a 1 0 0 10ms MIN 9"] {
            lease(s, "10 1", said);
            lease(s, "99 5", said);
            lease(s, "0 5", said);
        }
        s.calls(&["RL.TOKENBUCKET k 10 1 6", "RL.PEEK k"]);
        lease(s, "10 1", "a 8 0 0 5s");
        lease(s, "10 1", "a 7 0 0 5s");
        lease(s, "10 1", "a 1 0 9 5s");
    });
    book.add(
        "a repeated call of a node that holds nothing",
        "rule 6: told as one without tokens that asks for 1",
        |s| {
            s.call("RL.DEBIT k 10 1/7s 12");
            lease(s, "10 1/7s", "a 1 0 5 1m");
            lease(s, "10 1/7s", "a 1 0 5 1m");
            lease(s, "10 1/s", "a 1 0 5 1m");
            s.pass(21 * SECOND - 1);
            lease(s, "10 1/7s", "a 1 0 5 1m");
            s.pass(1);
            lease(s, "10 1/7s", "a 1 0 5 1m");
            lease(s, "10 1/7s", "a 2 0 5 1m");
        },
    );
    book.add("an expired row is forfeited", "rule 7: its tokens are gone, refill makes new ones", |s| {
        lease(s, "10 1", "a 1 0 10 10s MIN 10");
        s.pass(10 * SECOND - 1);
        s.calls(&["RL.PEEK k", "RL.TOKENBUCKET k 10 1"]);
        s.pass(1);
        s.call("RL.PEEK k");
        s.pass(2_500 * MILLI);
        lease(s, "10 1", "a 2 10 10 10s");
        s.pass(HOUR);
        lease(s, "10 1", "a 1 5 5 1s");
    });
    book.add("waits take rows as held until they expire", "rule 8: for who got nothing, and for the bucket", |s| {
        lease(s, "6 1", "a 1 0 6 5s MIN 6");
        lease(s, "6 1", "b 1 0 3 1m");
        s.calls(&["RL.TOKENBUCKET k 6 1", "RL.TOKENBUCKET k 6 1 4", "RL.TOKENBUCKET k 6 1 7", "RL.PEEK k 6"]);
        s.wait_out("RL.TOKENBUCKET k 6 1 2");
        lease(s, "6 1", "b 2 0 3 1m");
    });
    book.add("a wait of -1", "rule 8: capacity 0, or a cost above the capacity", |s| {
        lease(s, "0 1", "a 1 0 5 1s");
        s.call("RL.PEEK k");
        lease(s, "10 1", "a 1 0 5 1s");
        lease(s, "0 1", "a 2 3 9 2s");
        lease(s, "0 1", "a 3 3 1 1s");
        lease(s, "0 1", "b 1 0 1 1s");
        s.calls(&["RL.PEEK k", "RL.TOKENBUCKET k 0 1", "RL.TOKENBUCKET k 10 1 11"]);
        s.pass(2 * SECOND);
        s.call("RL.PEEK k");
    });
    book.add("want 0", "gives everything back and removes the row; without one nothing changes", |s| {
        lease(s, "10 1", "a 1 0 0 1s");
        s.call("RL.PEEK k");
        lease(s, "10 1", "a 1 0 4 1m");
        lease(s, "10 1", "b 1 0 4 1m");
        lease(s, "10 1", "c 9 4 0 1m");
        lease(s, "10 1", "a 2 3 0 1m");
        lease(s, "10 1", "b 2 9 0 1m");
        s.calls(&["RL.PEEK k", "RL.REFUND k 10", "RL.PEEK k"]);
    });
    book.add("a live row is use", "even if it holds nothing, and the bucket is full", |s| {
        s.call("RL.TOKENBUCKET k 4 1 4");
        lease(s, "4 1", "a 1 0 3 1h");
        s.pass(4 * SECOND);
        s.calls(&["RL.PEEK k", "RL.FIXED k 5 1m", "RL.PEEK k 4"]);
        s.pass(HOUR - 4 * SECOND);
        s.calls(&["RL.PEEK k", "RL.FIXED k 5 1m"]);
    });
    book.add("a capacity below what is in rows", "rule 1: nothing is refilled until it no longer is", |s| {
        lease(s, "100 10", "a 1 0 50 10s");
        lease(s, "100 10", "b 1 0 30 20s MIN 30");
        s.call("RL.TOKENBUCKET k 60 10 1");
        lease(s, "60 10", "a 2 45 45 10s");
        s.pass(5 * SECOND);
        s.calls(&["RL.PEEK k", "RL.REFUND k 10", "RL.TOKENBUCKET k 60 10 61"]);
        lease(s, "60 10", "a 3 40 20 10s");
        s.call("RL.PEEK k 40");
        s.pass(3 * SECOND);
        s.calls(&["RL.PEEK k", "RL.TOKENBUCKET k 60 10 20"]);
    });
    book.add(
        "more in rows than the capacity, and a debt",
        "nothing flows back before the rows end, however long the debt lasts",
        |s| {
            lease(s, "20 1", "a 1 0 12 1s MIN 12");
            s.calls(&["RL.DEBIT k 8 1 8", "RL.PEEK k", "RL.TOKENBUCKET k 0 1"]);
            s.pass(SECOND);
            s.call("RL.PEEK k");
            s.pass(16 * SECOND - 1);
            s.call("RL.PEEK k 8");
            s.pass(1);
            s.call("RL.PEEK k");
        },
    );
    book.add("fractions beside leases", "thirds of a token are kept", |s| {
        s.call("RL.TOKENBUCKET k 5 1/3s 5");
        for seq in 1..=12 {
            s.pass(SECOND);
            lease(s, "5 1/3s", &format!("a {seq} 0 1 1m"));
        }
        s.call("RL.PEEK k 5");
    });
    book.add("the largest numbers", "2^53 - 1 tokens, calls and waits", |s| {
        lease(s, &format!("{MOST} 1"), &format!("a {MOST} {MOST} {MOST} 1h MIN {MOST}"));
        lease(s, &format!("{MOST} 1"), &format!("b {} {MOST} {MOST} 1h MIN {MOST}", MOST - 1));
        lease(s, &format!("{MOST} 1"), &format!("b {MOST} {MOST} {MOST} 1h"));
        s.calls(&[&format!("RL.PEEK k {MOST}"), &format!("RL.TOKENBUCKET k {MOST} 1/36500d")]);
        s.call(&format!("RL.LEASE l {MOST} 1/36500d a 1 0 {MOST} 10ms MIN {MOST}"));
        s.call(&format!("RL.LEASE l {MOST} 1/36500d b 1 0 {MOST} 10ms"));
        s.pass(10 * MILLI);
        s.call(&format!("RL.LEASE l {MOST} 1/36500d b 2 0 {MOST} 10ms"));
    });
}
