//! A bucket with rows, as their bytes have them, and what the commands of a token bucket make of it. All of them stay under the
//! rule that what is free and what is in rows are together at most the capacity.
//!
//! | bytes | field |
//! | --- | --- |
//! | 4 | tag, version, kind |
//! | 24 | capacity, and the rate's two terms |
//! | 8 | the time of the last call that took or gave something |
//! | 16 | what is spent, in parts of a token |
//! | … | the rows: see the module `rows`; each has tokens (55 bits, and whether the node was put off), expiry in µs, the number of the call, ttl in µs |
//!
//! Without live rows the next call that writes makes it the state of a plain bucket again.

use super::plan::{Own, Plan};
use super::row::{NUMBERS, Row, Stamp};
use super::seen::Seen;
use crate::decision::{Decision, Outcome, RetryAfter, Taken};
use crate::layout;
use crate::limiter::{Fact, LimiterState};
use crate::page::u64_at;
use crate::quantity::{Age, Capacity, Cost, MAX_EXACT, Micros, Rate};
use crate::rows::{self, Rows, Shape};
use crate::several::Vote;
use crate::share::Share;
use crate::token_bucket::{self, TokenBucket, div_floor, saturate};

/// Where the rows begin.
pub(crate) const ROWS: usize = layout::HEAD + 6 * 8;

/// A token bucket of which nodes hold slices.
#[derive(Clone, Copy)]
pub struct State<'a> {
    bucket: token_bucket::State,
    /// `None` in a plain bucket.
    rows: Option<Rows<'a, NUMBERS>>,
}

/// A row to tell people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease<'a> {
    /// Whose it is.
    pub node: &'a [u8],
    /// What is kept of the node.
    pub row: Row,
}

/// What became of a debit.
#[derive(Clone, Copy, Debug)]
pub struct Debit {
    /// What a call of cost 1 would now be told.
    pub decision: Decision,
    /// Units that did not fit any more.
    pub rest: u64,
    /// What is to be done; `None` leaves the state as it is.
    pub next: Option<Plan>,
}

impl From<token_bucket::State> for State<'_> {
    /// A bucket that nobody holds a slice of.
    fn from(bucket: token_bucket::State) -> Self {
        Self { bucket, rows: None }
    }
}

impl<'a> State<'a> {
    /// The bucket and rows in these bytes, whose tag, version and kind have been checked; `None` if they have not the length that
    /// the head demands, or a field of the head is out of its range.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let field = |index: usize| u64_at(bytes, layout::HEAD + index * 8);
        let limiter = TokenBucket::new(Capacity::new(field(0))?, Rate::in_lowest_terms(field(1), field(2))?);
        let spent = u128::from(field(5)) << 64 | u128::from(field(4));
        let bucket = token_bucket::State::new(limiter, Micros::new(field(3))?, spent)?;
        let rows = Rows::read(bytes.get(ROWS..)?).filter(|rows| rows.count() > 0)?;
        Some(Self { bucket, rows: Some(rows) })
    }

    /// The bytes before the rows.
    pub(crate) fn head(bucket: &token_bucket::State) -> [u8; ROWS] {
        let limiter = bucket.limiter();
        let spent = bucket.spent();
        let numbers = [limiter.capacity().get(), limiter.rate().units(), limiter.rate().micros(), bucket.last().get()];
        let fields = numbers.into_iter().flat_map(u64::to_le_bytes).chain(spent.to_le_bytes());
        let mut head = [0; ROWS];
        let all = layout::head_of(layout::LEASES).into_iter().chain(fields);
        head.iter_mut().zip(all).for_each(|(byte, field)| *byte = field);
        head
    }

    /// Whether some leases have this length.
    pub(crate) fn has_length(length: usize) -> bool {
        Shape::<NUMBERS>::has_length(length.saturating_sub(ROWS))
    }

    /// The bucket. What is in rows counts as spent.
    pub fn bucket(&self) -> &token_bucket::State {
        &self.bucket
    }

    pub(crate) fn shape(&self) -> Option<Shape<NUMBERS>> {
        self.rows.map(Rows::shape)
    }

    /// The rows; a plain bucket has none.
    pub(crate) fn rows(&self) -> Rows<'a, NUMBERS> {
        self.rows.unwrap_or(Rows::NONE)
    }

    /// The rows that are live at `now`, in no order.
    pub fn leases(&self, now: Micros) -> impl Iterator<Item = Lease<'a>> + use<'a> {
        let stamp = Stamp::new(self.bucket.last().min(now));
        let seen = move |row| Lease { node: rows::Row::name(row), row: Row::seen(row, stamp) };
        self.rows().iter().map(seen).filter(move |lease| lease.row.expires > now)
    }

    /// Whether it can't be told from a missing one at `now`. With a live row it is in use, even if that holds nothing.
    pub fn is_unused(&self, now: Micros) -> bool {
        self.leases(now).next().is_none() && Seen::of(Some(*self), now, None).state.is_none()
    }

    /// The first moment at which it can't be told from a missing one, if nothing happens until then.
    pub fn unused_at(&self) -> Micros {
        let last = self.bucket.last();
        last.plus(saturate(Seen::of(Some(*self), last, None).micros_until_unused()))
    }

    /// Tells, for people, the remembered parameters and what is used by them, as names and facts.
    pub fn describe(&self, now: Micros, tell: &mut dyn FnMut(&'static str, Fact)) {
        self.bucket.describe(tell);
        let (outstanding, nodes) = self
            .leases(now)
            .fold((0_u64, 0), |(outstanding, nodes), lease| (outstanding.saturating_add(lease.row.held), nodes + 1));
        tell("outstanding", Fact::Units(outstanding.min(MAX_EXACT)));
        tell("nodes", Fact::Units(nodes));
    }

    /// The answer that a call of `cost` with the remembered parameters would get.
    pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
        let seen = Seen::of(Some(*self), now, None);
        seen.answer(seen.level(self.bucket.limiter()), cost.get().max(1))
    }

    /// See [`crate::Limiter::judge`].
    pub fn judge<N, E: Copy>(
        &self,
        limiter: TokenBucket,
        now: Micros,
        cost: Cost,
        store: impl Fn(Plan) -> N,
    ) -> Vote<N, E> {
        let seen = Seen::of(Some(*self), now, None);
        let level = seen.level(limiter);
        let answer = seen.answer(level, cost.get().max(1));
        let take = |units| {
            let Taken { next, reset_after } = seen.take(level, units);
            Ok(Taken { next: store(next), reset_after })
        };
        let full = limiter.parts(limiter.capacity().get());
        let share = |units| Share::new(level.free_parts().saturating_sub(limiter.parts(units)), full);
        Vote::new(cost, answer, || seen.set_back().map(&store), take, share)
    }

    /// See [`crate::Limiter::decide`].
    pub fn decide(&self, limiter: TokenBucket, now: Micros, cost: Cost) -> Outcome<Plan> {
        let seen = Seen::of(Some(*self), now, None);
        let level = seen.level(limiter);
        let units = cost.get();
        if units == 0 || !level.has_free(units) {
            let next = if units > 0 { seen.set_back() } else { None };
            return Outcome { decision: seen.answer(level, units.max(1)), next };
        }
        let Taken { next, reset_after } = seen.take(level, units);
        let decision = Decision {
            allowed: true,
            limit: limiter.capacity().get(),
            remaining: level.free() - units,
            retry_after: RetryAfter::Millis(0),
            reset_after,
        };
        Outcome { decision, next: Some(next) }
    }

    /// See [`TokenBucket::debit`].
    pub fn debit(&self, limiter: TokenBucket, now: Micros, amount: Cost) -> Debit {
        let seen = Seen::of(Some(*self), now, None);
        let mut level = seen.level(limiter);
        let room = limiter.most_spent().saturating_sub(level.spent());
        let taken = amount.get().min(saturate(div_floor(room, u128::from(limiter.rate().micros()))));
        level.take(limiter.parts(taken));
        let next = if taken > 0 {
            Some(seen.plan(level, Own::Untouched))
        } else {
            seen.set_back().filter(|_| amount > Cost::ZERO)
        };
        let decision = if taken > 0 { seen.answer_after(level) } else { seen.answer(level, 1) };
        Debit { decision, rest: amount.get() - taken, next }
    }

    /// See [`crate::Refundable::refund`]. Tokens in rows are not given back. With it comes what a call of cost 1 is then told.
    pub fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> (Decision, Option<Plan>) {
        let limiter = self.bucket.limiter();
        let seen = Seen::of(Some(*self), now, None);
        let before = seen.level(limiter);
        let refilled = limiter.refill(age.unwrap_or(Age::ZERO).as_micros());
        let mut level = before;
        level.refund(limiter.parts(amount.get()).saturating_sub(refilled));
        let next = if level == before {
            seen.set_back().filter(|_| amount > Cost::ZERO)
        } else {
            Some(seen.plan(level, Own::Untouched))
        };
        (seen.answer_after(level), next)
    }
}
