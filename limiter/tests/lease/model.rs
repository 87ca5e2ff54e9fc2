//! What the lease promises, word by word, in rational numbers.
//!
//! It knows no parts and no levels: there are free tokens, rows, and time that passes from one expiry to the next. A wait is
//! not worked out but searched for, as the first moment at which the model itself says yes. It shares no type and no function
//! with the crate that it judges.

use num_bigint::BigInt;
use num_rational::BigRational;

/// Tokens, or tokens per microsecond, without any rounding.
pub type Exact = BigRational;

/// The largest number that a reply holds.
const MOST: u64 = 9_007_199_254_740_991;
/// How far a wait is searched for: beyond what a reply can say.
pub const FAR: u64 = 1 << 53;
/// The reply's wait for "never".
pub const NEVER: i64 = -1;

pub fn whole(tokens: u64) -> Exact {
    Exact::from_integer(BigInt::from(tokens))
}

#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    pub capacity: u64,
    pub rate: Exact,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    node: Vec<u8>,
    held: u64,
    ttl: u64,
    expires: u64,
    seq: u64,
    put_off: bool,
}

/// A key in use.
#[derive(Clone, Debug)]
struct State {
    /// The remembered parameters.
    params: Params,
    /// When something was last taken or given.
    last: u64,
    free: Exact,
    rows: Vec<Row>,
}

/// A key.
#[derive(Clone, Debug, Default)]
pub struct Model(Option<State>);

/// The six numbers of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub holding: u64,
    pub free: u64,
    pub outstanding: u64,
    pub retry_after: i64,
    pub ttl: u64,
    pub nodes: u64,
}

/// The five numbers of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub limit: u64,
    pub remaining: u64,
    pub retry_after: i64,
    pub reset: u64,
}

/// What a node says.
#[derive(Clone, Debug)]
pub struct Said {
    pub node: Vec<u8>,
    pub seq: u64,
    pub have: u64,
    pub want: u64,
    pub ttl: u64,
    pub min: u64,
}

impl State {
    fn outstanding(&self) -> u64 {
        self.rows.iter().map(|row| row.held).sum()
    }

    /// The most that can be free beside the rows; where they exceed the capacity, nothing is, and debt stays.
    fn most_free(&self) -> Exact {
        whole(self.params.capacity.saturating_sub(self.outstanding()))
    }

    fn stop_at_the_most(&mut self) {
        let most = self.most_free();
        if self.free > most {
            self.free = most;
        }
    }

    fn refill(&mut self, to: u64) {
        if to > self.last && self.outstanding() <= self.params.capacity {
            self.free += &self.params.rate * BigInt::from(to - self.last);
            self.stop_at_the_most();
        }
        self.last = self.last.max(to);
    }

    /// The same state at `now`, as a caller with `params` sees it.
    fn seen(&self, now: u64, params: &Params) -> State {
        let mut seen = self.clone();
        if now < seen.last {
            seen.last = now;
            for row in &mut seen.rows {
                row.expires = row.expires.min(now + row.ttl);
            }
        }
        if *params != seen.params {
            let steps = Exact::from_integer(params.rate.denom().clone());
            let mut used = ((whole(seen.params.capacity) - &seen.free) * &steps).ceil() / steps;
            if 0 < params.capacity && params.capacity < seen.params.capacity {
                used = used.min(whole(params.capacity));
            }
            seen.free = whole(params.capacity) - used;
            seen.params = params.clone();
        }
        seen.stop_at_the_most();
        loop {
            let next = seen.rows.iter().filter(|row| row.expires <= now).map(|row| row.expires).min();
            let Some(next) = next else { break };
            seen.refill(next);
            let at = seen.rows.iter().position(|row| row.expires == next).unwrap();
            seen.rows.remove(at);
        }
        seen.refill(now);
        seen
    }

    fn is_unused(&self, now: u64) -> bool {
        let seen = self.seen(now, &self.params);
        seen.rows.is_empty() && seen.free == whole(self.params.capacity)
    }
}

impl Model {
    /// What is in use at `now`.
    fn used(&self, now: u64) -> Option<&State> {
        self.0.as_ref().filter(|state| !state.is_unused(now))
    }

    pub fn is_unused(&self, now: u64) -> bool {
        self.used(now).is_none()
    }

    pub fn is_later_than(&self, now: u64) -> bool {
        self.0.as_ref().is_some_and(|state| state.last > now)
    }

    pub fn remembered(&self) -> Option<&Params> {
        self.0.as_ref().map(|state| &state.params)
    }

    /// The tokens in live rows.
    pub fn outstanding(&self, now: u64) -> u64 {
        self.used(now).map_or(0, |state| state.seen(now, &state.params).outstanding())
    }

    /// The tokens that are free for a caller with these parameters, below 0 in debt.
    pub fn free(&self, now: u64, params: &Params) -> Exact {
        self.seen(now, params).free
    }

    /// A caller's view, also of a key that is not in use.
    fn seen(&self, now: u64, params: &Params) -> State {
        match self.used(now) {
            Some(state) => state.seen(now, params),
            None => State { params: params.clone(), last: now, free: whole(params.capacity), rows: Vec::new() },
        }
    }

    /// How many microseconds from `now` on until nothing is in use; at most `FAR`.
    pub fn micros_until_unused(&self, now: u64) -> u64 {
        first(|micros| self.is_unused(now + micros))
    }

    /// How many milliseconds from `now` on until so many tokens are free for a caller.
    fn millis_until_free(&self, now: u64, params: &Params, tokens: u64) -> i64 {
        let millis = first(|millis| self.seen(now + millis * 1_000, params).free >= whole(tokens));
        i64::try_from(millis.min(MOST)).unwrap()
    }

    /// Whatever a call is answered: if it finds that the clock went back, everything counts as made now.
    pub fn restamp(&mut self, now: u64) {
        if let Some(state) = self.used(now).filter(|state| state.last > now) {
            self.0 = Some(state.seen(now, &state.params.clone()));
        }
    }

    pub fn lease(&mut self, now: u64, params: &Params, said: &Said) -> Lease {
        self.restamp(now);
        let used = self.used(now).cloned();
        let remembered = used.as_ref().map(|state| state.params.clone());
        let seen = self.seen(now, params);
        let own = seen.rows.iter().find(|row| row.node == said.node).cloned();
        let unchanged = |retry_after| Lease {
            holding: 0,
            free: floor(&seen.free),
            outstanding: seen.outstanding(),
            retry_after,
            ttl: 0,
            nodes: seen.rows.len() as u64,
        };
        match &own {
            Some(row) if said.seq <= row.seq => {
                let seen = self.seen(now, remembered.as_ref().unwrap());
                let retry_after = if row.held > 0 { 0 } else { self.millis_until_free(now, &seen.params, 1) };
                return Lease {
                    holding: row.held,
                    free: floor(&seen.free),
                    outstanding: seen.outstanding(),
                    retry_after,
                    ttl: (row.expires - now) / 1_000,
                    nodes: seen.rows.len() as u64,
                };
            }
            None if said.want == 0 => return unchanged(0),
            None if seen.rows.len() == 1_024 => {
                if params.capacity == 0 {
                    return unchanged(NEVER);
                }
                let gets_a_token = |millis: u64| {
                    let then = self.seen(now + millis * 1_000, params);
                    then.rows.len() < 1_024 && then.free >= whole(1)
                };
                return unchanged(i64::try_from(first(gets_a_token).min(MOST)).unwrap());
            }
            None if params.capacity == 0 && used.is_none() => return unchanged(NEVER),
            _ => {}
        }

        // A capacity of 0 is not remembered: what is reported then is so by the remembered parameters.
        let by = match &remembered {
            Some(remembered) if params.capacity == 0 => remembered.clone(),
            _ => params.clone(),
        };
        let mut state = self.seen(now, &by);
        let position = state.rows.iter().position(|row| row.node == said.node);
        let mut row =
            own.unwrap_or(Row { node: said.node.clone(), held: 0, ttl: 0, expires: 0, seq: 0, put_off: false });
        let have = said.have.min(row.held);
        let kept = have.min(said.want);
        let was_put_off = row.put_off;
        row = Row { held: kept, seq: said.seq, put_off: false, ..row };
        row.expires = row.expires.max(now + said.ttl);
        row.ttl = row.expires - now;
        match position {
            Some(position) => state.rows[position] = row,
            None => state.rows.push(row),
        }
        let position = position.unwrap_or(state.rows.len() - 1);
        state.free += whole(have - kept);
        state.stop_at_the_most();

        let asked = said.want - kept;
        let (mut granted, mut retry_after) = (0, 0);
        if asked > 0 && params.capacity == 0 {
            retry_after = NEVER;
        } else if asked > 0 {
            let alone = Model(Some(state.clone()));
            let least = said.min.min(asked);
            let within_ttl = alone.seen(now + said.ttl, &by).free >= whole(least);
            if least > 0 && state.free < whole(least) && !was_put_off && within_ttl {
                state.rows[position].put_off = true;
                retry_after = alone.millis_until_free(now, &by, least);
            } else {
                let share = &state.free / whole(2 * state.rows.len() as u64);
                let share = share.ceil().max(whole(least));
                granted = floor(&whole(asked).min(share).min(state.free.floor()).max(whole(0)));
                if granted == 0 {
                    retry_after = alone.millis_until_free(now, &by, 1);
                }
            }
        }
        state.free -= whole(granted);
        state.rows[position].held += granted;
        let ttl = state.rows[position].ttl / 1_000;
        let (holding, outstanding) = (state.rows[position].held, state.outstanding());
        let leaves = said.want == 0;
        if leaves {
            state.rows.remove(position);
        }
        let answer = Lease {
            holding,
            free: if params.capacity == 0 { 0 } else { floor(&state.free) },
            outstanding,
            retry_after,
            ttl: if leaves { 0 } else { ttl },
            nodes: state.rows.len() as u64,
        };
        self.0 = Some(state);
        answer
    }

    /// What a caller is told without taking anything.
    pub fn look(&self, now: u64, params: &Params, cost: u64) -> Decision {
        let asked = cost.max(1);
        let mut looked = self.clone();
        looked.restamp(now);
        let fits = |millis: u64| looked.seen(now + millis * 1_000, params).free >= whole(asked);
        let allowed = fits(0);
        let retry_after = match allowed {
            true => 0,
            false if asked > params.capacity => NEVER,
            false => i64::try_from(first(fits).min(MOST)).unwrap(),
        };
        let reset = first(|millis| {
            let then = looked.seen(now + millis * 1_000, params);
            then.rows.is_empty() && then.free == whole(params.capacity)
        });
        let remaining = floor(&self.free(now, params));
        Decision { allowed, limit: params.capacity, remaining, retry_after, reset: reset.min(MOST) }
    }

    pub fn take(&mut self, now: u64, params: &Params, cost: u64) -> Decision {
        if cost > 0 {
            self.restamp(now);
        }
        let looked = self.look(now, params, cost);
        if cost == 0 || !looked.allowed {
            return looked;
        }
        let mut state = self.seen(now, params);
        state.free -= whole(cost);
        self.0 = Some(state);
        let after = self.look(now, params, 1);
        Decision { remaining: after.remaining, reset: after.reset, ..looked }
    }

    pub fn debit(&mut self, now: u64, params: &Params, amount: u64) -> (Decision, u64) {
        if amount > 0 {
            self.restamp(now);
        }
        let mut state = self.seen(now, params);
        let taken = amount.min(floor(&(&state.free + whole(params.capacity))));
        if taken > 0 {
            state.free -= whole(taken);
            self.0 = Some(state);
        }
        (self.look(now, params, 1), amount - taken)
    }

    pub fn refund(&mut self, now: u64, amount: u64, age: u64) -> Option<Decision> {
        if amount > 0 {
            self.restamp(now);
        }
        let params = self.used(now)?.params.clone();
        let mut state = self.seen(now, &params);
        let given = whole(amount) - &params.rate * BigInt::from(age);
        let before = state.free.clone();
        if given > whole(0) {
            state.free += given;
            state.stop_at_the_most();
        }
        if state.free > before {
            self.0 = Some(state);
        }
        Some(self.look(now, &params, 1))
    }
}

fn floor(tokens: &Exact) -> u64 {
    u64::try_from(tokens.clone().max(whole(0)).floor().to_integer()).unwrap()
}

/// The smallest number for which `holds` is true, up to a bound above all that a reply can say. It must stay true.
fn first(holds: impl Fn(u64) -> bool) -> u64 {
    if holds(0) {
        return 0;
    }
    let mut high = 1;
    while !holds(high) {
        if high >= FAR {
            return FAR;
        }
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
