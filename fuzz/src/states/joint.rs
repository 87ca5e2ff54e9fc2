//! Several limits in one call, each on its own key with the same bytes: one rule for all, held against what each says
//! alone.

use rl_limiter::layout::{State, Stored};
use rl_limiter::several::Summary;
use rl_limiter::{
    Cost, Decision, FixedWindow, JointVerdict, LeakyBucket, Limiter, Micros, Outcome, RetryAfter, SlidingLog,
    SlidingWindow, TokenBucket, Vote,
};

use super::call::Call;
use super::facts::Facts;

/// What a limit says alone, and to its part of a call.
struct Part {
    cost: Cost,
    alone: Decision,
    summary: Summary,
}

/// Asks as many limits as there are calls, all at the time of the first one.
pub fn check(bytes: &[u8], calls: &[Call]) {
    let Ok(stored) = Stored::read(bytes) else { return };
    let facts = Facts::of(&stored, bytes);
    let Some(now) = calls.first().map(|call| call.now(&facts)) else { return };
    let parts: Vec<Part> = calls.iter().filter_map(|call| part(stored, &facts, now, call)).collect();
    let denies = |part: &&Part| part.cost > Cost::ZERO && !part.alone.allowed;
    let verdict = JointVerdict::of(parts.iter().map(|part| part.summary));
    assert_eq!(verdict.allowed, !parts.iter().any(|part| denies(&part)));
    let Some(chosen) = parts.get(verdict.index) else { return assert_eq!(parts.len(), 0) };
    if !verdict.allowed {
        let wait = |part: &Part| match part.alone.retry_after {
            RetryAfter::Never => u64::MAX,
            RetryAfter::Millis(millis) => millis,
        };
        let longest = parts.iter().filter(denies).map(wait).max();
        let first = parts.iter().position(|part| denies(&part) && Some(wait(part)) == longest);
        assert_eq!(first, Some(verdict.index));
    }
    // Of the chosen one and any other the same one is chosen.
    for (index, part) in parts.iter().enumerate().filter(|(index, _)| *index != verdict.index) {
        let (pair, expected) = if index < verdict.index {
            ([part.summary, chosen.summary], 1)
        } else {
            ([chosen.summary, part.summary], 0)
        };
        assert_eq!(JointVerdict::of(pair).index, expected);
    }
}

/// `None` of holders, which are no limit of a call to several.
fn part(stored: Stored<'_>, facts: &Facts, now: Micros, call: &Call) -> Option<Part> {
    let (limit, window, rate, cost) = (call.limit(facts), call.window(facts), call.rate(facts), call.cost());
    Some(match stored {
        Stored::State(State::FixedWindow(state)) => of_numbers(FixedWindow::new(limit, window), state, now, cost),
        Stored::State(State::SlidingWindow(state)) => of_numbers(SlidingWindow::new(limit, window), state, now, cost),
        Stored::State(State::LeakyBucket(state)) => of_numbers(LeakyBucket::new(limit, rate), state, now, cost),
        Stored::State(State::TokenBucket(state)) => of_numbers(TokenBucket::new(limit, rate), state, now, cost),
        Stored::SlidingLog(log) => {
            let limiter = SlidingLog::new(limit, window);
            let most = call.entries.into();
            let vote = limiter.judge(Some(log), now, cost, most, |plan| plan);
            let looked = limiter.peek(Some(log), now, cost);
            match limiter.decide(Some(log), now, cost, most) {
                Ok(outcome) => of(cost, looked, outcome, &vote),
                Err(_) => {
                    assert!(vote.outcome(true).is_err());
                    Part { cost, alone: looked, summary: vote.summary() }
                }
            }
        }
        Stored::Leases(leases) => {
            let limiter = TokenBucket::new(limit, rate);
            let vote: Vote<_> = leases.judge(limiter, now, cost, |plan| plan);
            let alone = leases.decide(limiter, now, cost);
            // What is allowed is seen as a look for less is.
            let looked = if alone.decision.allowed { leases.decide(limiter, now, Cost::ZERO) } else { alone };
            of(cost, looked.decision, alone, &vote)
        }
        Stored::Concurrency(_) => return None,
    })
}

fn of_numbers<L: Limiter>(limiter: L, state: L::State, now: Micros, cost: Cost) -> Part {
    let vote: Vote<_> = limiter.judge(Some(state), now, cost, |next| next);
    of(cost, limiter.peek(Some(state), now, cost), limiter.decide(Some(state), now, cost), &vote)
}

/// Alone, a vote comes to what is decided of the limit alone; if another one denies, to a look.
fn of<N, E: Copy>(cost: Cost, looked: Decision, alone: Outcome<N>, vote: &Vote<N, E>) -> Part {
    let joint = |allowed| vote.outcome(allowed).unwrap_or_else(|_| panic!("a vote that can't be carried out"));
    let (all, none) = (joint(alone.decision.allowed), joint(false));
    assert_eq!(all.decision, alone.decision);
    assert_eq!(all.next.is_some(), alone.next.is_some());
    assert_eq!(none.decision, looked);
    assert!(none.next.is_none() || cost > Cost::ZERO);
    Part { cost, alone: alone.decision, summary: vote.summary() }
}
