//! What callers were told, limiter by limiter.

use std::sync::atomic::{AtomicI64, Ordering};

/// What can be done to a limiter.
#[derive(Clone, Copy)]
pub enum Effect {
    /// All of it or nothing.
    Take(i64),
    GiveBack(i64),
    /// As much as fits.
    Debit(i64),
}

/// One limiter in one time: before a caller lost its server, or after.
#[derive(Default)]
struct Account {
    taken: AtomicI64,
    given_back: AtomicI64,
    /// What calls asked for whose reply never came: it may count or not.
    maybe_taken: AtomicI64,
    maybe_given_back: AtomicI64,
}

/// The accounts of all limiters.
pub struct Books {
    before: Vec<Account>,
    after: Vec<Account>,
}

/// Between what bounds the units are that callers had and the server has forgotten.
pub struct Bounds {
    pub least: i64,
    pub most: i64,
}

impl Books {
    pub fn new(limiters: usize) -> Self {
        let accounts = || (0..limiters).map(|_| Account::default()).collect();
        Self { before: accounts(), after: accounts() }
    }

    /// `has_lost` says whether the caller has lost its server once.
    pub fn answered(&self, limiter: usize, has_lost: bool, effect: Effect, reply: &[i64]) {
        let account = if has_lost { &self.after[limiter] } else { &self.before[limiter] };
        match effect {
            Effect::Take(cost) => add(&account.taken, cost * reply[0]),
            Effect::GiveBack(amount) => add(&account.given_back, amount),
            Effect::Debit(amount) => add(&account.taken, amount - reply[5]),
        }
    }

    pub fn unanswered(&self, limiter: usize, effect: Effect) {
        match effect {
            Effect::Take(units) | Effect::Debit(units) => add(&self.before[limiter].maybe_taken, units),
            Effect::GiveBack(units) => add(&self.before[limiter].maybe_given_back, units),
        }
    }

    /// The units that callers took themselves, after the load.
    pub fn took(&self, limiter: usize, units: i64) {
        add(&self.after[limiter].taken, units);
    }

    /// What callers were given of a limiter and have not given back.
    pub fn net(&self, limiter: usize) -> i64 {
        let net = |account: &Account| get(&account.taken) - get(&account.given_back);
        net(&self.before[limiter]) + net(&self.after[limiter])
    }

    /// Of each limiter, what was taken and given back until now by callers that have not lost their server.
    pub fn so_far(&self) -> Vec<[i64; 2]> {
        self.before.iter().map(|account| [get(&account.taken), get(&account.given_back)]).collect()
    }

    /// What can be forgotten of a limiter if all that was told up to `kept` is kept.
    pub fn bounds(&self, limiter: usize, kept: &[[i64; 2]]) -> Bounds {
        let (account, [taken, given_back]) = (&self.before[limiter], kept[limiter]);
        Bounds {
            least: -(get(&account.given_back) - given_back + get(&account.maybe_taken)),
            most: get(&account.taken) - taken + get(&account.maybe_given_back),
        }
    }
}

fn add(sum: &AtomicI64, units: i64) {
    sum.fetch_add(units, Ordering::SeqCst);
}

fn get(sum: &AtomicI64) -> i64 {
    sum.load(Ordering::SeqCst)
}
