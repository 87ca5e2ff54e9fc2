//! A bucket with rows as one call sees it.

use super::plan::{Own, Plan};
use super::refill::{Held, Level, micros_until_unused, millis};
use super::row::Row;
use super::state::State;
use crate::decision::{Decision, RetryAfter, Taken};
use crate::limiter::LimiterState;
use crate::quantity::{Micros, Name};
use crate::rows::Sought;
use crate::token_bucket::{self, TokenBucket, saturate};

/// What a call sees: the rows at its time, and the bucket.
pub(crate) struct Seen<'a> {
    /// What is under the key; `None` if it is unused.
    pub(crate) state: Option<State<'a>>,
    pub(crate) now: Micros,
    /// The time of the last call that took or gave something, or `now` if the clock went back.
    stamp: Micros,
    /// The tokens in rows that were live at the stamp.
    outstanding: u64,
    /// The rows that have expired since, in the order of their expiry.
    expired: Vec<Held>,
    /// The live rows.
    pub(crate) live: usize,
    /// When the first and the last live row expire.
    pub(crate) first: Micros,
    last: Micros,
    /// The row of the node that calls, and where it is.
    pub(crate) own: Option<(usize, Row)>,
    /// Whether some rows have expired, or are moved because the clock went back.
    sweeps: bool,
}

impl<'a> Seen<'a> {
    pub(crate) fn of(state: Option<State<'a>>, now: Micros, node: Option<Name<'_>>) -> Self {
        let stamp = state.map_or(now, |state| state.bucket().last().min(now));
        let mut seen = Self {
            state,
            now,
            stamp,
            outstanding: 0,
            expired: Vec::new(),
            live: 0,
            first: Micros::MAX,
            last: now,
            own: None,
            sweeps: false,
        };
        let Some(state) = state else { return seen };
        let sought = node.map(Sought::new);
        for (index, stored) in state.rows().enumerate() {
            let row = Row::seen(stored, stamp);
            seen.sweeps |= row.expires <= now || row.is_moved(stored);
            // No call leaves a row that had expired by then. One that somebody planted counts for nothing, so that what a call was told
            // is still so when the row is swept.
            if row.expires <= stamp {
                continue;
            }
            seen.outstanding = seen.outstanding.saturating_add(row.held);
            if row.expires <= now {
                seen.expired.push(Held { until: row.expires, tokens: row.held });
                continue;
            }
            seen.live += 1;
            seen.first = seen.first.min(row.expires);
            seen.last = seen.last.max(row.expires);
            if seen.own.is_none() && sought.is_some_and(|sought| stored.is(sought)) {
                seen.own = Some((index, row));
            }
        }
        seen.expired.sort_unstable();
        if seen.live == 0 && seen.level(state.bucket().limiter()).spent() == 0 {
            return Self { state: None, outstanding: 0, expired: Vec::new(), ..seen };
        }
        seen
    }

    /// The level now, for a call with the parameters `limiter`. What was spent at the stamp counts as spent then, and all time
    /// since at these parameters.
    pub(crate) fn level(&self, limiter: TokenBucket) -> Level {
        let Some(state) = self.state else { return Level::new(limiter, self.now, 0, 0) };
        let mut level = Level::new(limiter, self.stamp, state.bucket().spent_as(limiter), self.outstanding);
        level.pass(&self.expired, self.now);
        level
    }

    /// The live rows, all but that at `except`, in no order.
    pub(crate) fn rows(&self, except: Option<usize>) -> impl Iterator<Item = Held> + Clone + use<'a> {
        let (stamp, now) = (self.stamp, self.now);
        let rows = self.state.into_iter().flat_map(|state| state.rows()).enumerate();
        rows.filter(move |(index, _)| Some(*index) != except)
            .map(move |(_, row)| Held::of(&Row::seen(row, stamp)))
            .filter(move |held| held.until > now)
    }

    /// The microseconds from now until a level has at most so many parts spent.
    pub(crate) fn micros_until(&self, level: Level, most: u128) -> u128 {
        if level.spent() <= most { 0 } else { level.micros_until(most, self.rows(None)) }
    }

    /// The microseconds from now until a level and the rows can't be told from a missing bucket.
    pub(crate) fn micros_until_level_unused(&self, level: Level) -> u128 {
        micros_until_unused(level, self.now, self.first, self.last, self.rows(None))
    }

    /// The same by the remembered parameters.
    pub(crate) fn micros_until_unused(&self) -> u128 {
        let remembered = self.state.map(|state| self.level(state.bucket().limiter()));
        remembered.map_or(0, |level| self.micros_until_level_unused(level))
    }

    /// The answer to a call of `asked` units (at least 1), with nothing taken; `level` is what it sees.
    pub(crate) fn answer(&self, level: Level, asked: u64) -> Decision {
        let same = self.state.is_none_or(|state| state.bucket().limiter() == level.limiter());
        self.answer_by(level, asked, if same { None } else { Some(self.micros_until_unused()) })
    }

    /// No wait is longer than until other parameters, which are remembered, call the bucket unused.
    fn answer_by(&self, level: Level, asked: u64, until_unused: Option<u128>) -> Decision {
        let until_unused = until_unused.unwrap_or(u128::MAX);
        let limiter = level.limiter();
        let capacity = limiter.capacity().get();
        let (full, wanted) = (limiter.parts(capacity), limiter.parts(asked));
        let allowed = level.has_free(asked);
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > capacity {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(millis(self.micros_until(level, full - wanted).min(until_unused)))
        };
        Decision {
            allowed,
            limit: capacity,
            remaining: level.free(),
            retry_after,
            reset_after: millis(self.micros_until_level_unused(level).min(until_unused)),
        }
    }

    /// What a call of cost 1 is told after one that left this level, and remembered its parameters.
    pub(crate) fn answer_after(&self, level: Level) -> Decision {
        self.answer_by(level, 1, None)
    }

    /// Takes units of a level, which must be free.
    pub(crate) fn take(&self, mut level: Level, units: u64) -> Taken<Plan> {
        level.take(level.limiter().parts(units));
        let until_unused = self.micros_until_level_unused(level);
        let next = self.plan(level, Own::Untouched).unused_at(self.now.plus(saturate(until_unused)));
        Taken { next, reset_after: millis(until_unused) }
    }

    /// What to do to leave this level of a bucket, and that of the caller's row.
    pub(crate) fn plan(&self, level: Level, own: Own) -> Plan {
        let bucket = token_bucket::State::at_level(level.limiter(), self.now, level.spent());
        Plan::new(self, bucket, own, Some(level))
    }

    /// What a call does which finds that the clock went back, and changes nothing else.
    pub(crate) fn set_back(&self) -> Option<Plan> {
        let state = self.state.filter(|state| state.bucket().last() > self.now)?;
        let limiter = state.bucket().limiter();
        let bucket = token_bucket::State::at_level(limiter, self.now, state.bucket().spent());
        Some(Plan::new(self, bucket, Own::Untouched, None))
    }

    pub(crate) fn stamp(&self) -> Micros {
        self.stamp
    }

    /// When the first and the last live row expire; if there is none, never and now.
    pub(crate) fn span(&self) -> (Micros, Micros) {
        (self.first, self.last)
    }

    pub(crate) fn sweeps(&self) -> bool {
        self.sweeps
    }
}
