//! A limit as the crate judges it, beside the model of the same limit.

mod log;

use num_bigint::BigInt;
use proptest::prelude::*;
use rl_limiter::several::Summary;
use rl_limiter::{
    Capacity, Cost, Decision, Limit, Limiter, Micros, Rate, RetryAfter, Vote, Window, fixed_window, layout,
    leaky_bucket, sliding_window, token_bucket,
};

use crate::model::fixed_window::{self as fixed, FixedWindow};
use crate::model::leaky_bucket::LeakyBucket;
use crate::model::sliding_window::{self as sliding, SlidingWindow};
use crate::model::token_bucket::{self as bucket, TokenBucket};
use crate::model::{Answer, Exact, History, Model};

/// A limit, judged by the crate and by a model.
pub trait Judged {
    /// What the model answers, with nothing taken.
    fn untaken(&self, at: u64, cost: u64) -> Answer;

    /// Has the crate judge the call.
    fn judge(&mut self, at: u64, cost: u64) -> Summary;

    /// Carries out what was judged, in both, and compares the answers.
    fn settle(&mut self, at: u64, cost: u64, allowed: bool) -> Result<(), TestCaseError>;

    /// What remains by the model.
    fn share(&self, at: u64) -> Exact;
}

/// What a call asks of a limit.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    Units(u64),
    /// All that remains, and so many more.
    Remaining(u64),
    Half,
}

impl Arbitrary for Asked {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> BoxedStrategy<Self> {
        prop_oneof![
            6 => (0..3_u64).prop_map(Asked::Units),
            2 => Just(Asked::Remaining(0)),
            1 => Just(Asked::Remaining(1)),
            4 => Just(Asked::Half),
        ]
        .boxed()
    }
}

impl Asked {
    pub fn cost(self, answer: Answer) -> u64 {
        match self {
            Self::Units(units) => units,
            Self::Remaining(more) => (answer.remaining + more).min(crate::model::MOST),
            Self::Half => answer.remaining / 2,
        }
    }
}

/// A limit that a scenario has.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    kind: usize,
    limit: u64,
    window: u64,
    rate: (u64, u64),
}

const MOST_TERM: u64 = i64::MAX.unsigned_abs();
const MOST: u64 = crate::model::MOST;

/// Everyday limits, so small ones that shares are often equal, and the largest.
pub fn any_limit() -> impl Strategy<Value = Chosen> {
    let limit = prop_oneof![
        1 => Just(0_u64), 6 => 1..7_u64, 2 => 10..1_000_u64, 1 => Just(MOST), 1 => Just(MOST - 1),
    ];
    let window = prop_oneof![
        Just(1_000_u64),
        Just(1_000_000),
        Just(60_000_000),
        Just(86_400_000_000),
        Just(3_153_600_000_000_000),
        1_000..9_999_999_u64,
    ];
    let rate = prop_oneof![
        4 => (1..5_u64, Just(1_000_000_u64)),
        1 => (1..1_000_u64, 1..1_000_000_u64),
        1 => Just((MOST_TERM, 1)),
        1 => Just((MOST_TERM, MOST_TERM - 1)),
        1 => Just((1, MOST_TERM)),
        1 => (MOST_TERM - 9..MOST_TERM, MOST_TERM - 9..MOST_TERM),
    ];
    (0..5_usize, limit, window, rate).prop_map(|(kind, limit, window, rate)| Chosen { kind, limit, window, rate })
}

impl Chosen {
    /// The limit, unused.
    pub fn make(&self) -> Box<dyn Judged> {
        let Self { limit, window, rate: (units, micros), .. } = *self;
        let most = Limit::new(limit).unwrap();
        let length = Window::from_micros(window).unwrap();
        let rate = Rate::new(units, micros).unwrap();
        let capacity = Capacity::new(limit).unwrap();
        let params = bucket::Params { capacity: limit, rate: Exact::new(BigInt::from(units), BigInt::from(micros)) };
        match self.kind {
            0 => Pair::<FixedWindow, fixed_window::FixedWindow>::boxed(
                fixed::Params { limit, window },
                fixed_window::FixedWindow::new(most, length),
            ),
            1 => Pair::<SlidingWindow, sliding_window::SlidingWindow>::boxed(
                sliding::Params { limit, window },
                sliding_window::SlidingWindow::new(most, length),
            ),
            2 => Pair::<TokenBucket, _>::boxed(params, token_bucket::TokenBucket::new(capacity, rate)),
            3 => Pair::<LeakyBucket, _>::boxed(params, leaky_bucket::LeakyBucket::new(capacity, rate)),
            _ => Box::new(log::Log::new(most, length)),
        }
    }
}

/// A limiter whose state is a few numbers.
struct Pair<M: Model, L: Limiter> {
    params: M::Params,
    limiter: L,
    history: History<M>,
    state: Option<L::State>,
    vote: Option<Vote<L::State>>,
}

impl<M: Model + 'static, L: Limiter + 'static> Pair<M, L> {
    fn boxed(params: M::Params, limiter: L) -> Box<dyn Judged> {
        Box::new(Self { params, limiter, history: History::default(), state: None, vote: None })
    }
}

impl<M: Model, L: Limiter> Judged for Pair<M, L> {
    fn untaken(&self, at: u64, cost: u64) -> Answer {
        self.history.peek(at, &self.params, cost)
    }

    fn judge(&mut self, at: u64, cost: u64) -> Summary {
        self.vote.insert(self.limiter.judge(self.state, moment(at), Cost::new(cost).unwrap(), |state| state)).summary()
    }

    fn settle(&mut self, at: u64, cost: u64, allowed: bool) -> Result<(), TestCaseError> {
        let expected = if allowed {
            self.history.decide(at, &self.params, cost).answer
        } else {
            let answer = self.untaken(at, cost);
            if cost > 0 {
                self.history.set_back(at);
            }
            answer
        };
        let Ok(outcome) = self.vote.as_ref().unwrap().outcome(allowed);
        prop_assert_eq!(answer_of(outcome.decision), expected, "cost {} of {:?}", cost, &self.params);
        if cost == 0 {
            prop_assert!(outcome.next.is_none(), "cost 0 stores nothing");
        }
        // Alone, a call is answered by what is then stored as the model answers, so a state that is wrong shows.
        let alone = self.limiter.decide(self.state, moment(at), Cost::new(cost).unwrap());
        if allowed || !alone.decision.allowed {
            prop_assert_eq!(&alone.decision, &outcome.decision);
            let stored = [alone.next, outcome.next.copied()].map(|next| next.map(Into::<layout::State>::into));
            prop_assert!(stored[0] == stored[1], "the same is stored as by a call that asks this limit alone");
        }
        self.state = outcome.next.copied().or(self.state);
        Ok(())
    }

    fn share(&self, at: u64) -> Exact {
        self.history.share(at, &self.params)
    }
}

fn moment(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn answer_of(decision: Decision) -> Answer {
    let Decision { allowed, limit, remaining, retry_after, reset_after } = decision;
    let retry_after = match retry_after {
        RetryAfter::Millis(millis) => i64::try_from(millis).unwrap(),
        RetryAfter::Never => crate::model::NEVER,
    };
    Answer { allowed, limit, remaining, retry_after, reset_after }
}
