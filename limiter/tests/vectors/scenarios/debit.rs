use crate::book::script::{Book, HOUR, MINUTE, MOST, SECOND};

pub fn scenarios(book: &mut Book) {
    book.add("whatever is there", "the five integers for cost 1 afterwards, then what did not fit", |s| {
        s.calls(&["RL.DEBIT k 10 1 3", "RL.DEBIT k 10 1 9", "RL.TOKENBUCKET k 10 1"]);
        s.wait_out("RL.TOKENBUCKET k 10 1 4");
        s.wait_out("RL.TOKENBUCKET k 10 1 10");
    });
    book.add("down to a balance of minus the capacity", "min(amount, floor(2 x capacity - spent)), whole units", |s| {
        s.calls(&["RL.DEBIT k 10 1/3s 25", "RL.DEBIT k 10 1/3s 1"]);
        s.pass(2 * SECOND);
        s.calls(&["RL.DEBIT k 10 1/3s 1", "RL.PEEK k"]);
        s.pass(2 * SECOND);
        s.calls(&["RL.DEBIT k 10 1/3s 5", "RL.DEBIT k 10 1/3s 5", "RL.PEEK k 10"]);
    });
    book.add("a unit more fits only when all of it is there", "not a microsecond earlier", |s| {
        s.call("RL.DEBIT k 10 1/3s 20");
        s.pass(3 * SECOND - 1);
        s.call("RL.DEBIT k 10 1/3s 1");
        s.pass(1);
        s.calls(&["RL.DEBIT k 10 1/3s 1", "RL.DEBIT k 10 1/3s 1"]);
    });
    book.add("if nothing fits nothing is written", "so the parameters are not remembered", |s| {
        s.calls(&["RL.DEBIT k 10 1 20", "RL.DEBIT k 10 7 1", "RL.PEEK k", "RL.DEBIT k 10 7 0", "RL.PEEK k"]);
        s.calls(&["RL.DEBIT l 0 1 5", "RL.PEEK l", "RL.DEBIT l 5 1 0", "RL.PEEK l"]);
    });
    book.add("capacity 0 on a key in use", "nothing fits, and the use stays", |s| {
        s.calls(&["RL.TOKENBUCKET k 5 1/m 3", "RL.DEBIT k 0 1/m 2", "RL.PEEK k"]);
    });
    book.add("other parameters than before", "raised at once; cut only by a capacity that is smaller", |s| {
        s.calls(&["RL.DEBIT k 10 1/m 18", "RL.DEBIT k 15 1/m 20"]);
        s.pass(MINUTE);
        s.calls(&["RL.DEBIT k 4 1/m 3", "RL.DEBIT k 4 1/m 9", "RL.PEEK k", "RL.DEBIT k 4 1/s 1"]);
        s.pass(SECOND);
        s.calls(&["RL.DEBIT k 4 1/s 9", "RL.PEEK k"]);
    });
    book.add("a debt is owed by the old capacity too", "only a smaller capacity forgives a debt beyond it", |s| {
        s.calls(&["RL.DEBIT k 10 1/m 20", "RL.TOKENBUCKET k 10 1/m 0", "RL.TOKENBUCKET k 12 1/m 0"]);
        s.calls(&["RL.TOKENBUCKET k 9 1/m 0", "RL.TOKENBUCKET k 10 1/s 0"]);
        s.pass(10 * SECOND);
        s.calls(&["RL.TOKENBUCKET k 10 1/s 0", "RL.TOKENBUCKET k 9 1/m"]);
        s.pass(HOUR);
        s.call("RL.PEEK k");
    });
    book.add("the largest numbers", "twice 2^53 - 1 is spent at most", |s| {
        s.call(&format!("RL.DEBIT k {MOST} 1 {MOST}"));
        s.call(&format!("RL.DEBIT k {MOST} 1 {MOST}"));
        s.call(&format!("RL.DEBIT k {MOST} 1 {MOST}"));
        s.pass(SECOND);
        s.call(&format!("RL.DEBIT k {MOST} 1 2"));
        s.call(&format!("RL.DEBIT l {MOST} 1/36500d {MOST}"));
    });
    book.add("token buckets only", "WRONGTYPE names what is there", |s| {
        s.calls(&[
            "RL.LEAKY k 5 1 3",
            "RL.DEBIT k 5 1 1",
            "RL.FIXED l 5 1m 3",
            "RL.DEBIT l 5 1 1",
            "RL.PEEK k",
            "RL.PEEK l",
        ]);
    });
}
