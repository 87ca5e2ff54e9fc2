//! Refunds and debits between ordinary calls, each answer held against the model that knows the whole history.

use crate::harness::subject::{Small, answer, moment};
use crate::harness::{Algorithm, ParamsOf};
use crate::model::fixed_window::FixedWindow;
use crate::model::sliding_window::SlidingWindow;
use crate::model::token_bucket::TokenBucket;
use crate::model::{Answer, History, MOST, Model};
use crate::random::check;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_limiter::layout::State;
use rl_limiter::{Age, Cost, Decision, Limiter, Micros, Refundable};

const NOON: u64 = 1_796_040_000_000_000;

/// What happens next, in 256ths of what is sensible there.
#[derive(Clone, Debug)]
struct Step {
    gap: Gap,
    deed: Deed,
}

#[derive(Clone, Debug)]
enum Gap {
    Micros(u64),
    ShareOfReset(u8),
    Edge(i64),
    Back(u64),
}

#[derive(Clone, Debug)]
enum Deed {
    Take(u8),
    /// So much of what can be had at once, taken such a share of the last reset before.
    Refund(u8, u8),
    /// To the unit, as old as the window or the refill.
    RefundUnits(u64, u64),
    Debit(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![
        4 => Just(Gap::Micros(0)),
        3 => (0..3_000_000_u64).prop_map(Gap::Micros),
        3 => any::<u8>().prop_map(Gap::ShareOfReset),
        2 => (-1..=1_i64).prop_map(Gap::Edge),
        1 => (1..100_000_000_u64).prop_map(Gap::Back),
    ];
    let deed = prop_oneof![
        4 => any::<u8>().prop_map(Deed::Take),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(amount, age)| Deed::Refund(amount, age)),
        2 => (0..5_u64, 0..100_000_000_u64).prop_map(|(amount, age)| Deed::RefundUnits(amount, age)),
        3 => any::<u8>().prop_map(Deed::Debit),
    ];
    vec((gap, deed).prop_map(|(gap, deed)| Step { gap, deed }), 1..=30)
}

/// One key, as bytes, and what should be true of it.
struct Pair<A: Algorithm> {
    bytes: Option<Vec<u8>>,
    history: History<A::Model>,
    now: u64,
    reset: u64,
}

impl<A> Pair<A>
where
    A: Algorithm + Small<Params = ParamsOf<A>>,
    A::State: Refundable,
{
    fn state(&self) -> Option<A::State> {
        let state = State::decode(self.bytes.as_ref()?).unwrap();
        A::State::try_from(state).ok()
    }

    fn store(&mut self, next: Option<A::State>) {
        if let Some(next) = next {
            // As the server does: what is unused leaves no key.
            let unused = rl_limiter::LimiterState::is_unused(&next, moment(self.now));
            self.bytes = (!unused).then(|| next.into().encode().to_vec());
        }
    }

    fn step(&mut self, params: &ParamsOf<A>, debits: &Debits<A>, step: &Step) -> Result<(), TestCaseError> {
        let share = |of: u64, part: u8| u64::try_from(u128::from(of) * u128::from(part) / 255).unwrap();
        let reset = self.reset.min(1 << 40) * 1_000;
        self.now = match step.gap {
            Gap::Micros(micros) => self.now + micros,
            Gap::ShareOfReset(part) => self.now + share(reset, part),
            Gap::Edge(late) => A::next_edge(params, self.now).unwrap_or(self.now).saturating_add_signed(late),
            Gap::Back(micros) => self.now.saturating_sub(micros),
        }
        .min(1 << 61);
        let limit = A::Model::limit(params);
        let told = match step.deed {
            Deed::Take(part) => {
                let cost = share(limit, part).max(1);
                let outcome = A::limiter(params).decide(self.state(), moment(self.now), Cost::new(cost).unwrap());
                self.store(outcome.next);
                let promised = self.history.decide(self.now, params, cost).answer;
                same(answer(outcome.decision), promised, step)?
            }
            Deed::Refund(part, age) => self.refund(share(limit, part), share(reset, age), step)?,
            Deed::RefundUnits(amount, age) => self.refund(amount, age, step)?,
            Deed::Debit(part) => {
                let Some(debit) = debits else { return Ok(()) };
                let amount = share(limit, part) * 2;
                let amount = amount.min(MOST);
                let (decision, rest, next) = debit(params, self.state(), moment(self.now), Cost::new(amount).unwrap());
                self.store(next);
                let (promised, promised_rest) = self.history.debit(self.now, params, amount);
                prop_assert_eq!(rest, promised_rest, "{:?}", step);
                same(answer(decision), promised, step)?
            }
        };
        self.reset = told.reset_after;
        Ok(())
    }

    fn refund(&mut self, amount: u64, age: u64, step: &Step) -> Result<Answer, TestCaseError> {
        let (now, age) = (moment(self.now), age.min(36_500 * 86_400_000_000));
        let told = self.state().filter(|state| !rl_limiter::LimiterState::is_unused(state, now)).map(|state| {
            let next = state.refund(now, Cost::new(amount).unwrap(), Age::from_micros(age));
            self.store(next);
            answer(rl_limiter::LimiterState::peek(&next.unwrap_or(state), now, Cost::ONE))
        });
        let promised = self.history.refund(self.now, amount, age);
        prop_assert_eq!(told, promised, "{:?}", step);
        Ok(told.unwrap_or(Answer { allowed: true, limit: 0, remaining: 0, retry_after: 0, reset_after: 0 }))
    }
}

/// How an algorithm that can be debited is: the decision, what did not fit, and the next state.
type Debits<A> =
    Option<fn(&ParamsOf<A>, Option<<A as Small>::State>, Micros, Cost) -> (Decision, u64, Option<<A as Small>::State>)>;

fn settle<A>(debits: &Debits<A>)
where
    A: Algorithm + Small<Params = ParamsOf<A>>,
    A::State: Refundable,
{
    let scenario = (vec(A::any_params(), 1..=2), steps());
    check(400, scenario, |(params, steps)| {
        let mut pair = Pair::<A> { bytes: None, history: History::default(), now: NOON, reset: 0 };
        for (index, step) in steps.iter().enumerate() {
            pair.step(&params[index / 5 % params.len()], debits, step)?;
        }
        Ok(())
    });
}

fn same(told: Answer, promised: Answer, step: &Step) -> Result<Answer, TestCaseError> {
    prop_assert_eq!(told, promised, "{:?}", step);
    Ok(told)
}

#[test]
fn a_fixed_window_takes_back_what_was_taken_in_it() {
    settle::<FixedWindow>(&None);
}

#[test]
fn a_sliding_window_takes_back_to_the_count_it_was_taken_from() {
    settle::<SlidingWindow>(&None);
}

#[test]
fn a_token_bucket_takes_back_what_was_not_refilled_and_owes_what_is_debited() {
    settle::<TokenBucket>(&Some(|params, state, now, amount| {
        let debit = <TokenBucket as Small>::limiter(params).debit(state, now, amount);
        (debit.decision, debit.rest, debit.next)
    }));
}
