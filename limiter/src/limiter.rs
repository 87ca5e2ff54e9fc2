//! What every algorithm has in common.

use crate::decision::{Decision, Outcome, Taken};
use crate::layout::{State, Unreadable};
use crate::quantity::{Age, Cost, Micros, Rate, Window};
use crate::several::Vote;
use crate::share::Share;

/// An algorithm with its parameters: it judges states.
pub trait Limiter: Copy + PartialEq {
    /// What has to be kept between two calls.
    type State: LimiterState<Limiter = Self>;
    /// The state as one call sees it.
    type Look: Look<State = Self::State>;

    /// Looks at a state, at `now`. A missing state is an unused limiter.
    fn look(self, state: Option<Self::State>, now: Micros) -> Self::Look;

    /// Judges a call of `cost`: its answers, and what there is to store, whether or not it takes anything. That may be
    /// for other limits to say too. A cost of 0 takes nothing and is answered as a cost of 1 would be. `store` is the
    /// form in which the vote keeps states.
    fn judge<N, E: Copy>(
        self,
        state: Option<Self::State>,
        now: Micros,
        cost: Cost,
        store: impl Fn(Self::State) -> N,
    ) -> Vote<N, E> {
        let look = self.look(state, now);
        let answer = look.answer(cost.get().max(1));
        let take = |units| {
            let Taken { next, reset_after } = look.take(units);
            Ok(Taken { next: store(next), reset_after })
        };
        Vote::new(cost, answer, || look.set_back().map(&store), take, |taken| look.share(taken))
    }

    /// Decides a call of `cost` at `now` that asks no other limit: what its vote comes to, and nothing more is worked
    /// out.
    #[inline]
    fn decide(self, state: Option<Self::State>, now: Micros, cost: Cost) -> Outcome<Self::State> {
        let look = self.look(state, now);
        let answer = look.answer(cost.get().max(1));
        match cost.get() {
            0 => Outcome { decision: answer, next: None },
            units if answer.allowed => answer.having_taken(units, look.take(units)),
            _ => Outcome { decision: answer, next: look.set_back() },
        }
    }

    /// What [`Limiter::decide`] would say, with nothing taken: `remaining` and `reset_after` are those before the call.
    fn peek(self, state: Option<Self::State>, now: Micros, cost: Cost) -> Decision {
        self.look(state, now).answer(cost.get().max(1))
    }
}

/// A state as one call sees it: what is in use at its time by its parameters.
pub trait Look: Copy {
    /// What has to be kept between two calls.
    type State;

    /// The answer to a call of `asked` units (at least 1), with nothing taken.
    fn answer(&self, asked: u64) -> Decision;

    /// Takes units, which must remain.
    fn take(&self, units: u64) -> Taken<Self::State>;

    /// The state to store though nothing is taken: it was later than now, as the clock went back, and is set to now.
    fn set_back(&self) -> Option<Self::State>;

    /// The share that remains once so many units are taken, unrounded.
    fn share(&self, taken: u64) -> Share;
}

/// What an algorithm keeps between two calls: its counts, the time of the last call that took something, and the
/// parameters of that call. It is read from bytes, as [`State::encode`] makes them, without a look at other kinds.
pub trait LimiterState:
    Copy + Into<State> + TryFrom<State, Error = State> + for<'a> TryFrom<&'a [u8], Error = Unreadable>
{
    /// The algorithm whose state this is.
    type Limiter: Limiter<State = Self>;

    /// The parameters of the last call that took something.
    fn limiter(&self) -> Self::Limiter;

    /// The first moment at which the state can't be told from a missing one, if nothing is taken until then.
    fn unused_at(&self) -> Micros;

    /// Whether the state can't be told from a missing one at `now`. A state from a later time than `now` (the clock
    /// went back) counts as made now.
    fn is_unused(&self, now: Micros) -> bool;

    /// Tells, for people, the remembered parameters and what is used by them, as names and facts.
    fn describe(&self, tell: &mut dyn FnMut(&'static str, Fact));

    /// The answer that a call of `cost` with the remembered parameters would get.
    fn peek(&self, now: Micros, cost: Cost) -> Decision {
        self.limiter().peek(Some(*self), now, cost)
    }
}

/// Something to tell about a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// So many units.
    Units(u64),
    /// A moment.
    Moment(Micros),
    /// A length of time.
    Window(Window),
    /// A rate.
    Rate(Rate),
}

/// A state that can take back what was taken from it.
pub trait Refundable: LimiterState {
    /// Gives back what turned out not to be used: at most `amount` of what was taken `age` ago, never beyond unused,
    /// and nothing of what has come back by itself since. Without an age it was taken just now. The state to store;
    /// `None` if nothing changes, which is so for an amount of 0.
    fn refund(&self, now: Micros, amount: Cost, age: Option<Age>) -> Option<Self>;
}
