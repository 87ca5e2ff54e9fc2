//! The sliding window log: at most `limit` units in any stretch of time as long as `window`, exactly.
//!
//! It remembers when what was taken: an entry of a time and a cost counts from that time on for one window, not a moment
//! longer. Requests of one microsecond share an entry. There is no edge and no estimate; the price is memory, 7 to 10 bytes an
//! entry.
//!
//! The entries lie in blocks with sums, in a ring, so that what any call asks is answered in O(log n): how much is live, which entry
//! must leave before a call fits, what a refund takes away. A call that takes drops what has left its window and writes
//! a few dozen bytes. A log is big, so unlike the other states it isn't a value: [`State`] is a view over its bytes,
//! what is to be done to them is a [`Plan`], and a plan says which bytes it touched.
//!
//! ```
//! use rl_limiter::layout::Stored;
//! use rl_limiter::{Cost, Limit, Micros, Plan, SlidingLog, Window};
//!
//! // Five in any minute.
//! let log = SlidingLog::new(Limit::new(5).unwrap(), Window::parse("window", b"1m").unwrap());
//! let noon = Micros::new(1_796_040_000_000_000).unwrap();
//!
//! // There is nothing yet, so the plan is to make the bytes.
//! let first = log.decide(None, noon, Cost::ONE, 100_000).unwrap();
//! let mut bytes = first.next.unwrap().make(&[]);
//!
//! // From now on it is mostly to change some.
//! let Ok(Stored::SlidingLog(state)) = Stored::read(&bytes) else { panic!() };
//! let second = log.decide(Some(state), noon, Cost::new(3).unwrap(), 100_000).unwrap();
//! assert_eq!(second.decision.remaining, 1);
//! let plan = second.next.unwrap();
//! assert!(plan.fits());
//! assert!(!plan.carry_out(&mut bytes).ranges().is_empty());
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `head` | the fields in front |
//! | `shape` | what lies where, and by how much a log grows |
//! | `block` | entries as bytes |
//! | `sums` | how many units blocks hold |
//! | `ring` | entries in order: looking |
//! | `writer` | entries in order: changing |
//!
//! Source: the log of timestamps in a sorted set, as in ClassDojo, "Better Rate Limiting With Redis Sorted Sets", 2015; here with costs,
//! and in 7 bytes instead of 126.

mod block;
mod head;
mod ring;
mod shape;
mod sums;
mod writer;

use std::ops::Range;

use self::block::Entry;
use self::head::Head;
use self::ring::{Position, Ring};
use self::shape::Shape;
use self::writer::{Writer, moved};
use crate::decision::{Decision, Outcome, RetryAfter, Taken, millis};
use crate::limiter::Fact;
use crate::page::Touched;
use crate::plan::{self, Plan as _};
use crate::quantity::{Age, Cost, Limit, Micros, Window};
use crate::several::Vote;
use crate::share::Share;

/// A limit for any stretch of time as long as the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: Limit,
    window: Window,
}

/// A log, as its bytes have it.
#[derive(Clone, Copy)]
pub struct State<'a> {
    head: Head,
    bytes: &'a [u8],
}

/// The call would be allowed, but its entry would be one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEntries;

/// What a call does to a log.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The head, with what is dropped left out.
    kept: Head,
    /// What is added.
    appended: Option<Entry>,
    /// Units that are then taken away, counted from 0 at the oldest.
    removed: Range<u64>,
    /// The shape that it needs, if that is another one or its bytes must be written anew.
    shape: Option<Shape>,
}

impl SlidingLog {
    /// At most `limit` units in any stretch as long as `window`.
    pub const fn new(limit: Limit, window: Window) -> Self {
        Self { limit, window }
    }

    /// The most that any window admits.
    pub const fn limit(self) -> Limit {
        self.limit
    }

    /// The length of the windows.
    pub const fn window(self) -> Window {
        self.window
    }

    /// Judges a call of `cost` at `now`: its answers, and what there is to do, whether or not it takes anything. That may be for other
    /// limits to say too. A missing state is an unused limiter. A cost of 0 takes nothing and is answered as a cost of 1 would be. To
    /// take is an error if that left more than `most` entries; those that a refund has emptied count among them until they leave the
    /// window. `plan` is the form in which the vote keeps plans.
    pub fn judge<N>(
        self,
        state: Option<State<'_>>,
        now: Micros,
        cost: Cost,
        most: u32,
        plan: impl Fn(Plan) -> N,
    ) -> Vote<N, TooManyEntries> {
        let look = Look::new(self, state, now);
        let answer = look.answer(cost.get().max(1));
        let take = |units| {
            let Taken { next, reset_after } = look.take(units, most)?;
            Ok(Taken { next: plan(next), reset_after })
        };
        Vote::new(cost, answer, || look.set_back().map(&plan), take, |taken| look.share(taken))
    }

    /// Decides a call of `cost` at `now` that asks no other limit: what its vote comes to, and nothing more is worked out. An error
    /// if it would be allowed and left more than `most` entries.
    pub fn decide(
        self,
        state: Option<State<'_>>,
        now: Micros,
        cost: Cost,
        most: u32,
    ) -> Result<Outcome<Plan>, TooManyEntries> {
        let look = Look::new(self, state, now);
        let answer = look.answer(cost.get().max(1));
        match cost.get() {
            0 => Ok(Outcome { decision: answer, next: None }),
            units if answer.allowed => Ok(answer.having_taken(units, look.take(units, most)?)),
            _ => Ok(Outcome { decision: answer, next: look.set_back() }),
        }
    }

    /// What [`SlidingLog::decide`] would say, with nothing taken: `remaining` and `reset_after` are those before the call.
    pub fn peek(self, state: Option<State<'_>>, now: Micros, cost: Cost) -> Decision {
        Look::new(self, state, now).answer(cost.get().max(1))
    }
}

/// A log as a call sees it.
struct Look<'a> {
    limiter: SlidingLog,
    now: Micros,
    /// `None` if it is unused.
    state: Option<State<'a>>,
    /// The first entry in the window of the call, and units of those before it.
    start: Position,
    left: u64,
}

impl<'a> Look<'a> {
    fn new(limiter: SlidingLog, state: Option<State<'a>>, now: Micros) -> Self {
        let state = state.filter(|state| !state.is_unused(now));
        let start = state.map_or(Position { block: 0, entry: 0 }, |state| state.first_live(now, limiter.window));
        let left = state.map_or(0, |state| state.ring().before(start));
        Self { limiter, now, state, start, left }
    }

    /// Microseconds until an entry of this time has left the window of the call, or the remembered parameters call all unused.
    fn until_left(&self, state: &State<'_>, time: u64) -> u64 {
        let left = time.min(self.now.get()).saturating_add(self.limiter.window.as_micros());
        let unused = state.head.newest.min(self.now.get()).saturating_add(state.head.limiter.window.as_micros());
        left.min(unused).saturating_sub(self.now.get())
    }

    /// The answer to a call of `asked` units.
    fn answer(&self, asked: u64) -> Decision {
        let limit = self.limiter.limit.get();
        let live = self.live();
        let remaining = limit.saturating_sub(live);
        let allowed = asked <= remaining;
        let retry_after = match self.state {
            _ if allowed => RetryAfter::Millis(0),
            Some(state) if asked <= limit => {
                // When the entry has left that holds the last unit which is in the way.
                let in_the_way = live.saturating_add(asked).saturating_sub(limit);
                let last = state.ring().find(self.left.saturating_add(in_the_way));
                // An entry that was planted may lie about its time, but no wait is 0 for a call that is denied.
                RetryAfter::Millis(millis(self.until_left(&state, last.time)).max(1))
            }
            _ => RetryAfter::Never,
        };
        let until_reset = self.state.filter(|_| live > 0).map_or(0, |state| self.until_left(&state, state.head.newest));
        Decision { allowed, limit, remaining, retry_after, reset_after: millis(until_reset) }
    }

    /// Units in the window of the call.
    fn live(&self) -> u64 {
        self.state.map_or(0, |state| state.head.total.saturating_sub(self.left))
    }

    /// What is to be done though nothing is taken, as the clock went back.
    fn set_back(&self) -> Option<Plan> {
        self.state.and_then(|state| state.seen_from(self.now))
    }

    /// The share that remains once so many units are taken.
    fn share(&self, taken: u64) -> Share {
        let limit = self.limiter.limit.get();
        Share::new(limit.saturating_sub(self.live()).saturating_sub(taken).into(), limit.into())
    }

    /// Takes units, which must remain.
    fn take(&self, units: u64, most: u32) -> Result<Taken<Plan>, TooManyEntries> {
        let next = self.plan(units, most)?;
        Ok(Taken { next, reset_after: millis(self.limiter.window.as_micros()) })
    }

    /// To take units.
    fn plan(&self, units: u64, most: u32) -> Result<Plan, TooManyEntries> {
        let Some(state) = self.state else {
            let shape = Shape::small(1);
            let appended = Some(Entry { time: self.now.get(), cost: units });
            let kept = Head::empty(self.limiter, shape);
            return if most == 0 {
                Err(TooManyEntries)
            } else {
                Ok(Plan { kept, appended, removed: 0..0, shape: Some(shape) })
            };
        };
        let (head, later) = state.before_now(self.now);
        let kept = Ring::new(head, state.bytes).starting_at(self.start, self.left);
        let kept = Head { limiter: self.limiter, ..kept };
        let entry = Entry { time: self.now.get(), cost: later.saturating_add(units) };
        let (plan, entries) = Plan::appending(kept, state.bytes, entry);
        if entries > most || !plan.is_possible() { Err(TooManyEntries) } else { Ok(plan) }
    }
}

impl<'a> State<'a> {
    /// The log in these bytes, whose tag, version and kind have been checked; `None` if they have not the length that the head
    /// demands, or a field of the head is out of its range or does not fit the others, or there are more entries than blocks can have.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let state = Self { head: Head::read(bytes)?, bytes };
        let ring = state.ring();
        (1..=ring.most_entries()).contains(&ring.entries()).then_some(state)
    }

    /// Whether some log has this length.
    pub(crate) fn has_length(length: usize) -> bool {
        Shape::of_length(length).is_some()
    }

    /// The parameters of the last call that took something.
    pub fn limiter(&self) -> SlidingLog {
        self.head.limiter
    }

    /// The time of the newest entry.
    pub fn last(&self) -> Micros {
        Micros::new(self.head.newest).unwrap_or(Micros::MAX)
    }

    /// The first moment at which the log can't be told from a missing one, if nothing is taken until then.
    pub fn unused_at(&self) -> Micros {
        self.last().plus(self.head.limiter.window.as_micros())
    }

    /// Whether the log can't be told from a missing one at `now`. Entries later than `now` (the clock went back) count as made now.
    pub fn is_unused(&self, now: Micros) -> bool {
        self.unused_at() <= now
    }

    /// Tells, for people, the remembered parameters and what is used by them, as names and facts.
    pub fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact)) {
        tell("limit", Fact::Units(self.head.limiter.limit.get()));
        tell("window", Fact::Window(self.head.limiter.window));
        tell("used", Fact::Units(self.head.total));
        tell("entries", Fact::Units(self.ring().entries().into()));
        tell("last_ms", Fact::Moment(self.last()));
    }

    /// What was taken and not given back, and when, the newest first.
    pub fn newest_entries(&self) -> impl Iterator<Item = (Micros, u64)> {
        let entries = self.ring().newest_entries();
        entries.filter_map(|entry| Some((Micros::new(entry.time)?, entry.cost)))
    }

    /// The answer that a call of `cost` with the remembered parameters would get.
    pub fn peek(&self, now: Micros, cost: Cost) -> Decision {
        self.head.limiter.peek(Some(*self), now, cost)
    }

    /// Gives back what turned out not to be used: at most `amount`, of entries in the remembered window. With an age, of those no
    /// younger than that, the newest first; without one, the oldest first. `None` if nothing changes, which is so for an amount of 0.
    pub fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> Option<Plan> {
        if amount.get() == 0 || self.is_unused(now) {
            return None;
        }
        let ring = self.ring();
        let from = ring.before(self.first_live(now, self.head.limiter.window));
        let to = match age {
            Some(age) if age > Age::ZERO => {
                now.get().checked_sub(age.as_micros()).map_or(0, |moment| ring.before(ring.first_after(moment)))
            }
            _ => self.head.total,
        };
        let given = amount.get().min(to.saturating_sub(from));
        let removed = if age.is_some() { to.saturating_sub(given)..to } else { from..from.saturating_add(given) };
        match self.seen_from(now) {
            Some(seen) => Some(Plan { removed, ..seen }),
            None if given > 0 => Some(Plan { kept: self.head, appended: None, removed, shape: None }),
            None => None,
        }
    }

    fn ring(&self) -> Ring<'a> {
        Ring::new(self.head, self.bytes)
    }

    /// The first entry that counts at `now` in a window of this length.
    fn first_live(&self, now: Micros, window: Window) -> Position {
        match now.get().checked_sub(window.as_micros()) {
            Some(moment) => self.ring().first_after(moment),
            None => Position { block: 0, entry: self.head.skipped },
        }
    }

    /// The head without the entries that are later than `now`, and the units of those.
    fn before_now(&self, now: Micros) -> (Head, u64) {
        if self.head.newest <= now.get() {
            return (self.head, 0);
        }
        let ring = self.ring();
        let units = ring.before(ring.first_after(now.get()));
        (ring.ending_at(units), self.head.total.saturating_sub(units))
    }

    /// What is used stays used when the clock went back: what is later than `now` becomes one entry of now. `None` if nothing is.
    pub fn seen_from(&self, now: Micros) -> Option<Plan> {
        let (head, later) = self.before_now(now);
        let entry = Entry { time: now.get(), cost: later };
        (later > 0).then(|| Plan::appending(head, self.bytes, entry).0).filter(Plan::is_possible)
    }
}

impl Plan {
    /// Appends an entry to what `kept` has; also tells how many entries there are then.
    fn appending(kept: Head, bytes: &[u8], entry: Entry) -> (Self, u32) {
        let ring = Ring::new(kept, bytes);
        let placement = ring.placement(entry);
        let before = if kept.blocks > 0 { ring.entries() } else { 0 };
        let entries = before.saturating_add(u32::from(placement.joined.is_none()));
        let shape = ring.shape_for(&placement);
        (Self { kept, appended: Some(entry), removed: 0..0, shape }, entries)
    }

    /// Whether the log may become so long. Only one that somebody planted can be too long to become longer.
    fn is_possible(&self) -> bool {
        self.shape.is_none_or(|shape| shape.slots() <= Shape::MOST_SLOTS)
    }

    /// Whether it takes units away from the log.
    pub fn gives_back(&self) -> bool {
        !self.removed.is_empty()
    }

    fn finish(&self, mut writer: Writer<'_>) -> Touched {
        if let Some(entry) = self.appended {
            writer.append(entry);
        }
        if self.gives_back() && !self.leaves_nothing() {
            writer.remove(self.removed.clone());
        }
        writer.finish()
    }
}

impl plan::Plan for Plan {
    fn leaves_nothing(&self) -> bool {
        let appended = self.appended.map_or(0, |entry| entry.cost);
        let removed = self.removed.end.saturating_sub(self.removed.start);
        removed >= self.kept.total.saturating_add(appended)
    }

    fn fits(&self) -> bool {
        self.shape.is_none()
    }

    fn length(&self) -> usize {
        self.shape.unwrap_or(self.kept.shape).length()
    }

    fn carry_out(&self, bytes: &mut [u8]) -> Touched {
        let head = Head::read(bytes).unwrap_or(self.kept);
        let mut writer = Writer::new(head, bytes);
        writer.keep(self.kept);
        self.finish(writer)
    }

    fn make(&self, bytes: &[u8]) -> Vec<u8> {
        let (head, mut fresh) = moved(self.kept, bytes, self.shape.unwrap_or(self.kept.shape));
        self.finish(Writer::new(head, &mut fresh));
        fresh
    }

    fn unused_at(&self, bytes: &[u8]) -> Micros {
        State::read(bytes).map_or(Micros::new(0).unwrap_or(Micros::MAX), |log| log.unused_at())
    }
}
