//! What has to hold after each call of a scenario.

use std::fmt::Debug;

use num_bigint::BigInt;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::subject::Subject;
use super::{Algorithm, Conditions, ParamsOf, Scenario, Taken};
use crate::model::{Answer, History, MOST, Model, NEVER, Verdict};

/// The latest moment that a limiter takes.
const LAST_MOMENT: u64 = (1 << 62) - 1;

/// Runs a scenario, and says how many calls the subject answered.
pub fn run<A: Algorithm>(scenario: &Scenario<ParamsOf<A>>) -> Result<u64, TestCaseError> {
    let mut both = Comparison::<A>::new(scenario);
    let mut now = scenario.start;
    let mut ahead = 0;
    let mut last = None;
    for step in &scenario.steps {
        let params = &scenario.params[step.params % scenario.params.len()];
        let at = step.gap.end(now, last.as_ref(), A::next_edge(params, now));
        ahead += at.saturating_sub(now);
        now = at;
        if step.collected {
            both.collect(at)?;
        }
        let cost = step.cost.units(&both.subject.peek(at, params, 1)?);
        let call = Call { at, params, cost };
        let looked = both.look(&call)?;
        let answer = both.decide(&call, &looked)?;
        if answer.allowed && cost > 0 {
            both.taken.push(Taken { at, ahead, cost });
        }
        last = Some(answer);
    }
    if let [params] = &scenario.params[..] {
        A::within_bounds(params, &both.taken, scenario.conditions == Conditions::Stepping)?;
    }
    Ok(both.calls)
}

/// The crate and its promise, with the same calls to both.
struct Comparison<A: Algorithm> {
    conditions: Conditions,
    in_debt: bool,
    model: History<A::Model>,
    subject: A::Subject,
    taken: Vec<Taken>,
    calls: u64,
}

#[derive(Debug)]
struct Call<'a, P> {
    at: u64,
    params: &'a P,
    cost: u64,
}

impl<A: Algorithm> Comparison<A> {
    fn new(scenario: &Scenario<ParamsOf<A>>) -> Self {
        let &Scenario { conditions, ref params, start, owed, .. } = scenario;
        let mut both = Self {
            conditions,
            in_debt: owed > 0,
            model: History::default(),
            subject: A::Subject::default(),
            taken: Vec::new(),
            calls: 0,
        };
        if owed > 0 {
            both.model.owe(start, &params[0], owed);
            both.subject.owe(start, &params[0], owed);
        }
        both
    }

    /// The store drops the key if its state is unused. That may change no answer, so the model isn't told; only where the
    /// clock may go back afterwards would it go on with what the store dropped.
    fn collect(&mut self, at: u64) -> Result<(), TestCaseError> {
        if self.subject.is_unused(at)? {
            prop_assert!(self.model.is_unused(at), "dropped while in use at {at}");
            self.subject.forget();
            if self.conditions == Conditions::Stepping {
                self.model.forget();
            }
        }
        Ok(())
    }

    /// Looking says what the definition says, at any cost and with the remembered parameters, and writes nothing.
    fn look(&mut self, call: &Call<'_, ParamsOf<A>>) -> Result<Answer, TestCaseError> {
        let Call { at, params, cost } = *call;
        let looked = self.subject.peek(at, params, cost)?;
        same(looked, self.model.peek(at, params, cost), || format!("a look: {call:?}"))?;

        let for_one = self.subject.peek(at, params, 1)?;
        let mut asked_nothing = self.subject.clone();
        let verdict = asked_nothing.decide(at, params, 0)?;
        same(verdict, Verdict { answer: for_one, writes: false }, || format!("cost 0 at {at}"))?;
        same(asked_nothing.bytes(), self.subject.bytes(), || format!("stored after cost 0 at {at}"))?;
        let whatever_the_cost = (for_one.remaining, for_one.reset_after);
        same((looked.remaining, looked.reset_after), whatever_the_cost, || format!("before {call:?}"))?;

        let unused = self.model.is_unused(at);
        same(self.subject.is_unused(at)?, unused, || format!("unused at {at}"))?;
        if let Some(remembered) = self.model.remembered()
            && let Some(looked) = self.subject.peek_remembered(at, cost)?
            && !unused
        {
            let promised = self.model.peek(at, remembered, cost);
            same(looked, promised, || format!("a look for {cost} at {at} as remembered, {remembered:?}"))?;
        }
        self.calls += 4;
        self.raising_frees_the_difference(call)?;
        Ok(looked)
    }

    /// A decision is what the definition says, and keeps every rule that a single call can break.
    fn decide(&mut self, call: &Call<'_, ParamsOf<A>>, looked: &Answer) -> Result<Answer, TestCaseError> {
        let Call { at, params, cost } = *call;
        let before = self.subject.clone();
        let stepped_back = cost > 0 && self.model.is_later_than(at) && !self.model.is_unused(at);
        let verdict = self.subject.decide(at, params, cost)?;
        same(verdict, self.model.decide(at, params, cost), || format!("{call:?}"))?;
        self.calls += 1;

        let Verdict { answer, writes } = verdict;
        let taken = if answer.allowed { cost } else { 0 };
        let expected = Answer { remaining: answer.remaining + taken, reset_after: looked.reset_after, ..answer };
        same(*looked, expected, || format!("a look before {call:?}"))?;
        same(writes, taken > 0 || stepped_back, || format!("whether anything is written by {call:?}"))?;
        if taken == 0 {
            same(answer, *looked, || format!("took nothing: {call:?}"))?;
            let expected = if writes { before.restamped(at)? } else { before };
            same(self.subject.bytes(), expected.bytes(), || format!("stored after {call:?}"))?;
        }
        let within = answer.remaining.max(answer.reset_after) <= MOST && answer.retry_after <= MOST.cast_signed();
        prop_assert!(within, "{answer:?} to {call:?}");
        self.locks_nobody_out(call, &answer)?;
        if writes {
            self.expires_in_time(at)?;
        }
        if cost > 0 {
            self.the_wait_is_exact(call, &answer)?;
            self.the_reset_is_exact(call, &answer)?;
        }
        Ok(answer)
    }

    /// More to be had at once is there at once, to the unit, if that is all that changes.
    fn raising_frees_the_difference(&mut self, call: &Call<'_, ParamsOf<A>>) -> Result<(), TestCaseError> {
        let Call { at, params, cost } = *call;
        let by = cost % 1_000 + 1;
        let limit = A::Model::limit(params) + by;
        if !self.in_debt && self.model.remembered() == Some(params) && limit <= MOST {
            let before = self.subject.peek(at, params, 1)?.remaining;
            let raised = A::with_limit(params, limit);
            let after = self.subject.peek(at, &raised, 1)?.remaining;
            self.calls += 2;
            // A clock that goes back makes a sliding window cover more of what came before than it admitted beside it.
            if before == 0 && self.conditions == Conditions::Stepping {
                prop_assert!(after <= by, "{after} remain");
                return Ok(());
            }
            same(after, before + by, || format!("remaining at {at} after {params:?} is raised by {by}"))?;
        }
        Ok(())
    }

    /// Whatever the parameters and the clock were before, no wait is longer than a full refill or window, or what refills
    /// the largest debt. A limit of 0 cuts nothing, so what it sees was used with the remembered parameters and is gone by
    /// theirs.
    fn locks_nobody_out(&self, call: &Call<'_, ParamsOf<A>>, answer: &Answer) -> Result<(), TestCaseError> {
        let params = self.model.remembered().filter(|_| answer.limit == 0).unwrap_or(call.params);
        let longest = A::longest_wait(params) * if self.in_debt { A::MOST_IN_USE } else { 1 };
        let wait = BigInt::from(answer.retry_after).max(answer.reset_after.into());
        prop_assert!(wait <= longest, "{answer:?} to {call:?}, but {longest} ms refill all");
        Ok(())
    }

    /// The state is unused from exactly that moment on which it says itself.
    fn expires_in_time(&mut self, at: u64) -> Result<(), TestCaseError> {
        let said = self.subject.unused_from()?.unwrap_or(at);
        let promised = self.model.unused_from(at).min(LAST_MOMENT.into());
        same(BigInt::from(said), promised, || format!("from when on it is unused, asked at {at}"))?;
        prop_assert!(said == LAST_MOMENT || self.subject.is_unused(said)?);
        prop_assert!(said == at || !self.subject.is_unused(said - 1)?);
        Ok(())
    }

    /// After exactly the wait that was answered the same call is allowed, and a millisecond earlier it is not.
    fn the_wait_is_exact(&mut self, call: &Call<'_, ParamsOf<A>>, answer: &Answer) -> Result<(), TestCaseError> {
        if answer.allowed || answer.retry_after == NEVER {
            return Ok(());
        }
        let wait = answer.retry_after.unsigned_abs();
        prop_assert!(wait >= 1, "denied without a wait: {call:?}");
        if let Some(then) = later(call.at, wait) {
            for (at, allowed) in [(then, true), (then - 1_000, false)] {
                let mut sleeper = self.subject.clone();
                let verdict = sleeper.decide(at, call.params, call.cost)?;
                same(verdict.answer.allowed, allowed, || format!("at {at}, told to wait {wait} ms by {call:?}"))?;
                self.calls += 1;
            }
        }
        Ok(())
    }

    /// After exactly the time that was answered the limiter is as good as unused, and a millisecond earlier it is not.
    fn the_reset_is_exact(&mut self, call: &Call<'_, ParamsOf<A>>, answer: &Answer) -> Result<(), TestCaseError> {
        if let Some(then) = later(call.at, answer.reset_after) {
            let looked = self.subject.peek(then, call.params, 1)?;
            let as_unused = Answer { remaining: looked.limit, reset_after: 0, ..looked };
            same(looked, as_unused, || format!("{} ms after {call:?}", answer.reset_after))?;
            if answer.reset_after > 0 {
                let looked = self.subject.peek(then - 1_000, call.params, 1)?;
                same(looked.reset_after, 1, || format!("1 ms before it is unused again after {call:?}"))?;
            }
            self.calls += 2;
        }
        Ok(())
    }
}

/// So many milliseconds later, if a limiter still takes that as a time.
fn later(at: u64, millis: u64) -> Option<u64> {
    Some(at + millis.checked_mul(1_000)?).filter(|&at| at <= LAST_MOMENT / 2)
}

fn same<T: PartialEq + Debug>(got: T, promised: T, what: impl FnOnce() -> String) -> Result<(), TestCaseError> {
    if got == promised {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("{}\n     got {got:?}\npromised {promised:?}", what())))
}
