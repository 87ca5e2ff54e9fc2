//! What is done to holders. Nothing of a row is checked when it is read, so what was planted may be a lie: two rows of
//! one name, any numbers, more units than there can be.

use rl_limiter::concurrency::{MOST_HOLDERS, Plan, Request, State};
use rl_limiter::layout::Stored;
use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Concurrency, Cost, Decision, Micros, Name, Plan as _, RetryAfter, Window};

use super::call::{Call, later};
use super::facts::Facts;
use super::{answer, changed};

/// A place: whose, units, ttl and expiry.
type Place = (Vec<u8>, u64, u64, Micros);

/// Only looks.
pub fn look(holders: State<'_>, now: Micros, call: &Call) {
    let cost = call.cost();
    let told = holders.peek(now, cost);
    answer::check(told, cost.get().max(1));
    let places = places(&holders, now);
    assert_eq!(holders.is_unused(now), places.is_empty());
    // Until a call has written it, what is later than now stays so.
    assert!(holders.seen_from(now).is_some() || holders.is_unused(holders.unused_at(now)));
    assert!(places.len() <= MOST_HOLDERS);
    for (_, units, ttl, expiry) in &places {
        assert!(*units <= MAX_EXACT && *expiry > now && *expiry <= Micros::MAX && expiry.get() - now.get() <= *ttl);
    }

    // It is what somebody who has no place would be told by the remembered limit.
    let fresh = [call.units.cut; Name::LONGEST];
    let Some(holder) = Name::new(&fresh).filter(|name| places.iter().all(|place| place.0 != name.get())) else {
        return;
    };
    let limiter = Concurrency::new(holders.limit(), Window::MAX);
    let looked = limiter.decide(Some(holders), now, Request { holder, cost, renew_only: false }, MOST_HOLDERS);
    if let Ok(outcome) = looked {
        assert_eq!(outcome.decision.allowed, told.allowed);
        assert_eq!(outcome.decision.retry_after, told.retry_after);
    }
}

/// Decides a call of a holder. What it would do.
pub fn decided(bytes: &[u8], facts: &Facts, now: Micros, call: &Call) -> Option<Plan> {
    let (limit, ttl) = (call.limit(facts), call.window(facts));
    let (limiter, holders) = (Concurrency::new(limit, ttl), read(bytes));
    let before = places(&holders, now);
    let mut fresh = [0; Name::LONGEST];
    let request =
        Request { holder: holder(&holders, call, &mut fresh), cost: call.cost(), renew_only: call.renews_only() };
    let cost = request.cost.get();
    let most = usize::from(call.entries);
    let context = || format!("{limiter:?}, {request:?} at {now:?} on {before:?}");

    let looks = Request { cost: Cost::ZERO, ..request };
    let Ok(looked) = limiter.decide(Some(holders), now, looks, most) else {
        panic!("a look is refused: {}", context())
    };
    check_answer(looked.decision, 1, request.renew_only);
    assert!(looked.next.is_none(), "a look writes: {}", context());

    let own = before.iter().position(|place| place.0 == request.holder.get());
    let Ok(outcome) = limiter.decide(Some(holders), now, request, most) else {
        assert!(
            (own.is_none() || !facts.has_real_names) && before.len() >= most.min(MOST_HOLDERS),
            "there is room: {}",
            context()
        );
        return holders.seen_from(now);
    };
    let told = outcome.decision;
    check_answer(told, cost.max(1), request.renew_only);
    if cost == 0 {
        return None;
    }

    if !facts.has_real_names {
        return outcome.next;
    }
    let mut expected = before.clone();
    let held = own.map(|index| expected.remove(index).1);
    let units = if told.allowed { Some(cost) } else { held };
    let ttl = ttl.as_micros();
    let added = units.map(|units| (request.holder.get().to_vec(), units, ttl, later(now, ttl)));
    expected.extend(added.filter(|place| place.3 > now));
    assert!(told.allowed || held.is_some() || expected == before, "{}", context());
    check_places(bytes, outcome.next.as_ref(), expected, now);

    // Somebody may have planted the holder twice: then its place may be the other one at the next call.
    let twice = before.iter().filter(|place| place.0 == request.holder.get()).count() > 1;
    if let RetryAfter::Millis(millis) = told.retry_after
        && !told.allowed
        && !twice
        && before.iter().map(|place| u128::from(place.1)).sum::<u128>() < u64::MAX.into()
    {
        let left = left(bytes, outcome.next.as_ref());
        let state = left.as_deref().map(read);
        let allowed_in = |millis: u64| {
            let micros = now.get().checked_add(millis.checked_mul(1_000)?)?;
            let outcome = limiter.decide(state, Micros::new(micros)?, request, MOST_HOLDERS).ok()?;
            Some(outcome.decision.allowed)
        };
        assert_ne!(allowed_in(millis - 1), Some(true), "a shorter wait than {millis} is enough: {}", context());
        assert!(millis == MAX_EXACT || allowed_in(millis) != Some(false), "{millis} ms are not enough: {}", context());
    }
    outcome.next
}

/// The first call, where nothing is in use any more.
pub fn begun(limiter: Concurrency, bytes: &[u8], now: Micros, call: &Call) {
    let mut fresh = [0; Name::LONGEST];
    let request = Request { holder: call.name(&[], &mut fresh), cost: call.cost(), renew_only: call.renews_only() };
    if let Ok(outcome) = limiter.decide(None, now, request, call.entries.into()) {
        changed::over_unused(bytes, outcome.next.as_ref());
    }
}

/// Gives a place back. What it would do.
pub fn released(bytes: &[u8], facts: &Facts, now: Micros, call: &Call) -> Option<Plan> {
    let holders = read(bytes);
    let mut fresh = [0; Name::LONGEST];
    let holder = holder(&holders, call, &mut fresh);
    let (units, plan) = holders.release(now, holder);
    if !facts.has_real_names {
        return plan;
    }
    let mut expected = places(&holders, now);
    let own = expected.iter().position(|place| place.0 == holder.get());
    let given = own.map_or(0, |index| expected.remove(index).1);
    assert_eq!(units, given);
    assert!(plan.is_some() || own.is_none(), "a place given back is still there");
    check_places(bytes, plan.as_ref(), expected, now);
    plan
}

/// What is stored after a call that would do this.
pub fn left(bytes: &[u8], plan: Option<&Plan>) -> Option<Vec<u8>> {
    changed::left(bytes, plan, bytes.len())
}

/// What the plan leaves, in place as anew, are these places, until it says that none is left.
fn check_places(bytes: &[u8], plan: Option<&Plan>, mut expected: Vec<Place>, now: Micros) {
    expected.sort_unstable();
    let Some(left) = left(bytes, plan) else { return assert_eq!(expected, [], "deleted") };
    let told = |bytes: &[u8]| {
        let mut told = places(&read(bytes), now);
        told.sort_unstable();
        told
    };
    assert_eq!(told(&left), expected);
    if let Some(plan) = plan {
        assert_eq!(told(&plan.make(bytes)), expected, "another state made anew");
        let (state, unused_at) = (read(&left), plan.unused_at(&left));
        assert!(state.is_unused(unused_at));
        let before = Micros::saturating(unused_at.get().saturating_sub(1).cast_signed());
        assert!(before < now || !state.is_unused(before), "it was unused before {unused_at:?}");
        assert!(state.seen_from(now).is_none(), "places still end too late");
    }
}

fn check_answer(told: Decision, asked: u64, renew_only: bool) {
    // Who has lost its place, or will have, is told that no wait helps.
    let is_lost = renew_only && !told.allowed && told.retry_after == RetryAfter::Never;
    answer::check(told, if is_lost { asked.max(told.limit + 1) } else { asked });
}

fn places(holders: &State<'_>, now: Micros) -> Vec<Place> {
    holders.places(now).map(|place| (place.holder.to_vec(), place.units, place.ttl, place.expiry)).collect()
}

fn holder<'n>(holders: &State<'n>, call: &Call, fresh: &'n mut [u8; Name::LONGEST]) -> Name<'n> {
    let names: Vec<&[u8]> = holders.places(Micros::saturating(0)).map(|place| place.holder).collect();
    call.name(&names, fresh)
}

fn read(bytes: &[u8]) -> State<'_> {
    match Stored::read(bytes) {
        Ok(Stored::Concurrency(holders)) => holders,
        _ => panic!("what a call has left can't be read"),
    }
}
