//! The log, and a list of what was taken when.

use proptest::prelude::*;
use rl_limiter::layout::Stored;
use rl_limiter::several::Summary;
use rl_limiter::sliding_log::{self, Plan};
use rl_limiter::{Cost, Limit, Plan as _, SlidingLog, TooManyEntries, Vote, Window};

use super::{Judged, answer_of, moment};
use crate::model::{Answer, Exact, MOST, NEVER, whole};

pub struct Log {
    limiter: SlidingLog,
    bytes: Vec<u8>,
    vote: Option<Vote<Plan, TooManyEntries>>,
    /// Times and units.
    takings: Vec<(u64, u64)>,
}

impl Log {
    pub fn new(limit: Limit, window: Window) -> Self {
        Self { limiter: SlidingLog::new(limit, window), bytes: Vec::new(), vote: None, takings: Vec::new() }
    }

    fn state(&self) -> Option<sliding_log::State<'_>> {
        match Stored::read(&self.bytes) {
            Ok(Stored::SlidingLog(log)) => Some(log),
            _ => None,
        }
    }

    /// What counts in the window of `at`, where what is later counts as made then.
    fn live(&self, at: u64) -> impl Iterator<Item = (u64, u64)> {
        let window = self.limiter.window().as_micros();
        self.takings.iter().map(move |&(time, units)| (time.min(at), units)).filter(move |(time, _)| time + window > at)
    }

    fn used(&self, at: u64) -> u64 {
        self.live(at).map(|(_, units)| units).sum()
    }
}

impl Judged for Log {
    fn untaken(&self, at: u64, cost: u64) -> Answer {
        let (limit, window, asked) = (self.limiter.limit().get(), self.limiter.window().as_micros(), cost.max(1));
        let remaining = limit - self.used(at);
        let millis = |moment: u64| (moment - at).div_ceil(1_000).min(MOST);
        // In the order of leaving, until enough has left.
        let mut free = remaining;
        let due = self.live(at).find_map(|(time, units)| {
            free += units;
            (free >= asked).then_some(time + window)
        });
        let retry_after = match due {
            _ if asked <= remaining => 0,
            Some(due) if asked <= limit => i64::try_from(millis(due)).unwrap(),
            _ => NEVER,
        };
        let reset_after = self.live(at).last().map_or(0, |(time, _)| millis(time + window));
        Answer { allowed: asked <= remaining, limit, remaining, retry_after, reset_after }
    }

    fn judge(&mut self, at: u64, cost: u64) -> Summary {
        let vote = self.limiter.judge(self.state(), moment(at), Cost::new(cost).unwrap(), u32::MAX, |plan| plan);
        self.vote.insert(vote).summary()
    }

    fn settle(&mut self, at: u64, cost: u64, allowed: bool) -> Result<(), TestCaseError> {
        if cost > 0 {
            self.takings.iter_mut().for_each(|(time, _)| *time = at.min(*time));
        }
        let mut expected = self.untaken(at, cost);
        if allowed && cost > 0 {
            // What has left its window is gone for good, even if the clock then goes back.
            self.takings = self.live(at).collect();
            self.takings.push((at, cost));
            expected.remaining -= cost;
            expected.reset_after = self.untaken(at, 1).reset_after;
        }
        let vote = self.vote.take().unwrap();
        let outcome = vote.outcome(allowed).unwrap();
        prop_assert_eq!(answer_of(outcome.decision), expected);
        match outcome.next {
            Some(plan) if plan.fits() => {
                plan.carry_out(&mut self.bytes);
            }
            Some(plan) => self.bytes = plan.make(&self.bytes),
            None => {}
        }
        Ok(())
    }

    fn share(&self, at: u64) -> Exact {
        let limit = whole(self.limiter.limit().get());
        if limit == whole(0) { limit } else { (&limit - whole(self.used(at))) / limit }
    }
}
