//! The path of every call that decides, whether it asks one limit or several: what is judged is first checked for the
//! memory that it takes, and only then anything is written.

use rl_limiter::{Cost, Decision, JointVerdict, Limiter, SlidingLog, TokenBucket, TooManyEntries, Vote};

use super::MAX_LOG_ENTRIES;
use super::algorithm::Decides;
use super::counted::Counted;
use super::reply;
use super::store::{Bucket, Change, KEY, Slot, check_memory};
use crate::server::{Call, Error, Mode, RareLine};

static LOG_IS_FULL: RareLine = RareLine::new();

/// What one limit says to its part of a call, and what there is to do to its key either way.
pub type KeyVote = Vote<Change, TooManyEntries>;

/// Decides a call that asks one limiter, stores what it took, and replies.
pub fn decide<L: Limiter + Decides>(call: &mut Call<'_>, limiter: L, cost: Cost) -> Result<(), Error> {
    let decision = {
        let mut slot = Slot::open(call, Mode::Change)?;
        let outcome = limiter.decide(slot.load_kind()?, slot.now(), cost);
        if let Some(next) = outcome.next {
            make(&mut slot, &Change::Store(next.into()), outcome.decision.allowed)?;
        }
        outcome.decision
    };
    reply::decision(call, Counted::decided(call, KEY, L::BY, cost, decision));
    Ok(())
}

/// Decides a call that asks one token bucket, whether or not nodes hold slices of it.
pub fn decide_by_bucket(call: &mut Call<'_>, limiter: TokenBucket, cost: Cost) -> Result<(), Error> {
    let decision = {
        let mut slot = Slot::open(call, Mode::Change)?;
        let now = slot.now();
        match slot.load_bucket()? {
            Bucket::Plain(state) => {
                let outcome = limiter.decide(state, now, cost);
                if let Some(next) = outcome.next {
                    make(&mut slot, &Change::Store(next.into()), outcome.decision.allowed)?;
                }
                outcome.decision
            }
            Bucket::Leased(leases) => {
                let outcome = leases.decide(limiter, now, cost);
                if let Some(plan) = outcome.next {
                    make(&mut slot, &Change::Leases(plan), outcome.decision.allowed)?;
                }
                outcome.decision
            }
        }
    };
    reply::decision(call, Counted::decided(call, KEY, TokenBucket::BY, cost, decision));
    Ok(())
}

/// Decides a call that asks one log, does to it what the call took, and replies.
pub fn decide_by_log(call: &mut Call<'_>, limiter: SlidingLog, cost: Cost) -> Result<(), Error> {
    let decision = {
        let mut slot = Slot::open(call, Mode::Change)?;
        let now = slot.now();
        let (plan, decision) = match limiter.decide(slot.load_log()?, now, cost, most_entries()) {
            Ok(outcome) => (outcome.next, Ok(outcome.decision)),
            // Whatever the answer, what is later than now is brought to now.
            Err(full) => (slot.load_log()?.and_then(|log| log.seen_from(now)), Err(log_is_full(full))),
        };
        if let Some(plan) = plan {
            let takes = decision.as_ref().is_ok_and(|decision: &Decision| decision.allowed);
            make(&mut slot, &Change::Log(plan), takes)?;
        }
        decision?
    };
    reply::decision(call, Counted::decided(call, KEY, SlidingLog::BY, cost, decision));
    Ok(())
}

/// Makes a change, which takes something or only brings the state to now.
#[inline(always)]
fn make(slot: &mut Slot<'_>, change: &Change, takes: bool) -> Result<(), Error> {
    if takes { slot.change(change) } else { slot.bring_to_now(change) }
}

/// What a limiter says to its part of a call.
pub fn vote<L: Limiter>(slot: &mut Slot<'_>, limiter: L, cost: Cost) -> Result<KeyVote, Error> {
    Ok(limiter.judge(slot.load_kind()?, slot.now(), cost, |next| Change::Store(next.into())))
}

/// What a token bucket says to its part of a call, whether or not nodes hold slices of it.
pub fn vote_by_bucket(slot: &mut Slot<'_>, limiter: TokenBucket, cost: Cost) -> Result<KeyVote, Error> {
    let now = slot.now();
    Ok(match slot.load_bucket()? {
        Bucket::Plain(state) => limiter.judge(state, now, cost, |next| Change::Store(next.into())),
        Bucket::Leased(leases) => leases.judge(limiter, now, cost, Change::Leases),
    })
}

/// What a log says to its part of a call.
pub fn vote_by_log(slot: &mut Slot<'_>, limiter: SlidingLog, cost: Cost) -> Result<KeyVote, Error> {
    let now = slot.now();
    Ok(limiter.judge(slot.load_log()?, now, cost, most_entries(), Change::Log))
}

/// Does to the keys of a call, in order, what their limits' votes come to: if none denies, all take, else none does.
///
/// Nothing is taken either if memory lacks for one of them, or if a log is full: both are errors. Whatever the answer
/// but for memory that lacks, what is later than now is set to now; where nothing is taken, memory that lacks for that
/// is no error.
pub fn settle(slots: &mut [Slot<'_>], votes: &[KeyVote]) -> Result<JointVerdict, Error> {
    let verdict = JointVerdict::of(votes.iter().map(Vote::summary));
    let full = votes.iter().enumerate().find_map(|(index, vote)| Some((index, vote.next(verdict.allowed).err()?)));
    let takes = verdict.allowed && full.is_none();
    let changes = || votes.iter().map(|vote| vote.next(takes).ok().flatten());

    if takes {
        check_memory(slots.iter().zip(changes()).filter_map(|(slot, change)| Some((slot, change?))))?;
    }
    let mut done = Ok(());
    for (slot, change) in slots.iter_mut().zip(changes()) {
        if let Some(change) = change {
            // Should the server not take one, what the others took stays taken.
            done = done.and(if takes { slot.carry_out(change) } else { slot.bring_to_now(change) });
        }
    }
    done?;
    full.map_or(Ok(verdict), |(index, full)| Err(in_limit(index)(log_is_full(full))))
}

/// An error of a call that asks several limits says which one it is about, counted as `index` in the reply is.
pub fn in_limit(index: usize) -> impl FnOnce(Error) -> Error {
    move |error| error.at(format_args!("limit {index}"))
}

/// The most entries that a log may have.
fn most_entries() -> u32 {
    u32::try_from(MAX_LOG_ENTRIES.get()).unwrap_or(u32::MAX)
}

fn log_is_full(_: TooManyEntries) -> Error {
    let most = MAX_LOG_ENTRIES.get();
    LOG_IS_FULL
        .warn(|| format!("a sliding window log is full, and its calls get errors: rl.max-log-entries is {most}"));
    Error::formatted(format_args!("ERR the log is full: rl.max-log-entries is {most}"))
}
