//! The concurrency limit: at most `limit` units held at once.
//!
//! Who wants a place says its name and for how long it may keep the place without being heard of. It gives the place back
//! when it is done, or says its name again to keep it; who crashes does neither, and its place comes back after that time by itself.
//!
//! Holders are rows in no order, each with the units it holds, its ttl and its expiry, so a state isn't a value: [`State`] is a view
//! over its bytes, what is to be done to them is a [`Plan`], and a plan says which bytes it touched: of one row, whatever their number.
//! Every call looks at all holders once.
//!
//! ```
//! use rl_limiter::layout::Stored;
//! use rl_limiter::concurrency::Request;
//! use rl_limiter::{Concurrency, Limit, Micros, Name, Plan, Window};
//!
//! // Five at once; who is not heard of for half a minute is gone.
//! let limiter = Concurrency::new(Limit::new(5).unwrap(), Window::parse("ttl", b"30").unwrap());
//! let noon = Micros::new(1_796_040_000_000_000).unwrap();
//! let holder = |name: &'static str| Request::of(Name::new(name.as_bytes()).unwrap());
//! # fn state(bytes: &[u8]) -> rl_limiter::concurrency::State<'_> {
//! #     match Stored::read(bytes) { Ok(Stored::Concurrency(state)) => state, _ => panic!() }
//! # }
//!
//! // There is nothing yet, so the plan is to make the bytes.
//! let first = limiter.decide(None, noon, holder("worker-1"), 1_000).unwrap();
//! let mut bytes = first.next.unwrap().make(&[]);
//!
//! // A second holder.
//! let second = limiter.decide(Some(state(&bytes)), noon, holder("worker-2"), 1_000).unwrap();
//! assert_eq!(second.decision.remaining, 3);
//! bytes = second.next.unwrap().make(&bytes);
//!
//! // The first one lives on: its place is renewed in the bytes that there are.
//! let again = limiter.decide(Some(state(&bytes)), noon, holder("worker-1"), 1_000).unwrap();
//! assert_eq!(again.decision.remaining, 3);
//! assert!(again.next.unwrap().fits());
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `survey` | the holders as one call sees them |
//! | `waiting` | how long until enough has come back |
//! | `plan` | what a call does to the bytes |
//!
//! Source: semaphores with timeouts in a sorted set, J. Carlson, "Redis in Action", 2013, chapter 6.3; here by one clock, with costs, and in
//! 32 bytes a holder of a short name.

mod plan;
mod survey;
mod waiting;

use self::plan::Change;
pub use self::plan::Plan;
use self::survey::Survey;
use crate::decision::{Decision, Outcome, RetryAfter, millis};
use crate::layout;
use crate::limiter::Fact;
use crate::page::u64_at;
use crate::quantity::{Cost, Limit, MAX_EXACT, Micros, Name, Window};
use crate::rows::{self, Row, Rows, Shape, Sought};

/// The most holders that a state can have.
pub const MOST_HOLDERS: usize = rows::MOST;

/// Units, ttl and expiry.
const NUMBERS: usize = 3;
const LIMIT: usize = layout::HEAD;
/// Where the rows begin.
const ROWS: usize = LIMIT + 8;

/// A limit for what is held at once, and how long a holder keeps its place without renewing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    limit: Limit,
    ttl: Window,
}

/// Who asks for a place, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'n> {
    /// The holder. The same name is the same holder.
    pub holder: Name<'n>,
    /// The units that it is to hold. 0 only looks: it is answered as 1 would be.
    pub cost: Cost,
    /// Whether it only keeps a place that it has, and takes no new one.
    pub renew_only: bool,
}

impl<'n> Request<'n> {
    /// One unit, for a holder that has a place or wants one.
    pub const fn of(holder: Name<'n>) -> Self {
        Self { holder, cost: Cost::ONE, renew_only: false }
    }
}

/// Holders, as their bytes have them.
#[derive(Clone, Copy)]
pub struct State<'a> {
    limit: Limit,
    rows: Rows<'a, NUMBERS>,
}

/// A holder's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Whose it is.
    pub holder: &'a [u8],
    /// Units.
    pub units: u64,
    /// For how long it was taken or renewed last, in microseconds.
    pub ttl: u64,
    /// The first moment at which it is held no more.
    pub expiry: Micros,
}

/// The call would be allowed, but its holder would be one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyHolders;

impl Concurrency {
    /// At most `limit` units at once, each held for `ttl` at most unless renewed.
    pub const fn new(limit: Limit, ttl: Window) -> Self {
        Self { limit, ttl }
    }

    /// Decides a call at `now`. A missing state is an unused limiter. A new holder is an error if it would be allowed and there are `most`
    /// already.
    ///
    /// Who has a place always keeps it, at up to the units that it holds, whatever the limit is now. If it asks for more than fits
    /// it is denied, and keeps what it has for another ttl.
    pub fn decide(
        self,
        state: Option<State<'_>>,
        now: Micros,
        request: Request<'_>,
        most: usize,
    ) -> Result<Outcome<Plan>, TooManyHolders> {
        let survey = Survey::of(state, now, Some(request.holder));
        let (limit, cost) = (self.limit.get(), request.cost.get());
        let asked = cost.max(1);
        let held = survey.own.map(|(_, place)| place.units);
        let fits = survey.others.saturating_add(asked) <= limit && (held.is_some() || !request.renew_only);
        let allowed = fits || held.is_some_and(|held| asked <= held);

        // What the holder has after the call, and until when.
        let renewed = (held.unwrap_or_default(), now.plus(self.ttl.as_micros()));
        let own = match (allowed, survey.own) {
            (true, _) if cost > 0 => Some((cost, renewed.1)),
            (false, Some(_)) if cost > 0 => Some(renewed),
            (_, own) => own.map(|(_, place)| (place.units, place.expiry)),
        };
        let (units, end) = own.unwrap_or((0, now));
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else if asked > limit || request.renew_only && held.is_none() {
            RetryAfter::Never
        } else {
            let wait = survey.wait(state, survey.others.saturating_add(asked).saturating_sub(limit));
            let too_late = request.renew_only && now.plus(wait.saturating_mul(1_000)) >= end;
            if too_late { RetryAfter::Never } else { RetryAfter::Millis(wait) }
        };
        let decision = Decision {
            allowed,
            limit,
            remaining: limit.saturating_sub(survey.others.saturating_add(units)),
            retry_after,
            reset_after: millis(survey.last.max(end).since(now)),
        };
        if cost == 0 {
            return Ok(Outcome { decision, next: None });
        }
        if !allowed && held.is_none() {
            return Ok(Outcome { decision, next: survey.only_seen(state) });
        }
        if held.is_none() && survey.live >= most.min(MOST_HOLDERS) {
            return Err(TooManyHolders);
        }
        let remembered = if allowed && limit > 0 { Some(self.limit) } else { state.map(|state| state.limit) };
        let numbers = [units, self.ttl.as_micros(), end.get()];
        let change = match survey.own {
            Some((index, _)) => Change::Renew { index, numbers },
            None => Change::add(request.holder, numbers),
        };
        let next = Plan::new(state, &survey, remembered.unwrap_or(self.limit), change, survey.last.max(end));
        Ok(Outcome { decision, next: Some(next) })
    }
}

impl<'a> Place<'a> {
    /// A place as it is at `now`.
    fn seen(row: Row<'a, NUMBERS>, now: Micros) -> Self {
        let [_, ttl, _] = row.numbers();
        let Kept { units, until } = Kept::seen(row, now);
        let expiry = Micros::new(until).unwrap_or(Micros::MAX);
        Self { holder: row.name(), units, ttl: ttl.min(Window::MAX.as_micros()), expiry }
    }

    fn numbers(self) -> [u64; NUMBERS] {
        [self.units, self.ttl, self.expiry.get()]
    }
}

/// Units of a place, and when it expires, in microseconds since the epoch.
#[derive(Clone, Copy)]
struct Kept {
    units: u64,
    until: u64,
}

impl Kept {
    /// As it is at `now`: it ends no later than its ttl from then. Numbers that no call can have written are taken as the nearest.
    fn seen(row: Row<'_, NUMBERS>, now: Micros) -> Self {
        let [units, ttl, end] = row.numbers();
        let longest = Window::MAX.as_micros().min(Micros::MAX.since(now));
        // A moment: it can't overflow.
        let latest = now.get().wrapping_add(ttl.min(longest));
        Self { units: units.min(MAX_EXACT), until: end.min(latest) }
    }

    /// Microseconds by which the row from which it was read has it end later.
    fn ends_later(self, row: Row<'_, NUMBERS>) -> u64 {
        let [_, _, end] = row.numbers();
        end - self.until
    }
}

impl<'a> State<'a> {
    /// The holders in these bytes, whose tag, version and kind have been checked; `None` if they have not the length that the head
    /// demands, or a field of the head is out of its range.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let limit = Limit::new(u64_at(bytes, LIMIT)).filter(|limit| limit.get() > 0)?;
        let rows = Rows::read(bytes.get(ROWS..)?).filter(|rows| rows.count() > 0)?;
        Some(Self { limit, rows })
    }

    /// Whether some holders have this length.
    pub(crate) fn has_length(length: usize) -> bool {
        Shape::<NUMBERS>::has_length(length.saturating_sub(ROWS))
    }

    /// The place that a holder has at `now`, and its index.
    fn place_of(&self, holder: Sought<'_>, now: Micros) -> Option<(usize, Place<'a>)> {
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.is(holder));
        rows.map(|(index, row)| (index, Place::seen(row, now))).find(|(_, place)| place.expiry > now)
    }

    /// What is kept of all places but that at an index, those that have expired too, in no order.
    fn kept(&self, now: Micros, but: usize) -> impl Iterator<Item = (Row<'a, NUMBERS>, Kept)> + Clone + use<'a> {
        let others = self.rows.iter().enumerate().filter(move |&(index, _)| index != but);
        others.map(move |(_, row)| (row, Kept::seen(row, now)))
    }

    /// The limit of the last call that was allowed.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// The moment at which the last place has expired.
    pub fn unused_at(&self, now: Micros) -> Micros {
        Survey::of(Some(*self), now, None).last
    }

    /// Whether no place is held at `now`.
    pub fn is_unused(&self, now: Micros) -> bool {
        !self.rows.iter().any(|row| Place::seen(row, now).expiry > now)
    }

    /// The places that are held at `now`, in no order.
    pub fn places(&self, now: Micros) -> impl Iterator<Item = Place<'a>> + use<'a> {
        self.rows.iter().map(move |row| Place::seen(row, now)).filter(move |place| place.expiry > now)
    }

    /// Tells, for people, the remembered limit and what is held, as names and facts.
    pub fn describe(&self, now: Micros, tell: &mut dyn FnMut(&'static str, Fact)) {
        let survey = Survey::of(Some(*self), now, None);
        tell("limit", Fact::Units(self.limit.get()));
        tell("used", Fact::Units(survey.others.min(MAX_EXACT)));
        tell("holders", Fact::Units(survey.live as u64));
    }

    /// The answer that a new holder's call of `cost` with the remembered limit would get, with nothing taken.
    pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
        let survey = Survey::of(Some(*self), now, None);
        let (limit, asked) = (self.limit.get(), cost.get().max(1));
        let in_the_way = survey.others.saturating_add(asked).saturating_sub(limit);
        let retry_after = match in_the_way {
            0 => RetryAfter::Millis(0),
            _ if asked > limit => RetryAfter::Never,
            units => RetryAfter::Millis(survey.wait(Some(*self), units)),
        };
        Decision {
            allowed: in_the_way == 0,
            limit,
            remaining: limit.saturating_sub(survey.others),
            retry_after,
            reset_after: millis(survey.last.since(now)),
        }
    }

    /// Gives back a holder's place: how many units that are, and what is to be done. Of no holder nothing is.
    pub fn release(&self, now: Micros, holder: Name<'_>) -> (u64, Option<Plan>) {
        let survey = Survey::of(Some(*self), now, Some(holder));
        match survey.own {
            None => (0, survey.only_seen(Some(*self))),
            Some((index, place)) => {
                let survey = Survey { live: survey.live - 1, ..survey };
                let plan = Plan::new(Some(*self), &survey, self.limit, Change::Release { index }, survey.last);
                (place.units, Some(plan))
            }
        }
    }

    /// What a call that takes nothing does: holders keep their places when the clock went back, for their ttl from now at most. `None`
    /// if none ends later.
    pub fn seen_from(&self, now: Micros) -> Option<Plan> {
        Survey::of(Some(*self), now, None).only_seen(Some(*self))
    }
}
