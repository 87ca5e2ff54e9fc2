//! What is done to kinds that keep a few numbers.

use std::fmt::Debug;

use rl_limiter::layout::{State, Stored};
use rl_limiter::limiter::Look;
use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::share::Share;
use rl_limiter::{Cost, Limiter, LimiterState, Micros, RetryAfter, TokenBucket, token_bucket};

use super::answer;
use super::call::Call;
use super::facts::Facts;

/// Only looks.
pub fn look(state: &State, facts: &Facts, now: Micros, call: &Call) {
    let unused = state.is_unused(now);
    // Of what lies beyond the last moment none can be told.
    if now >= facts.last && state.unused_at() < Micros::MAX {
        assert_eq!(unused, state.unused_at() <= now, "{state:?} at {now:?}");
    }
    let cost = call.cost();
    let told = state.peek(now, cost);
    answer::check(told, cost.get().max(1));
    if unused {
        assert_eq!((told.remaining, told.reset_after), (told.limit, 0), "{state:?} is unused at {now:?}");
    }
}

/// Decides a call. The state that it would store.
pub fn decided<L>(limiter: L, state: L::State, now: Micros, call: &Call) -> Option<State>
where
    L: Limiter + Debug,
    L::State: Debug + PartialEq,
{
    let cost = call.cost();
    let asked = cost.get().max(1);
    let outcome = limiter.decide(Some(state), now, cost);
    let (told, seen) = (outcome.decision, limiter.peek(Some(state), now, cost));
    let context = || format!("{limiter:?} on {state:?} at {now:?}, cost {cost:?}: {outcome:?}");
    answer::check(told, asked);
    answer::check(seen, asked);
    assert_eq!((told.allowed, told.retry_after), (seen.allowed, seen.retry_after), "{}", context());

    let takes = told.allowed && cost.get() > 0;
    if takes {
        assert!(outcome.next.is_some_and(|next| next.limiter() == limiter), "{}", context());
        assert_eq!(told.remaining, seen.remaining - cost.get(), "{}", context());
    } else if let Some(next) = outcome.next {
        // The clock went back, which is now made good.
        assert!(cost.get() > 0 && next.limiter() == state.limiter(), "{}", context());
        assert_eq!(limiter.decide(Some(next), now, cost).next, None, "{}", context());
    }
    let look = limiter.look(Some(state), now);
    let (before, after) = (look.share(0), look.share(if takes { cost.get() } else { 0 }));
    assert!(Share::new(0, 1) <= after && after <= before && before <= Share::new(1, 1), "{}", context());
    if let RetryAfter::Millis(millis) = told.retry_after
        && !told.allowed
        && cost.get() > 0
    {
        let state = outcome.next.unwrap_or(state);
        let allowed_in = |millis: u64| {
            let micros = now.get().checked_add(millis.checked_mul(1_000)?)?;
            Some(limiter.peek(Some(state), Micros::new(micros)?, cost).allowed)
        };
        assert_ne!(allowed_in(millis - 1), Some(true), "a shorter wait is enough: {}", context());
        assert!(millis == MAX_EXACT || allowed_in(millis) != Some(false), "this wait is not enough: {}", context());
    }
    outcome.next.map(Into::into)
}

/// Takes what is there and more. The state that it would store.
pub fn debited(limiter: TokenBucket, state: token_bucket::State, now: Micros, call: &Call) -> Option<State> {
    let amount = call.cost();
    let debit = limiter.debit(Some(state), now, amount);
    answer::check(debit.decision, 1);
    assert!(debit.rest <= amount.get(), "{debit:?} of {amount:?}");
    assert!(amount.get() > 0 || debit.next.is_none(), "{debit:?} of nothing");
    let before = limiter.peek(Some(state), now, Cost::ONE);
    assert!(debit.decision.remaining <= before.remaining, "{debit:?} of {amount:?} where there was {before:?}");
    debit.next.map(Into::into)
}

/// Gives back. The state that it would store.
pub fn refunded(state: State, now: Micros, call: &Call) -> Option<State> {
    let amount = call.cost();
    let next = state.refund(now, amount, call.age()).ok()??;
    assert!(amount.get() > 0, "nothing given back makes {next:?} of {state:?}");
    let (before, after) = (state.peek(now, Cost::ONE), next.peek(now, Cost::ONE));
    assert!(after.remaining >= before.remaining, "{amount:?} given back to {state:?} leaves {next:?}");
    assert!(after.remaining - before.remaining <= amount.get(), "{amount:?} given back to {state:?} leaves {next:?}");
    Some(next)
}

/// What is stored after a call that would store this: as the command does, only what changed is written where the
/// length stays.
pub fn left(bytes: &[u8], next: Option<State>, now: Micros) -> Option<Vec<u8>> {
    let Some(next) = next else { return Some(bytes.to_vec()) };
    if next.is_unused(now) {
        return None;
    }
    let encoded = next.encode();
    assert!(Stored::has_length(encoded.len()));
    assert_eq!(State::decode(&encoded), Ok(next));
    if encoded.len() != bytes.len() {
        return Some(encoded.to_vec());
    }
    let mut bytes = bytes.to_vec();
    let from = encoded.changed_from(&bytes);
    bytes[from..].copy_from_slice(&encoded[from..]);
    assert_eq!(bytes, *encoded, "what changed is not enough to write");
    Some(bytes)
}
