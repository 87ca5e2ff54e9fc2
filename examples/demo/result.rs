//! What came of one run of acts 1 to 3, as lines of progress and as a row of the table.

pub mod hot_key;
pub mod outage;

use std::iter::zip;

use crate::checks::{Faults, Tally, span, turns_told, waits_told};
use crate::fleet::SERVERS;
use crate::table::{Align, table};
use crate::traffic::Traffic;

pub struct RunResult {
    pub act: u8,
    pub who_counts: &'static str,
    pub limit: u64,
    pub traffic: Traffic,
    pub tally: Tally,
    pub faults: Faults,
}

impl RunResult {
    /// What is not as the act claims, if anything.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        let run = format!("act {}, {}", self.act, self.who_counts);
        self.faults.lines().map(move |fault| format!("{run}: {fault}"))
    }

    /// Tells how the run went, before the table puts all of them side by side.
    pub fn report(&self) {
        let seen = zip(SERVERS, self.tally.sent).map(|(name, sent)| format!("{name} {sent}"));
        let (sent, admitted) = (self.tally.total_sent(), self.tally.total_admitted());
        let took = self.traffic.took.as_millis();
        println!("       {}", self.who_counts);
        println!("         {sent} requests in {took} ms, seen by {}", seen.collect::<Vec<_>>().join(", "));
        if let Some(turns) = turns_told(&self.traffic) {
            println!("         the turns of those admitted come after {} s", span(&turns));
        }
        match waits_told(&self.traffic) {
            None => println!("         {admitted} admitted"),
            Some(waits) => {
                println!("         {admitted} admitted, {} refused with Retry-After: {}", sent - admitted, span(&waits))
            }
        }
    }

    fn verdict(&self) -> String {
        let admitted = self.tally.total_admitted();
        if !self.faults.is_empty() {
            "NOT AS IT SHOULD BE".to_owned()
        } else if admitted == self.limit {
            "exact".to_owned()
        } else {
            format!("{} too many", admitted.saturating_sub(self.limit))
        }
    }

    fn row(&self) -> [String; 7] {
        let (sent, admitted) = (self.tally.total_sent(), self.tally.total_admitted());
        [
            self.act.to_string(),
            self.who_counts.to_owned(),
            sent.to_string(),
            admitted.to_string(),
            (sent - admitted).to_string(),
            self.tally.admitted.map(|count| count.to_string()).join("/"),
            self.verdict(),
        ]
    }
}

pub fn summary(results: &[RunResult]) -> String {
    let headings = [
        ("act", Align::Left),
        ("who counts", Align::Left),
        ("sent", Align::Right),
        ("admitted", Align::Right),
        ("refused (429)", Align::Right),
        (&*format!("admitted by {}", SERVERS.join("/")), Align::Left),
        ("verdict", Align::Left),
    ];
    let rows: Vec<_> = results.iter().map(RunResult::row).collect();
    table(headings, &rows)
}
