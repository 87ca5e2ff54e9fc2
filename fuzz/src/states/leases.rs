//! What is done to a token bucket of which nodes hold slices. Its head is checked when it is read and its rows are not,
//! so what was planted may be a lie: two rows of one node, any numbers, more tokens in rows than there can be.

use rl_limiter::layout::{State as Numbers, Stored};
use rl_limiter::lease::{Answer, Ask, MAX_ROWS, Plan, Seq, State, Ttl};
use rl_limiter::quantity::MAX_EXACT;
use rl_limiter::{Cost, Decision, LimiterState as _, Micros, Name, Plan as _, RetryAfter, TokenBucket, token_bucket};

use super::call::Call;
use super::facts::Facts;
use super::{answer, changed};

/// A bucket as the commands load it.
#[derive(Clone, Copy)]
pub enum Bucket<'a> {
    /// Nobody holds a slice of it; `None` if it is unused.
    Plain(Option<token_bucket::State>),
    /// Nodes hold slices of it.
    Leased(State<'a>),
}

impl Bucket<'_> {
    /// What is in these bytes, if it is in use.
    fn load(bytes: Option<&[u8]>, now: Micros) -> Bucket<'_> {
        match bytes.map(Stored::read) {
            None => Bucket::Plain(None),
            Some(Ok(stored)) if stored.is_unused(now) => Bucket::Plain(None),
            Some(Ok(Stored::Leases(leases))) => Bucket::Leased(leases),
            Some(Ok(Stored::State(Numbers::TokenBucket(state)))) => Bucket::Plain(Some(state)),
            _ => panic!("what a call has left is no token bucket"),
        }
    }

    fn decide(self, limiter: TokenBucket, now: Micros, cost: Cost) -> Decision {
        use rl_limiter::Limiter as _;
        match self {
            Bucket::Plain(state) => limiter.decide(state, now, cost).decision,
            Bucket::Leased(leases) => leases.decide(limiter, now, cost).decision,
        }
    }

    fn lease(self, limiter: TokenBucket, now: Micros, ask: &Ask<'_>) -> Answer {
        let state = match self {
            Bucket::Plain(state) => state.map(State::from),
            Bucket::Leased(leases) => Some(leases),
        };
        limiter.lease(state, now, ask).answer
    }

    fn held(self, now: Micros) -> u128 {
        match self {
            Bucket::Plain(_) => 0,
            Bucket::Leased(leases) => leases.leases(now).map(|lease| u128::from(lease.row.held)).sum(),
        }
    }
}

/// Only looks.
pub fn look(leases: State<'_>, now: Micros, call: &Call) {
    let cost = call.cost();
    let told = leases.peek(now, cost);
    answer::check(told, cost.get().max(1));
    check_rule(leases, leases.bucket().limiter(), now);
    if now >= leases.bucket().last() && leases.unused_at() < Micros::MAX {
        let unused = leases.is_unused(now);
        assert_eq!(unused, leases.unused_at() <= now, "unused at {:?}, at {now:?}", leases.unused_at());
        assert!(!unused || (told.remaining, told.reset_after) == (told.limit, 0), "{told:?} of what is unused");
    }
    for lease in leases.leases(now) {
        assert!(lease.row.held <= MAX_EXACT && lease.row.expires > now && lease.row.expires <= Micros::MAX);
    }
}

/// Decides a call that asks the bucket itself. What it would do.
pub fn decided(limiter: TokenBucket, bytes: &[u8], now: Micros, call: &Call) -> Option<Plan> {
    let Bucket::Leased(leases) = Bucket::load(Some(bytes), now) else { return None };
    let cost = call.cost();
    let outcome = leases.decide(limiter, now, cost);
    let looked = leases.decide(limiter, now, Cost::ZERO);
    let told = outcome.decision;
    let context = || format!("{limiter:?} on {:?} at {now:?}, cost {cost:?}: {told:?}", leases.bucket());
    answer::check(told, cost.get().max(1));
    answer::check(looked.decision, 1);
    assert!(looked.next.is_none() && (cost > Cost::ZERO || outcome.next.is_none()), "a look writes: {}", context());
    let left = left(bytes, outcome.next.as_ref(), now);
    let after = Bucket::load(left.as_deref(), now);
    if told.allowed && cost > Cost::ZERO {
        assert_eq!(told.remaining, looked.decision.remaining - cost.get(), "{}", context());
        assert!(outcome.next.is_some(), "what was taken is not stored: {}", context());
        assert_eq!(after.decide(limiter, now, Cost::ZERO).remaining, told.remaining, "{}", context());
    }
    check_all_there(leases, after, None, now);

    if let RetryAfter::Millis(millis) = told.retry_after
        && !told.allowed
        && cost > Cost::ZERO
        && is_true(bytes, leases)
    {
        let allowed_in = |millis: u64| {
            let now = in_millis(now, millis)?;
            Some(Bucket::load(left.as_deref(), now).decide(limiter, now, cost).allowed)
        };
        assert_ne!(allowed_in(millis - 1), Some(true), "a shorter wait is enough: {}", context());
        assert!(millis == MAX_EXACT || allowed_in(millis) != Some(false), "this wait is not enough: {}", context());
    }
    outcome.next
}

/// Hears a node. What it would do.
pub fn leased(limiter: TokenBucket, bytes: &[u8], facts: &Facts, now: Micros, call: &Call) -> Option<Plan> {
    let Bucket::Leased(leases) = Bucket::load(Some(bytes), now) else { return None };
    let names: Vec<&[u8]> = leases.leases(Micros::saturating(0)).map(|lease| lease.node).collect();
    let mut fresh = [0; Name::LONGEST];
    let node = call.name(&names, &mut fresh);
    let own = leases.leases(now).find(|lease| lease.node == node.get()).map(|lease| lease.row);
    // Mostly the next one.
    let seq = own.map_or(0, |row| row.seq).saturating_add(call.entries.into()).clamp(1, MAX_EXACT - 1);
    let (have, want, ttl, min) = (call.have(), call.cost(), call.lease_ttl(), call.least());
    let seq = Seq::new(seq)?;
    let ask = Ask { node, seq, have, want, ttl, min };

    let outcome = limiter.lease(Some(leases), now, &ask);
    let told = outcome.answer;
    let live = leases.leases(now).count();
    let context =
        || format!("{ask:?} of {limiter:?} at {now:?}, on {own:?} of {live}, {:?}: {told:?}", leases.bucket());
    let Answer { holding, free, outstanding, retry_after, ttl: left_ms, nodes } = told;
    let accepted = own.map_or(want > Cost::ZERO && live < MAX_ROWS, |row| seq.get() > row.seq);
    assert!([holding, free, outstanding, left_ms, nodes].iter().all(|number| *number <= MAX_EXACT), "{}", context());
    assert!(nodes <= live.max(MAX_ROWS) as u64 && left_ms <= Ttl::MAX / 1_000, "{}", context());

    let left = left(bytes, outcome.next.as_ref(), now);
    if !facts.has_real_names {
        return outcome.next;
    }
    let after = Bucket::load(left.as_deref(), now);
    let kept = match own {
        Some(row) if accepted => row.held.min(have.get()).min(want.get()),
        Some(row) => row.held,
        None => 0,
    };
    // Somebody may have planted the node twice: then the other row is its own once the first one is gone.
    let twice = leases.leases(now).filter(|lease| lease.node == node.get()).count() > 1;
    let granted = holding.checked_sub(kept).unwrap_or_else(|| panic!("less than it has: {}", context()));
    if accepted {
        assert!(holding <= want.get() && outcome.next.is_some(), "{}", context());
        let row = match after {
            Bucket::Leased(leases) => leases.leases(now).find(|lease| lease.node == node.get()),
            Bucket::Plain(_) => None,
        };
        if want == Cost::ZERO {
            assert!(row.is_none() || twice, "its row stays: {}", context());
        } else if now < Micros::MAX && !twice {
            let row = row.unwrap_or_else(|| panic!("it has no row: {}", context())).row;
            assert_eq!((row.held, row.seq), (holding, seq.get()), "{}", context());
            assert_eq!((row.expires.get() - now.get()) / 1_000, left_ms, "{}", context());
            assert!(own.is_none_or(|own| row.expires >= own.expires), "{}", context());
        }
    } else {
        assert_eq!(granted, 0, "{}", context());
    }
    check_all_there(leases, after, Some(node).filter(|_| accepted), now);
    // A late call is answered by the remembered parameters.
    let is_late = own.is_some() && !accepted;
    let capacity = if is_late { leases.bucket().limiter().capacity() } else { limiter.capacity() };
    let is_within = u128::from(free) + u128::from(outstanding) <= capacity.get().into();
    assert!(free == 0 || is_within, "more than the capacity: {}", context());
    match retry_after {
        RetryAfter::Never => {
            assert!(limiter.capacity() == Cost::ZERO, "{}", context());
        }
        RetryAfter::Millis(0) => {}
        RetryAfter::Millis(millis) => {
            assert_eq!(granted, 0, "{}", context());
            if accepted
                && !twice
                && is_true(bytes, leases)
                && let Some(seq) = Seq::new(seq.get() + 1)
            {
                let granted_in = |millis: u64| {
                    let now = in_millis(now, millis)?;
                    // What is there, however little.
                    let ask = Ask { seq, min: Cost::ZERO, ..ask };
                    let bucket = Bucket::load(left.as_deref(), now);
                    let told = bucket.lease(limiter, now, &ask);
                    let kept = match bucket {
                        Bucket::Leased(leases) => leases.leases(now).find(|lease| lease.node == node.get()),
                        Bucket::Plain(_) => None,
                    };
                    let kept = kept.map_or(0, |lease| lease.row.held.min(have.get()).min(want.get()));
                    Some((told.holding - kept, told))
                };
                let enough = |got: Option<(u64, Answer)>| got.is_none_or(|(granted, _)| granted > 0);
                assert!(millis == MAX_EXACT || enough(granted_in(millis)), "this wait is not enough: {}", context());
            }
        }
    }
    outcome.next
}

/// The first call, where nothing is in use any more.
pub fn begun(limiter: TokenBucket, bytes: &[u8], now: Micros, call: &Call) {
    let mut fresh = [0; Name::LONGEST];
    let Some(seq) = Seq::new(1) else { return };
    let node = call.name(&[], &mut fresh);
    let ask = Ask { node, seq, have: call.have(), want: call.cost(), ttl: call.lease_ttl(), min: call.least() };
    changed::over_unused(bytes, limiter.lease(None, now, &ask).next.as_ref());
}

/// Takes what is there and more. What it would do.
pub fn debited(limiter: TokenBucket, bytes: &[u8], now: Micros, call: &Call) -> Option<Plan> {
    let Bucket::Leased(leases) = Bucket::load(Some(bytes), now) else { return None };
    let amount = call.cost();
    let debit = leases.debit(limiter, now, amount);
    answer::check(debit.decision, 1);
    assert!(debit.rest <= amount.get() && (amount > Cost::ZERO || debit.next.is_none()), "{debit:?} of {amount:?}");
    let before = leases.decide(limiter, now, Cost::ZERO).decision;
    assert!(debit.decision.remaining <= before.remaining, "{debit:?} of {amount:?} where there was {before:?}");
    let left = left(bytes, debit.next.as_ref(), now);
    let after = Bucket::load(left.as_deref(), now);
    assert_eq!(after.decide(limiter, now, Cost::ZERO), debit.decision, "{amount:?} from {before:?}");
    check_all_there(leases, after, None, now);
    debit.next
}

/// Gives back. What it would do.
pub fn refunded(bytes: &[u8], now: Micros, call: &Call) -> Option<Plan> {
    let Bucket::Leased(leases) = Bucket::load(Some(bytes), now) else { return None };
    let amount = call.cost();
    let (told, next) = leases.refund(now, amount, call.age());
    answer::check(told, 1);
    assert!(amount > Cost::ZERO || next.is_none(), "nothing given back writes");
    let before = leases.peek(now, Cost::ONE);
    assert!(told.remaining >= before.remaining, "{amount:?} given back to {before:?} leaves {told:?}");
    assert!(told.remaining - before.remaining <= amount.get(), "{amount:?} given back to {before:?} leaves {told:?}");
    let left = left(bytes, next.as_ref(), now);
    check_all_there(leases, Bucket::load(left.as_deref(), now), None, now);
    next
}

/// What is stored after a call that would do this.
pub fn left(bytes: &[u8], plan: Option<&Plan>, now: Micros) -> Option<Vec<u8>> {
    let left = changed::left(bytes, plan, bytes.len())?;
    let Some(plan) = plan else { return Some(left) };
    let stored = Stored::read(&left).unwrap_or_else(|why| panic!("what a call has left can't be read: {why:?}"));
    let unused_at = plan.unused_at(&left);
    if unused_at < Micros::MAX {
        assert!(stored.is_unused(unused_at), "still in use at {unused_at:?}");
        let before = Micros::saturating(unused_at.get().saturating_sub(1).cast_signed());
        assert!(before < now || !stored.is_unused(before), "unused before {unused_at:?}");
    }
    if let Stored::Leases(in_place) = stored {
        // Made anew it is the same.
        let anew = plan.make(bytes);
        let Ok(Stored::Leases(anew)) = Stored::read(&anew) else { panic!("made anew it has no rows") };
        assert_eq!(rows(anew, now, None), rows(in_place, now, None));
        assert_eq!(anew.bucket(), in_place.bucket());
        check_rule(in_place, in_place.bucket().limiter(), now);
    }
    Some(left)
}

/// Whether calls can have left this: no row had expired at the last call, and what is in rows is spent. A row that says
/// else is a lie, which is gone as soon as the row is: then waits that were told before are wrong.
fn is_true(bytes: &[u8], leases: State<'_>) -> bool {
    let bucket = leases.bucket();
    let held: u128 = leases.leases(bucket.last()).map(|lease| u128::from(lease.row.held)).sum();
    let rows = bytes.get(52..54).map_or(0, |count| usize::from(u16::from_le_bytes([count[0], count[1]])));
    let spent = bytes.get(36..52).and_then(|spent| spent.first_chunk()).map_or(0, |spent| u128::from_le_bytes(*spent));
    leases.leases(bucket.last()).count() == rows && held <= spent / u128::from(bucket.limiter().rate().micros())
}

/// What is free and what is in rows are together at most the capacity.
fn check_rule(leases: State<'_>, limiter: TokenBucket, now: Micros) {
    let free = leases.decide(limiter, now, Cost::ZERO).decision.remaining;
    let held = Bucket::Leased(leases).held(now);
    let capacity = limiter.capacity().get();
    assert!(free == 0 || u128::from(free) + held <= capacity.into(), "{free} free and {held} in rows of {capacity}");
}

/// The live rows but those of the node that called are what they were.
fn check_all_there(before: State<'_>, after: Bucket<'_>, but: Option<Name<'_>>, now: Micros) {
    let left = match after {
        Bucket::Plain(_) => Vec::new(),
        Bucket::Leased(leases) => rows(leases, now, but),
    };
    assert_eq!(left, rows(before, now, but));
}

fn rows(leases: State<'_>, now: Micros, but: Option<Name<'_>>) -> Vec<(Vec<u8>, [u64; 4], bool)> {
    let told = leases.leases(now).filter(|lease| but.is_none_or(|name| name.get() != lease.node));
    let mut told: Vec<_> = told
        .map(|lease| {
            let row = lease.row;
            (lease.node.to_vec(), [row.held, row.ttl, row.expires.get(), row.seq], row.put_off)
        })
        .collect();
    told.sort_unstable();
    told
}

fn in_millis(now: Micros, millis: u64) -> Option<Micros> {
    Micros::new(now.get().checked_add(millis.checked_mul(1_000)?)?)
}
