//! `RL.REFUND key amount [AGE duration]`

use rl_limiter::layout::{State, Stored};
use rl_limiter::{Age, Cost, Decision};

use super::args::Args;
use super::counted::Counted;
use super::reply;
use super::store::{Change, Slot};
use crate::server::{Call, Error, Handler, Mode};

/// Gives back what turned out not to be used.
pub struct Refund;

impl Handler for Refund {
    fn run(call: &mut Call<'_>) -> Result<(), Error> {
        let args = Args::of(call, 5)?;
        let (amount, age) = (args.amount(2)?, args.age(3)?);

        let told = {
            let mut slot = Slot::open(call, Mode::Change)?;
            refund(&mut slot, amount, age)?
        };
        match told {
            Some(decision) => reply::decision(call, Counted::told(decision)),
            None => call.reply_null(),
        }
        Ok(())
    }
}

/// What a call of cost 1 is then told; `None` if there is no limiter.
fn refund(slot: &mut Slot<'_>, amount: Cost, age: Option<Age>) -> Result<Option<Decision>, Error> {
    let now = slot.now();
    match slot.load()? {
        None => Ok(None),
        Some(Stored::State(state)) => refund_state(slot, state, amount, age).map(Some),
        Some(other @ Stored::Concurrency(_)) => Err(takes_nothing_back(other.kind())),
        Some(Stored::Leases(leases)) => {
            let (decision, next) = leases.refund(now, amount, age);
            if let Some(plan) = next {
                slot.change(&Change::Leases(plan))?;
            }
            Ok(Some(decision))
        }
        Some(Stored::SlidingLog(log)) => {
            let limiter = log.limiter();
            match log.refund(now, amount, age) {
                Some(plan) if plan.gives_back() => slot.change(&Change::Log(plan))?,
                Some(plan) => slot.bring_to_now(&Change::Log(plan))?,
                None => {}
            }
            let told = slot.load_log()?.map(|log| log.peek(now, Cost::ONE));
            Ok(Some(told.unwrap_or_else(|| limiter.peek(None, now, Cost::ONE))))
        }
    }
}

fn refund_state(slot: &mut Slot<'_>, state: State, amount: Cost, age: Option<Age>) -> Result<Decision, Error> {
    let refunded = state.refund(slot.now(), amount, age).map_err(|_| takes_nothing_back(state.kind()))?;
    if let Some(next) = refunded {
        let change = if next.is_unused(slot.now()) { Change::Delete } else { Change::Store(next) };
        slot.change(&change)?;
    }
    Ok(refunded.unwrap_or(state).peek(slot.now(), Cost::ONE))
}

fn takes_nothing_back(kind: &str) -> Error {
    Error::formatted(format_args!("ERR a {kind} limiter takes nothing back"))
}
