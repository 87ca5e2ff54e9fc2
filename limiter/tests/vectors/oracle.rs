//! What the models reply to a call: keys with a model under each.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use rl_limiter::{Decision, RetryAfter};

use super::asked::{Asked, Policy};
use super::file::Reply;
use crate::lease_model::{self, Said};
use crate::model::fixed_window::FixedWindow;
use crate::model::leaky_bucket::LeakyBucket;
use crate::model::sliding_window::SlidingWindow;
use crate::model::token_bucket::{self, TokenBucket};
use crate::model::{Answer, Exact, History, NEVER, whole};
use crate::{concurrency_model, sliding_log_model};

/// The most holders and entries that a server has unless it is told otherwise.
const MOST_HOLDERS: usize = 1_000;
const MOST_ENTRIES: u32 = 100_000;

/// Keys.
pub struct Oracle {
    keys: BTreeMap<String, Kept>,
    collects: bool,
}

/// What is under a key.
enum Kept {
    Fixed(History<FixedWindow>),
    Sliding(History<SlidingWindow>),
    Log(sliding_log_model::Model),
    Bucket(Bucket),
    Leaky(History<LeakyBucket>),
    Places(concurrency_model::Model),
}

/// A token bucket by two models, which must agree until nodes hold slices of it, of which one knows nothing.
#[derive(Default)]
struct Bucket {
    history: History<TokenBucket>,
    leases: lease_model::Model,
    leased: bool,
}

impl Oracle {
    /// One that drops every key the moment it is unused if `collects` is set, else none ever: that must make no
    /// difference.
    pub fn new(collects: bool) -> Self {
        Self { keys: BTreeMap::new(), collects }
    }

    /// Replies to a call at `now`, in microseconds since the Unix epoch.
    pub fn call(&mut self, now: u64, call: &[String]) -> Reply {
        if self.collects {
            self.keys.retain(|_, kept| !kept.is_unused(now));
        }
        Asked::read(call).and_then(|asked| self.reply(now, asked)).unwrap_or_else(|error| Reply::Error { error })
    }

    /// Whether every key that was ever used is in use: only then may the clock go back without the answers depending on
    /// whether a server has collected a key meanwhile.
    pub fn is_settled(&self, now: u64) -> bool {
        !self.keys.is_empty() && self.keys.values().all(|kept| !kept.is_unused(now))
    }

    fn reply(&mut self, now: u64, asked: Asked) -> Result<Reply, String> {
        match asked {
            Asked::Several { limits, alone } => self.several(now, &limits, alone),
            Asked::Place { key, limit, ttl, holder, cost, renew_only } => {
                let Kept::Places(places) = self.used_or(now, &key, || Kept::Places(Default::default())) else {
                    return Err(self.other_kind(&key));
                };
                let told = places.decide((limit, ttl), now, &holder, cost, renew_only, MOST_HOLDERS);
                let told =
                    told.map_err(|_| format!("ERR there are too many holders: rl.max-holders is {MOST_HOLDERS}"))?;
                Ok(five(answer(told)))
            }
            Asked::Release { key, holder } => match self.used(now, &key) {
                None => Ok(Reply::Integer(0)),
                Some(Kept::Places(places)) => Ok(Reply::Integer(signed(places.release(now, &holder)))),
                Some(_) => Err(self.other_kind(&key)),
            },
            Asked::Peek { key, cost } => Ok(match self.used(now, &key) {
                None => Reply::Null(()),
                Some(kept) => five(kept.peek(now, cost)),
            }),
            Asked::Refund { key, amount, age } => Ok(match self.used(now, &key) {
                None => Reply::Null(()),
                Some(kept) => five(kept.refund(now, amount, age)?),
            }),
            Asked::Debit { key, params, amount } => {
                let Kept::Bucket(bucket) = self.used_or(now, &key, || Kept::Bucket(Bucket::default())) else {
                    return Err(self.other_kind(&key));
                };
                let (told, rest) = bucket.debit(now, &params, amount);
                let mut numbers = integers(told).to_vec();
                numbers.push(signed(rest));
                Ok(Reply::Integers(numbers))
            }
            Asked::Lease { key, params, said } => {
                let Kept::Bucket(bucket) = self.used_or(now, &key, || Kept::Bucket(Bucket::default())) else {
                    return Err(self.other_kind(&key));
                };
                Ok(bucket.lease(now, &params, &said))
            }
        }
    }

    /// Limits that all take or of which none does; or one `alone`, which is told no index.
    fn several(&mut self, now: u64, limits: &[(String, Policy, u64)], alone: bool) -> Result<Reply, String> {
        for (index, (key, policy, _)) in limits.iter().enumerate() {
            if !self.used_or(now, key, || Kept::new(policy)).is_for(policy) {
                let error = self.other_kind(key);
                return Err(if alone { error } else { format!("{error} (limit {index})") });
            }
        }
        let looks: Vec<Answer> =
            limits.iter().map(|(key, policy, cost)| self.keys[key].look(now, policy, *cost)).collect();
        let denying: Vec<usize> =
            (0..limits.len()).filter(|&index| limits[index].2 > 0 && !looks[index].allowed).collect();
        let mut answers = Vec::new();
        for ((key, policy, cost), look) in limits.iter().zip(&looks) {
            let kept = self.keys.get_mut(key).unwrap();
            answers.push(match denying.is_empty() {
                true => kept.take(now, policy, *cost),
                false => {
                    if *cost > 0 {
                        kept.set_back(now);
                    }
                    *look
                }
            });
        }
        if alone {
            return Ok(five(answers[0]));
        }
        let first = |candidates: Vec<usize>, before: &dyn Fn(usize, usize) -> bool| {
            candidates.into_iter().reduce(|best, next| if before(next, best) { next } else { best }).unwrap()
        };
        let index = if denying.is_empty() {
            let shares: Vec<Exact> = limits.iter().map(|(key, policy, _)| self.keys[key].share(now, policy)).collect();
            first((0..limits.len()).collect(), &|next, best| shares[next] < shares[best])
        } else {
            let wait = |index: usize| u64::try_from(looks[index].retry_after).unwrap_or(u64::MAX);
            first(denying.clone(), &|next, best| wait(next) > wait(best))
        };
        let mut numbers = vec![i64::from(denying.is_empty()), i64::try_from(index).unwrap()];
        numbers.extend(answers.into_iter().flat_map(integers));
        Ok(Reply::Integers(numbers))
    }

    /// What is in use under a key.
    fn used(&mut self, now: u64, key: &str) -> Option<&mut Kept> {
        self.keys.get_mut(key).filter(|kept| !kept.is_unused(now))
    }

    /// The same, or what takes the place of what is unused.
    fn used_or(&mut self, now: u64, key: &str, new: impl FnOnce() -> Kept) -> &mut Kept {
        if self.used(now, key).is_none() {
            self.keys.insert(key.to_owned(), new());
        }
        self.keys.get_mut(key).unwrap()
    }

    fn other_kind(&self, key: &str) -> String {
        let kind = match self.keys[key] {
            Kept::Fixed(_) => "fixed window",
            Kept::Sliding(_) => "sliding window",
            Kept::Log(_) => "sliding window log",
            Kept::Bucket(_) => "token bucket",
            Kept::Leaky(_) => "leaky bucket",
            Kept::Places(_) => "concurrency",
        };
        format!("WRONGTYPE the key holds a {kind} limiter")
    }
}

impl Kept {
    fn new(policy: &Policy) -> Self {
        match policy {
            Policy::Fixed(_) => Self::Fixed(History::default()),
            Policy::Sliding(_) => Self::Sliding(History::default()),
            Policy::Log { .. } => Self::Log(Default::default()),
            Policy::Bucket(_) => Self::Bucket(Bucket::default()),
            Policy::Leaky(_) => Self::Leaky(History::default()),
        }
    }

    fn is_for(&self, policy: &Policy) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(&Self::new(policy))
    }

    fn is_unused(&self, now: u64) -> bool {
        match self {
            Self::Fixed(history) => history.is_unused(now),
            Self::Sliding(history) => history.is_unused(now),
            Self::Log(log) => log.is_unused(now),
            Self::Bucket(bucket) => bucket.is_unused(now),
            Self::Leaky(history) => history.is_unused(now),
            Self::Places(places) => places.seen(now).is_empty(),
        }
    }

    /// With nothing taken.
    fn look(&self, now: u64, policy: &Policy, cost: u64) -> Answer {
        match (self, policy) {
            (Self::Fixed(history), Policy::Fixed(params)) => history.peek(now, params, cost),
            (Self::Sliding(history), Policy::Sliding(params)) => history.peek(now, params, cost),
            (Self::Log(log), Policy::Log { limit, window }) => answer(log.answer(*limit, *window, now, cost.max(1))),
            (Self::Bucket(bucket), Policy::Bucket(params)) => bucket.look(now, params, cost),
            (Self::Leaky(history), Policy::Leaky(params)) => history.peek(now, params, cost),
            _ => unreachable!("of another kind"),
        }
    }

    fn take(&mut self, now: u64, policy: &Policy, cost: u64) -> Answer {
        match (self, policy) {
            (Self::Fixed(history), Policy::Fixed(params)) => history.decide(now, params, cost).answer,
            (Self::Sliding(history), Policy::Sliding(params)) => history.decide(now, params, cost).answer,
            (Self::Log(log), Policy::Log { limit, window }) => {
                answer(log.decide(*limit, *window, now, cost, MOST_ENTRIES).unwrap())
            }
            (Self::Bucket(bucket), Policy::Bucket(params)) => bucket.take(now, params, cost),
            (Self::Leaky(history), Policy::Leaky(params)) => history.decide(now, params, cost).answer,
            _ => unreachable!("of another kind"),
        }
    }

    /// A call that may write took nothing.
    fn set_back(&mut self, now: u64) {
        match self {
            Self::Fixed(history) => history.set_back(now),
            Self::Sliding(history) => history.set_back(now),
            Self::Log(log) if log.is_unused(now) => {}
            Self::Log(log) => log.see_from(now),
            Self::Bucket(bucket) => {
                bucket.history.set_back(now);
                bucket.leases.restamp(now);
            }
            Self::Leaky(history) => history.set_back(now),
            Self::Places(_) => unreachable!("no part of several"),
        }
    }

    /// The part of what can be had at once that is not in use.
    fn share(&self, now: u64, policy: &Policy) -> Exact {
        match (self, policy) {
            (Self::Fixed(history), Policy::Fixed(params)) => history.share(now, params),
            (Self::Sliding(history), Policy::Sliding(params)) => history.share(now, params),
            (Self::Log(_), Policy::Log { limit, .. }) => part(whole(self.look(now, policy, 1).remaining), *limit),
            (Self::Bucket(bucket), Policy::Bucket(params)) => bucket.share(now, params),
            (Self::Leaky(history), Policy::Leaky(params)) => history.share(now, params),
            _ => unreachable!("of another kind"),
        }
    }

    /// By the remembered parameters, of what is in use.
    fn peek(&self, now: u64, cost: u64) -> Answer {
        match self {
            Self::Fixed(history) => history.peek(now, history.remembered().unwrap(), cost),
            Self::Sliding(history) => history.peek(now, history.remembered().unwrap(), cost),
            Self::Log(log) => answer(log.answer(log.limit, log.window, now, cost.max(1))),
            Self::Bucket(bucket) => bucket.look(now, &bucket.remembered(), cost),
            Self::Leaky(history) => history.peek(now, history.remembered().unwrap(), cost),
            Self::Places(places) => {
                // As a holder that has no place is told; a look takes none.
                let limit = places.remembered.unwrap();
                let newcomer = "somebody who holds nothing, with a name longer than any holder may have one";
                let told =
                    |cost| places.clone().decide((limit, 1_000), now, newcomer, cost, false, usize::MAX).unwrap();
                let (looked, asked) = (answer(told(0)), answer(told(cost)));
                Answer { remaining: looked.remaining, reset_after: looked.reset_after, ..asked }
            }
        }
    }

    /// What is in use gets something back, and a call of one unit is told so.
    fn refund(&mut self, now: u64, amount: u64, age: Option<u64>) -> Result<Answer, String> {
        Ok(match self {
            Self::Fixed(history) => history.refund(now, amount, age.unwrap_or(0)).unwrap(),
            Self::Sliding(history) => history.refund(now, amount, age.unwrap_or(0)).unwrap(),
            Self::Log(log) => {
                log.refund(now, amount, age);
                answer(log.answer(log.limit, log.window, now, 1))
            }
            Self::Bucket(bucket) => bucket.refund(now, amount, age.unwrap_or(0)),
            Self::Leaky(_) => return Err("ERR a leaky bucket limiter takes nothing back".to_owned()),
            Self::Places(_) => return Err("ERR a concurrency limiter takes nothing back".to_owned()),
        })
    }
}

impl Bucket {
    fn is_unused(&self, now: u64) -> bool {
        self.agreed(self.leases.is_unused(now), || self.history.is_unused(now))
    }

    fn look(&self, now: u64, params: &token_bucket::Params, cost: u64) -> Answer {
        self.agreed(by_leases(self.leases.look(now, &leased(params), cost)), || self.history.peek(now, params, cost))
    }

    fn take(&mut self, now: u64, params: &token_bucket::Params, cost: u64) -> Answer {
        let told = by_leases(self.leases.take(now, &leased(params), cost));
        let by_history = (!self.leased).then(|| self.history.decide(now, params, cost).answer);
        self.agreed(told, || by_history.unwrap())
    }

    fn debit(&mut self, now: u64, params: &token_bucket::Params, amount: u64) -> (Answer, u64) {
        let (told, rest) = self.leases.debit(now, &leased(params), amount);
        let by_history = (!self.leased).then(|| self.history.debit(now, params, amount));
        self.agreed((by_leases(told), rest), || by_history.unwrap())
    }

    fn refund(&mut self, now: u64, amount: u64, age: u64) -> Answer {
        let told = by_leases(self.leases.refund(now, amount, age).unwrap());
        let by_history = (!self.leased).then(|| self.history.refund(now, amount, age).unwrap());
        self.agreed(told, || by_history.unwrap())
    }

    fn lease(&mut self, now: u64, params: &lease_model::Params, said: &Said) -> Reply {
        self.leased = true;
        let lease_model::Lease { holding, free, outstanding, retry_after, ttl, nodes } =
            self.leases.lease(now, params, said);
        Reply::Integers(vec![
            signed(holding),
            signed(free),
            signed(outstanding),
            retry_after,
            signed(ttl),
            signed(nodes),
        ])
    }

    fn share(&self, now: u64, params: &token_bucket::Params) -> Exact {
        let free = self.leases.free(now, &leased(params)).max(whole(0));
        self.agreed(part(free, params.capacity), || self.history.share(now, params))
    }

    fn remembered(&self) -> token_bucket::Params {
        let lease_model::Params { capacity, rate } = self.leases.remembered().unwrap().clone();
        token_bucket::Params { capacity, rate }
    }

    /// What both models say.
    fn agreed<T: PartialEq + std::fmt::Debug>(&self, by_leases: T, by_history: impl FnOnce() -> T) -> T {
        if !self.leased {
            assert_eq!(by_leases, by_history(), "the models of a token bucket disagree");
        }
        by_leases
    }
}

fn leased(params: &token_bucket::Params) -> lease_model::Params {
    lease_model::Params { capacity: params.capacity, rate: params.rate.clone() }
}

fn part(left: Exact, limit: u64) -> Exact {
    if limit == 0 { whole(0) } else { left / BigInt::from(limit) }
}

fn by_leases(told: lease_model::Decision) -> Answer {
    let lease_model::Decision { allowed, limit, remaining, retry_after, reset } = told;
    Answer { allowed, limit, remaining, retry_after, reset_after: reset }
}

fn answer(decision: Decision) -> Answer {
    let Decision { allowed, limit, remaining, retry_after, reset_after } = decision;
    let retry_after = match retry_after {
        RetryAfter::Millis(millis) => signed(millis),
        RetryAfter::Never => NEVER,
    };
    Answer { allowed, limit, remaining, retry_after, reset_after }
}

fn five(answer: Answer) -> Reply {
    Reply::Integers(integers(answer).to_vec())
}

fn integers(answer: Answer) -> [i64; 5] {
    let Answer { allowed, limit, remaining, retry_after, reset_after } = answer;
    [allowed.into(), signed(limit), signed(remaining), retry_after, signed(reset_after)]
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}
