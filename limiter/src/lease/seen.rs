//! A bucket with rows as one call sees it.

use super::crest::Expiries;
use super::plan::{Own, Plan};
use super::refill::{Level, millis};
use super::row::{Held, Row, Stamp};
use super::state::State;
use crate::decision::{Decision, RetryAfter, Taken};
use crate::limiter::LimiterState;
use crate::quantity::{Micros, Name};
use crate::rows::{Rows, Sought};
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
    /// Tokens of the rows that have expired since, and when the first and the last did.
    expired: u64,
    first_expired: Micros,
    last_expired: Micros,
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
        let none = Self {
            state,
            now,
            stamp,
            outstanding: 0,
            expired: 0,
            first_expired: now,
            last_expired: stamp,
            live: 0,
            first: Micros::MAX,
            last: now,
            own: None,
            sweeps: false,
        };
        let Some(state) = state else { return none };
        let mut seen = none.with_rows(state);
        seen.own = node.and_then(|node| seen.row_of(Sought::new(node), state));
        if seen.live == 0 && seen.level(state.bucket().limiter()).spent() == 0 {
            return Self { state: None, outstanding: 0, expired: 0, ..seen };
        }
        seen
    }

    /// Looks at every row; again only where one has expired.
    fn with_rows(self, state: State<'a>) -> Self {
        let (now, stamp, seen_from) = (self.now.get(), self.stamp.get(), Stamp::new(self.stamp));
        let mut moved = false;
        let all = Sum::of(state.rows().iter().map(|row| {
            let held = Held::seen(row, seen_from);
            moved |= held.is_moved(row);
            held
        }));
        let (mut live, mut expired) = (all, Sum::NONE);
        if all.first <= now {
            let rows = || state.rows().iter().map(|row| Held::seen(row, seen_from));
            live = Sum::of(rows().filter(|held| held.until > now));
            // No call leaves a row that had expired at its time, the stamp. One that somebody planted counts for nothing, so that what a
            // call was told is still so when the row is swept.
            expired = Sum::of(rows().filter(|held| stamp < held.until && held.until <= now));
        }
        let moment = |micros| Micros::new(micros).unwrap_or(Micros::MAX);
        Self {
            outstanding: saturate(live.tokens + expired.tokens),
            expired: saturate(expired.tokens),
            first_expired: moment(expired.first),
            last_expired: moment(expired.last),
            live: live.count,
            first: moment(live.first),
            last: moment(live.last).max(self.now),
            sweeps: moved || live.count < all.count,
            ..self
        }
    }

    /// The live row of a node, and where it is.
    fn row_of(&self, node: Sought<'_>, state: State<'a>) -> Option<(usize, Row)> {
        let stamp = Stamp::new(self.stamp);
        let mut rows = state.rows().iter().enumerate().filter(|(_, row)| row.is(node));
        let is_live = |row: &Row| row.expires > self.now;
        rows.find_map(|(index, row)| Some((index, Row::seen(row, stamp))).filter(|(_, row)| is_live(row)))
    }

    /// The level now, for a call with the parameters `limiter`. What was spent at the stamp counts as spent then, and all time
    /// since at these parameters.
    pub(crate) fn level(&self, limiter: TokenBucket) -> Level {
        let Some(state) = self.state else { return Level::new(limiter, self.now, 0, 0) };
        let mut level = Level::new(limiter, self.stamp, state.bucket().spent_as(limiter), self.outstanding);
        if self.expired == 0 {
            level.advance(self.now);
            return level;
        }
        let (stamp, first, last) = (self.stamp.get(), self.first_expired.get(), self.last_expired.get());
        level.pass(&Expiries::new(state.rows(), self.stamp(), stamp, first, last), self.expired, self.now);
        level
    }

    /// The live rows.
    pub(crate) fn live_rows(&self) -> Expiries<'a> {
        let rows = self.state.map_or(Rows::NONE, |state| state.rows());
        Expiries::new(rows, self.stamp(), self.now.get(), self.first.get(), self.last.get())
    }

    /// The microseconds from now until the remembered parameters call the bucket unused.
    pub(crate) fn micros_until_unused(&self) -> u128 {
        self.micros_until_unused_beside(&self.live_rows())
    }

    /// The same, of these rows, which are the live ones.
    fn micros_until_unused_beside(&self, rows: &Expiries<'_>) -> u128 {
        let remembered = self.state.map(|state| self.level(state.bucket().limiter()));
        remembered.map_or(0, |level| level.micros_until_unused(self.last, rows))
    }

    /// The answer to a call of `asked` units (at least 1), with nothing taken; `level` is what it sees. No wait is longer than until
    /// other parameters, which are remembered, call the bucket unused.
    pub(crate) fn answer(&self, level: Level, asked: u64) -> Decision {
        let rows = self.live_rows();
        let same = self.state.is_none_or(|state| state.bucket().limiter() == level.limiter());
        let until_unused = if same { u128::MAX } else { self.micros_until_unused_beside(&rows) };
        self.answer_by(level, asked, &rows, until_unused)
    }

    fn answer_by(&self, level: Level, asked: u64, rows: &Expiries<'_>, until_unused: u128) -> Decision {
        let limiter = level.limiter();
        let capacity = limiter.capacity().get();
        let (full, wanted) = (limiter.parts(capacity), limiter.parts(asked));
        let allowed = level.has_free(asked);
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > capacity {
            RetryAfter::Never
        } else {
            RetryAfter::Millis(millis(level.micros_until(full - wanted, rows).min(until_unused)))
        };
        Decision {
            allowed,
            limit: capacity,
            remaining: level.free(),
            retry_after,
            reset_after: millis(level.micros_until_unused(self.last, rows).min(until_unused)),
        }
    }

    /// What a call of cost 1 is told after one that left this level, and remembered its parameters.
    pub(crate) fn answer_after(&self, level: Level) -> Decision {
        self.answer_by(level, 1, &self.live_rows(), u128::MAX)
    }

    /// Takes units of a level, which must be free.
    pub(crate) fn take(&self, mut level: Level, units: u64) -> Taken<Plan> {
        level.take(level.limiter().parts(units));
        let until_unused = level.micros_until_unused(self.last, &self.live_rows());
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

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(self.stamp)
    }

    /// When the first and the last live row expire; if there is none, never and now.
    pub(crate) fn span(&self) -> (Micros, Micros) {
        (self.first, self.last)
    }

    pub(crate) fn sweeps(&self) -> bool {
        self.sweeps
    }
}

/// What rows come to.
#[derive(Clone, Copy)]
struct Sum {
    count: usize,
    tokens: u128,
    first: u64,
    last: u64,
}

impl Sum {
    const NONE: Self = Self { count: 0, tokens: 0, first: u64::MAX, last: 0 };

    fn of(rows: impl Iterator<Item = Held>) -> Self {
        rows.fold(Self::NONE, |sum, held| Self {
            count: sum.count + 1,
            tokens: sum.tokens + u128::from(held.tokens),
            first: sum.first.min(held.until),
            last: sum.last.max(held.until),
        })
    }
}
