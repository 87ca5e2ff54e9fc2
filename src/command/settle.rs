//! The path of every call that decides, whether it asks one limit or several: each limit is judged, the memory for what
//! is to be stored is checked, and only then anything is written.

use std::convert::Infallible;
use std::slice;

use rl_limiter::{Cost, Limiter, SlidingLog, TokenBucket, TooManyEntries, Verdict, Vote};

use super::MAX_LOG_ENTRIES;
use super::reply;
use super::store::{Bucket, Change, Slot, check_memory};
use crate::server::{Call, Error, Mode};

/// What one limit says to its part of a call, and what there is to do to its key either way.
pub type KeyVote = Vote<Change, TooManyEntries>;

/// Decides a call that asks one limit, stores what it took, and replies.
pub fn decide(call: &mut Call<'_>, judge: impl FnOnce(&mut Slot<'_>) -> Result<KeyVote, Error>) -> Result<(), Error> {
    let decision = {
        let mut slot = Slot::open(call, Mode::Change)?;
        let vote = judge(&mut slot)?;
        let verdict = settle(slice::from_mut(&mut slot), slice::from_ref(&vote))?;
        vote.outcome(verdict.allowed).map_err(|_| log_is_full())?.decision
    };
    reply::decision(call, decision);
    Ok(())
}

/// What a limiter says to its part of a call.
pub fn vote<L: Limiter>(slot: &mut Slot<'_>, limiter: L, cost: Cost) -> Result<KeyVote, Error> {
    let vote = limiter.judge(slot.load_kind()?, slot.now(), cost);
    Ok(vote.map(|next| Change::Store(next.into()), never))
}

/// What a token bucket says to its part of a call, whether or not nodes hold slices of it.
pub fn vote_by_bucket(slot: &mut Slot<'_>, limiter: TokenBucket, cost: Cost) -> Result<KeyVote, Error> {
    let now = slot.now();
    Ok(match slot.load_bucket()? {
        Bucket::Plain(state) => limiter.judge(state, now, cost).map(|next| Change::Store(next.into()), never),
        Bucket::Leased(leases) => leases.judge(limiter, now, cost).map(Change::Leases, never),
    })
}

/// What a log says to its part of a call.
pub fn vote_by_log(slot: &mut Slot<'_>, limiter: SlidingLog, cost: Cost) -> Result<KeyVote, Error> {
    let (now, most) = (slot.now(), u32::try_from(MAX_LOG_ENTRIES.get()).unwrap_or(u32::MAX));
    Ok(limiter.judge(slot.load_log()?, now, cost, most).map(Change::Log, |full| full))
}

/// Does to the keys of a call, in order, what their limits' votes come to: if none denies, all take, else none does.
///
/// Nothing is taken either if memory lacks for one of them, or if a log is full: both are errors. Whatever the answer but for
/// memory that lacks, what is later than now is set to now.
pub fn settle(slots: &mut [Slot<'_>], votes: &[KeyVote]) -> Result<Verdict, Error> {
    let verdict = Verdict::of(votes.iter().map(Vote::summary));
    let log_full = verdict.allowed && votes.iter().any(|vote| vote.outcome(true).is_err());
    let takes = verdict.allowed && !log_full;
    let changes = || votes.iter().map(|vote| vote.outcome(takes).ok().and_then(|outcome| outcome.next.as_ref()));

    check_memory(slots.iter().zip(changes()).filter_map(|(slot, change)| Some((slot, change?))))?;
    let mut done = Ok(());
    for (slot, change) in slots.iter_mut().zip(changes()) {
        if let Some(change) = change {
            // Should the server not take one, what the others took stays taken.
            done = done.and(slot.carry_out(change));
        }
    }
    done?;
    if log_full { Err(log_is_full()) } else { Ok(verdict) }
}

fn never(never: Infallible) -> TooManyEntries {
    match never {}
}

fn log_is_full() -> Error {
    Error::formatted(format_args!("ERR the log is full: rl.max-log-entries is {}", MAX_LOG_ENTRIES.get()))
}
