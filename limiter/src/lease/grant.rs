//! What a call gets.

use super::ask::Ask;
use super::plan::{Own, Plan};
use super::refill::{Level, millis};
use super::row::{Held, MAX_ROWS, Row};
use super::seen::Seen;
use super::state::State;
use crate::decision::RetryAfter;
use crate::limiter::LimiterState;
use crate::quantity::{Cost, MAX_EXACT, Micros};
use crate::token_bucket::{TokenBucket, saturate};

/// The answer to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The tokens that the node may now call its own, those that it said it has among them.
    pub holding: u64,
    /// The tokens that are free, rounded down.
    pub free: u64,
    /// The tokens in live rows.
    pub outstanding: u64,
    /// When to ask again: 0 if something was granted or nothing asked for.
    pub retry_after: RetryAfter,
    /// Milliseconds, rounded down, until the node's row is forfeited; 0 without a row.
    pub ttl: u64,
    /// The live rows.
    pub nodes: u64,
}

/// An answer, and what the call makes of the state.
#[derive(Clone, Copy, Debug)]
pub struct Leased {
    /// The answer to the node.
    pub answer: Answer,
    /// What is to be done; `None` leaves the state as it is.
    pub next: Option<Plan>,
}

/// What a node that asks for tokens gets.
struct Grant {
    tokens: u64,
    retry_after: RetryAfter,
    put_off: bool,
}

impl TokenBucket {
    /// Hears what a node has and grants what it wants, as far as there is, to a bucket of these parameters.
    ///
    /// A node gets at most half of what is free, shared among the live nodes, but `min` if there is as much: so none takes
    /// everything, and grants shrink to 1 as the budget ends. If there is less than `min` and refill reaches it within the
    /// ttl, the node is put off until then, once in a row.
    pub fn lease(self, state: Option<State<'_>>, now: Micros, ask: &Ask<'_>) -> Leased {
        let seen = Seen::of(state, now, Some(ask.node));
        match seen.own {
            Some((_, row)) if is_old(ask, &row) => told_again(&seen, &row),
            None if ask.want == Cost::ZERO => self.unchanged(&seen, RetryAfter::Millis(0)),
            None if seen.live >= MAX_ROWS => self.unchanged(&seen, self.until_a_row_is_free(&seen)),
            // An unused bucket would have no parameters to remember.
            None if seen.state.is_none() && self.admits_nothing() => self.unchanged(&seen, RetryAfter::Never),
            _ => self.accept(&seen, ask),
        }
    }

    fn admits_nothing(self) -> bool {
        self.capacity() == Cost::ZERO
    }

    fn accept(self, seen: &Seen<'_>, ask: &Ask<'_>) -> Leased {
        let now = seen.now;
        // A capacity of 0 is never remembered: what the node reports goes to the bucket that is.
        let remembered = seen.state.map(|state| state.bucket().limiter());
        let by = remembered.filter(|_| self.admits_nothing()).unwrap_or(self);
        let mut level = seen.level(by);

        let (at, old) = seen.own.unzip();
        let held = old.map_or(0, |row| row.held);
        let have = ask.have.get().min(held);
        level.leave(held - have);
        level.give_back(have.saturating_sub(ask.want.get()));
        let kept = have.min(ask.want.get());

        let until = old.map_or(now, |row| row.expires).max(now.plus(ask.ttl.as_micros()));
        let until = if cfg!(lease_without_latest_expiry) { now.plus(ask.ttl.as_micros()) } else { until };
        let leaves = ask.want == Cost::ZERO;
        let nodes = seen.live + usize::from(at.is_none()) - usize::from(leaves);
        let asked = ask.want.get().saturating_sub(have);
        let was_put_off = old.is_some_and(|row| row.put_off);
        let grant = if asked == 0 {
            Grant { tokens: 0, retry_after: RetryAfter::Millis(0), put_off: false }
        } else if self.admits_nothing() {
            Grant { tokens: 0, retry_after: RetryAfter::Never, put_off: false }
        } else {
            let own = Held { until: until.get(), tokens: kept };
            let wait = |most| level.micros_until(most, &seen.live_rows().with(at, own));
            self.grant(level, asked, ask, nodes, was_put_off, wait)
        };
        level.grant(grant.tokens);

        let row = Row {
            held: kept + grant.tokens,
            ttl: until.since(now),
            expires: until,
            seq: ask.seq.get(),
            put_off: grant.put_off,
        };
        let own = match at {
            Some(at) if leaves => Own::Removed(at),
            Some(at) => Own::Replaced(at, row),
            None => Own::added(ask.node, row),
        };
        let answer = Answer {
            holding: row.held,
            free: if self.admits_nothing() { 0 } else { level.free() },
            outstanding: level.outstanding().min(MAX_EXACT),
            retry_after: grant.retry_after,
            ttl: if leaves { 0 } else { until.since(now) / 1_000 },
            nodes: count(nodes),
        };
        Leased { answer, next: Some(seen.plan(level, own)) }
    }

    /// What a node gets that asks for `asked` more tokens, at least one. `wait` tells the microseconds until at most so many parts are spent.
    fn grant(
        self,
        level: Level,
        asked: u64,
        ask: &Ask<'_>,
        nodes: usize,
        was_put_off: bool,
        wait: impl Fn(u128) -> u128,
    ) -> Grant {
        let least = ask.min.get().min(asked);
        let until = |tokens| self.most_spent_with(tokens).map(&wait);
        if level.free() < least && !was_put_off {
            let wait = until(least).filter(|wait| *wait <= ask.ttl.as_micros().into());
            if let Some(wait) = wait {
                return Grant { tokens: 0, retry_after: RetryAfter::Millis(millis(wait)), put_off: true };
            }
        }
        let share = 2 * u128::from(count(nodes)) * u128::from(self.rate().micros());
        let share = saturate(level.free_parts().div_ceil(share));
        let tokens = asked.min(share.max(least)).min(level.free());
        let retry_after = match tokens {
            0 => until(1).map_or(RetryAfter::Never, |wait| RetryAfter::Millis(millis(wait))),
            _ => RetryAfter::Millis(0),
        };
        Grant { tokens, retry_after, put_off: false }
    }

    /// The most parts that are spent while so many tokens are free; `None` if they never are.
    fn most_spent_with(self, free: u64) -> Option<u128> {
        self.capacity().get().checked_sub(free).map(|spent| self.parts(spent))
    }

    /// When a node gets a row, and a token: it would not be granted one without the other.
    fn until_a_row_is_free(self, seen: &Seen<'_>) -> RetryAfter {
        let Some(most) = self.most_spent_with(1) else { return RetryAfter::Never };
        let until_a_token = seen.level(self).micros_until(most, &seen.live_rows());
        let until_a_row = u128::from(seen.first.since(seen.now));
        RetryAfter::Millis(millis(until_a_token.max(until_a_row).min(seen.micros_until_unused())))
    }

    /// The answer to a call of a node without a row that gets none.
    fn unchanged(self, seen: &Seen<'_>, retry_after: RetryAfter) -> Leased {
        let level = seen.level(self);
        let answer = Answer {
            holding: 0,
            free: level.free(),
            outstanding: level.outstanding().min(MAX_EXACT),
            retry_after,
            ttl: 0,
            nodes: count(seen.live),
        };
        Leased { answer, next: seen.set_back() }
    }
}

/// Whether a call is a repeated or late one: the row already knows of it, or of a newer one.
fn is_old(ask: &Ask<'_>, row: &Row) -> bool {
    ask.seq.get() <= row.seq && !cfg!(lease_without_sequence)
}

/// The answer to a repeated or late call: from the row, by the remembered parameters. A node that holds nothing is told when it
/// would get a token.
fn told_again(seen: &Seen<'_>, row: &Row) -> Leased {
    let limiter = seen.state.map(|state| state.bucket().limiter());
    let level = limiter.map(|limiter| seen.level(limiter));
    let wait = match (limiter.and_then(|limiter| limiter.most_spent_with(1)), level) {
        (Some(most), Some(level)) if row.held == 0 => level.micros_until(most, &seen.live_rows()),
        _ => 0,
    };
    let answer = Answer {
        holding: row.held,
        free: level.map_or(0, |level| level.free()),
        outstanding: level.map_or(0, |level| level.outstanding()).min(MAX_EXACT),
        retry_after: RetryAfter::Millis(millis(wait)),
        ttl: row.expires.since(seen.now) / 1_000,
        nodes: count(seen.live),
    };
    Leased { answer, next: seen.set_back() }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
