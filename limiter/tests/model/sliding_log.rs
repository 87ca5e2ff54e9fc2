//! The sliding window log by definition: a list of entries, each of which counts for one window from its time on.
//!
//! It knows nothing of the crate but the types of its answers.

use rl_limiter::{Decision, RetryAfter, TooManyEntries};

/// A key.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The remembered parameters.
    pub limit: u64,
    pub window: u64,
    /// Times and units, oldest first. What a refund has emptied stays until it leaves the window.
    pub entries: Vec<(u64, u64)>,
}

impl Model {
    pub fn total(&self) -> u64 {
        self.entries.iter().map(|entry| entry.1).sum()
    }

    pub fn newest(&self) -> Option<u64> {
        self.entries.iter().rev().find(|entry| entry.1 > 0).map(|entry| entry.0)
    }

    pub fn is_unused(&self, now: u64) -> bool {
        self.newest().is_none_or(|newest| newest.min(now) + self.window <= now)
    }

    fn trim(&mut self) {
        while self.entries.last().is_some_and(|entry| entry.1 == 0) {
            self.entries.pop();
        }
    }

    /// Takes out what is later than `now`.
    fn take_later(&mut self, now: u64) -> u64 {
        let later = self.entries.iter().filter(|entry| entry.0 > now).map(|entry| entry.1).sum();
        if later > 0 {
            self.entries.retain(|entry| entry.0 <= now);
            self.trim();
        }
        later
    }

    pub fn see_from(&mut self, now: u64) {
        let later = self.take_later(now);
        if later > 0 {
            self.add(now, later);
        }
    }

    pub fn add(&mut self, now: u64, cost: u64) {
        match self.entries.last_mut() {
            Some(last) if last.0 == now => last.1 += cost,
            _ => self.entries.push((now, cost)),
        }
    }

    pub fn answer(&self, limit: u64, window: u64, now: u64, asked: u64) -> Decision {
        let unused = self.is_unused(now);
        let live: Vec<_> = self
            .entries
            .iter()
            .map(|&(time, cost)| (time.min(now), cost))
            .filter(|&(time, cost)| !unused && cost > 0 && now < time + window)
            .collect();
        let used: u64 = live.iter().map(|entry| entry.1).sum();
        let all_gone = self.newest().map_or(now, |newest| newest.min(now) + self.window);
        let millis = |until: u64| (until.min(all_gone) - now).div_ceil(1_000);
        let allowed = used + asked <= limit;
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > limit {
            RetryAfter::Never
        } else {
            let mut left = used;
            let last = live.iter().find(|entry| {
                left -= entry.1;
                left + asked <= limit
            });
            RetryAfter::Millis(millis(last.unwrap().0 + window))
        };
        let reset_after = live.last().map_or(0, |entry| millis(entry.0 + window));
        Decision { allowed, limit, remaining: limit.saturating_sub(used), retry_after, reset_after }
    }

    pub fn decide(
        &mut self,
        limit: u64,
        window: u64,
        now: u64,
        cost: u64,
        most: u32,
    ) -> Result<Decision, TooManyEntries> {
        let mut decision = self.answer(limit, window, now, cost.max(1));
        if cost == 0 {
            return Ok(decision);
        }
        if !decision.allowed {
            if !self.is_unused(now) {
                self.see_from(now);
            }
            return Ok(decision);
        }
        let mut next = self.clone();
        if self.is_unused(now) {
            next.entries.clear();
        }
        let later = next.take_later(now);
        next.entries.retain(|entry| now < entry.0 + window);
        if next.total() == 0 {
            next.entries.clear();
        }
        next.add(now, later + cost);
        if next.entries.len() > most as usize {
            return Err(TooManyEntries);
        }
        (next.limit, next.window) = (limit, window);
        *self = next;
        decision.remaining -= cost;
        decision.reset_after = window.div_ceil(1_000);
        Ok(decision)
    }

    pub fn refund(&mut self, now: u64, amount: u64, age: Option<u64>) {
        if amount == 0 || self.is_unused(now) {
            return;
        }
        self.see_from(now);
        let (window, mut amount) = (self.window, amount);
        let before = self.total();
        let mut chosen: Vec<_> = self
            .entries
            .iter_mut()
            .filter(|entry| now < entry.0 + window)
            .filter(|entry| age.is_none_or(|age| entry.0 + age <= now))
            .collect();
        if age.is_some() {
            chosen.reverse();
        }
        for entry in chosen {
            let given = amount.min(entry.1);
            entry.1 -= given;
            amount -= given;
        }
        if self.total() < before {
            self.trim();
            let zeros = self.entries.iter().take_while(|entry| entry.1 == 0).count();
            self.entries.drain(..zeros);
        }
    }
}
