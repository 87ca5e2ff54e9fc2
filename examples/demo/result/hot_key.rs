//! What came of one run of act 5, as lines of progress and as a row of the table.

use crate::checks::{Faults, Tally};
use crate::limiters::Counting;
use crate::table::{Align, table};

pub struct HotKeyResult {
    pub counting: Counting,
    /// What the bucket allows in the time that the run took.
    pub most: u64,
    pub tally: Tally,
    /// To Redis.
    pub calls: u64,
    pub faults: Faults,
}

impl HotKeyResult {
    fn who_decides(&self) -> &'static str {
        match self.counting {
            Counting::Leased => "each server, by slices",
            _ => "Redis, each request",
        }
    }

    /// What is not as the act claims, if anything.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        let run = format!("act 5, {}", self.who_decides());
        self.faults.lines().map(move |fault| format!("{run}: {fault}"))
    }

    /// Tells how the run went, before the table puts both side by side.
    pub fn report(&self) {
        let [sent, admitted] = [self.tally.total_sent(), self.tally.total_admitted()];
        let (who, most, calls) = (self.who_decides(), self.most, self.calls);
        println!("       {who}: {admitted} of {sent} admitted, {most} are allowed; {calls} calls to Redis");
    }

    fn row(&self) -> [String; 7] {
        let verdict = if self.faults.is_empty() { "never above the bucket" } else { "NOT AS IT SHOULD BE" };
        [
            "5".to_owned(),
            self.who_decides().to_owned(),
            self.tally.total_sent().to_string(),
            self.tally.total_admitted().to_string(),
            self.most.to_string(),
            self.calls.to_string(),
            verdict.to_owned(),
        ]
    }
}

pub fn summary(results: &[HotKeyResult]) -> String {
    let headings = [
        ("act", Align::Left),
        ("who decides", Align::Left),
        ("requests", Align::Right),
        ("admitted", Align::Right),
        ("allowed", Align::Right),
        ("calls to Redis", Align::Right),
        ("verdict", Align::Left),
    ];
    let rows: Vec<_> = results.iter().map(HotKeyResult::row).collect();
    table(headings, &rows)
}
