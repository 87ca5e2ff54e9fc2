use crate::book::script::{Book, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add("limits, costs and amounts", "decimal digits from 0 to 2^53 - 1, and nothing else", |s| {
        for text in [
            "0",
            "7",
            "9007199254740991",
            "9007199254740992",
            "18446744073709551616",
            "-1",
            "+1",
            "1.0",
            "1e3",
            "01",
            "00",
            "",
            " 1",
            "1 ",
            "0x10",
            "one",
            "\u{661}",
            "1_000",
        ] {
            s.call_words(&["RL.FIXED", "k", text, "1m", "0"]);
            s.call_words(&["RL.FIXED", "k", "5", "1m", text]);
            s.call_words(&["RL.TOKENBUCKET", "l", text, "1", "0"]);
            s.call_words(&["RL.REFUND", "k", text]);
        }
    });
    book.add("windows", "seconds, or a number with ms, s, m, h, d or w: 1 ms to 36500 d, whole microseconds", |s| {
        for text in [
            "60",
            "0.001",
            "0.5",
            "0.000999",
            "1.000001",
            "1.0000001",
            "250ms",
            "1ms",
            "0.999ms",
            "1.001ms",
            "1.0001ms",
            "1s",
            "1.5m",
            "2h",
            "0.5d",
            "1w",
            "36500d",
            "36500.1d",
            "5214w",
            "5215w",
            "3153600000",
            "3153600000.000001",
            "0",
            "0s",
            "-1",
            "+1",
            "1S",
            "1M",
            "1us",
            "ms",
            "",
            "s",
            "1 s",
            " 1",
            "01",
            "1.",
            ".5",
            "1.s",
            "1,5",
            "1e3",
            "1_0",
            "NaN",
            "inf",
            "00.5",
            "1.50000000000000000000",
            "0.1w",
            "60sec",
        ] {
            s.call_words(&["RL.FIXED", "k", "1", text, "0"]);
        }
        s.calls(&[
            "RL.FIXED k 9 60 3",
            "RL.FIXED k 9 1m 3",
            "RL.FIXED k 9 60000ms",
            "RL.FIXED k 9 60s",
            "RL.FIXED k 9 1.0m",
        ]);
    });
    book.add("rates", "a number a second or a duration, above 0, at most 15 digits, both terms below 2^63", |s| {
        for text in [
            "10",
            "0.5",
            "100/60",
            "100/m",
            "5/h",
            "1000/250ms",
            "2.5/h",
            "1/ms",
            "3/w",
            "1/0.001",
            "1/36500d",
            "0",
            "0/s",
            "0.0",
            "1/0",
            "/s",
            "5/",
            "/",
            "",
            "1/2/3",
            "-1",
            "+1",
            "01",
            "1.",
            ".5",
            "1e3",
            "1/M",
            "1/us",
            "999999999999999",
            "1000000000000000",
            "0.00000000000001",
            "0.123456789012345",
            "0.1234567890123456",
            "123456789.123456",
            "1234567890.1234567",
            "000001",
            "0.000000000000000000001",
            "999999999999999/ms",
            "0.000001/36500d",
            "1/0.5ms",
            "1 /s",
            "1/ s",
        ] {
            s.call_words(&["RL.TOKENBUCKET", "k", "10", text, "0"]);
        }
    });
    book.add("the ttl of a place", "as a window", |s| {
        for text in ["1ms", "30", "0", "36501d", "", "x"] {
            s.call_words(&["RL.CONCURRENT", "k", "1", text, "a", "0"]);
        }
    });
    book.add("the ttl of a lease", "10 ms to 1 h", |s| {
        for text in ["10ms", "9.999ms", "1h", "60.001m", "3600", "3600.000001", "0", "", "1d"] {
            s.call_words(&["RL.LEASE", "k", "10", "1", "a", "1", "0", "0", text]);
        }
    });
    book.add("the other arguments of a lease", "each is named in its error", |s| {
        s.calls(&[
            "RL.LEASE k 10 1 a 0 0 5 1s",
            "RL.LEASE k 10 1 a 9007199254740992 0 5 1s",
            "RL.LEASE k 10 1 a x 0 5 1s",
        ]);
        s.calls(&[
            "RL.LEASE k 10 1 a 1 x 5 1s",
            "RL.LEASE k 10 1 a 1 0 -1 1s",
            "RL.LEASE k x 1 a 1 0 5 1s",
            "RL.LEASE k 10 0 a 1 0 5 1s",
        ]);
        s.calls(&[
            "RL.LEASE k 10 1 a 1 0 5 1s MIN",
            "RL.LEASE k 10 1 a 1 0 5 1s MIN x",
            "RL.LEASE k 10 1 a 1 0 5 1s MAX 3",
        ]);
        s.call_words(&["RL.LEASE", "k", "10", "1", "", "1", "0", "5", "1s"]);
        s.call(&format!("RL.LEASE k 10 1 {} 1 0 5 1s", "n".repeat(65)));
        s.calls(&["RL.PEEK k", "RL.LEASE k 10 1 a 9007199254740991 0 5 1s min 2"]);
    });
    book.add("ages", "0 to 36500 d behind the keyword, in any case", |s| {
        s.calls(&[
            "RL.TOKENBUCKET k 10 1/h 9",
            "RL.REFUND k 1 AGE 0",
            "RL.REFUND k 1 age 1ms",
            "RL.REFUND k 1 Age 0.000001",
        ]);
        s.calls(&[
            "RL.REFUND k 1 AGE 36500d",
            "RL.REFUND k 1 AGE 36500.1d",
            "RL.REFUND k 1 AGE -1",
            "RL.REFUND k 1 AGE",
        ]);
        s.calls(&[
            "RL.REFUND k 1 5",
            "RL.REFUND k 1 AGES 5",
            "RL.REFUND k 1 AGE 0.0000001",
            "RL.REFUND k 1 AGE 5 5",
            "RL.PEEK k",
        ]);
    });
    book.add("XX", "comes last, in any case, and nothing else may stand there", |s| {
        s.calls(&["RL.CONCURRENT k 1 1m a 1 YY", "RL.CONCURRENT k 1 1m a YY", "RL.CONCURRENT k 1 1m a XX 1"]);
        s.calls(&[
            "RL.CONCURRENT k 1 1m a 1 XX 1",
            "RL.PEEK k",
            "RL.CONCURRENT k 1 1m XX",
            "RL.CONCURRENT k 1 1m XX Xx",
        ]);
        s.call("RL.RELEASE k XX");
    });
    book.add("too few and too many", "the number of arguments is checked first", |s| {
        for call in [
            "RL.FIXED k 1",
            "RL.FIXED k 1 1m 1 1",
            "RL.SLIDING k",
            "RL.SLIDINGLOG k 1 1m 1 1",
            "RL.TOKENBUCKET k 1",
            "RL.LEAKY k 1 1 1 1",
            "RL.CONCURRENT k 1 1m",
            "RL.RELEASE k",
            "RL.RELEASE k a b",
            "RL.PEEK k 1 1",
            "RL.REFUND k",
            "RL.DEBIT k 1 1",
            "RL.DEBIT k 1 1 1 1",
            "RL.LEASE k 1 1 a 1 0 1",
            "RL.LEASE k 1 1 a 1 0 1 1s MIN 1 1",
        ] {
            s.call(call);
        }
    });
    book.add(
        "an error touches nothing",
        "not even where the call would be denied, or the key is of another kind",
        |s| {
            s.calls(&["RL.FIXED k 1 1m", "RL.FIXED k 1 1m x", "RL.FIXED k x 1m", "RL.LEAKY k 1 x", "RL.DEBIT k 1 1 x"]);
            s.pass(SECOND);
            s.calls(&["RL.PEEK k x", "RL.PEEK k"]);
        },
    );
}
