//! What came of one run of act 4, as lines of progress and as a row of the table.

use std::time::Duration;

use redis_rl_client::Outage;

use crate::checks::{Faults, Tally};
use crate::fleet::SERVERS;
use crate::table::{Align, table};

pub struct OutageResult {
    pub outage: Outage,
    pub limit: u64,
    pub before: Tally,
    pub away: Tally,
    pub after: Tally,
    pub slowest_away: Duration,
    pub back_after: Duration,
    pub faults: Faults,
}

impl OutageResult {
    fn policy(&self) -> &'static str {
        match self.outage {
            Outage::Open => "open: all pass",
            Outage::Closed => "closed: all get 503",
            Outage::LocalShare => "local share: a part each",
        }
    }

    /// What is not as the act claims, if anything.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        let run = format!("act 4, {}", self.policy());
        self.faults.lines().map(move |fault| format!("{run}: {fault}"))
    }

    /// Tells how the run went, before the table puts all of them side by side.
    pub fn report(&self) {
        let [before, away, after] = [&self.before, &self.away, &self.after].map(share);
        let (slowest, back) = (self.slowest_away.as_millis(), self.back_after.as_millis());
        println!("       {}", self.policy());
        println!("         admitted {before}; Redis is killed; {away}; Redis is back; {after}");
        println!("         slowest answer without Redis {slowest} ms; all servers back on Redis after {back} ms");
    }

    fn verdict(&self) -> String {
        if !self.faults.is_empty() {
            return "NOT AS IT SHOULD BE".to_owned();
        }
        let (admitted, limit) = (self.away.total_admitted(), self.limit);
        match self.outage {
            Outage::Open => "exact; no limit while away".to_owned(),
            Outage::Closed => "exact; no service while away".to_owned(),
            Outage::LocalShare if admitted == limit => "exact; the limit while away".to_owned(),
            Outage::LocalShare => format!("exact; {admitted} for {limit} while away"),
        }
    }

    fn row(&self) -> [String; 8] {
        let by_redis = self.before.total_admitted() + self.after.total_admitted();
        [
            "4".to_owned(),
            self.policy().to_owned(),
            share(&self.before),
            share(&self.away),
            share(&self.after),
            by_redis.to_string(),
            self.away.admitted.map(|count| count.to_string()).join("/"),
            self.verdict(),
        ]
    }
}

/// `60 of 60`: how many were admitted.
fn share(tally: &Tally) -> String {
    format!("{} of {}", tally.total_admitted(), tally.total_sent())
}

pub fn summary(results: &[OutageResult]) -> String {
    let headings = [
        ("act", Align::Left),
        ("while Redis is away", Align::Left),
        ("before", Align::Right),
        ("away", Align::Right),
        ("back", Align::Right),
        ("by Redis", Align::Right),
        (&*format!("away, by {}", SERVERS.join("/")), Align::Left),
        ("verdict", Align::Left),
    ];
    let rows: Vec<_> = results.iter().map(OutageResult::row).collect();
    table(headings, &rows)
}
