//! The crate as a server would use it: between two calls there are only bytes.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_limiter::layout::{self, State};
use rl_limiter::{Cost, Decision, Limiter, LimiterState, Micros, RetryAfter};

use crate::model::{Answer, NEVER, Verdict};

/// Something that decides, with its state in it.
pub trait Subject: Clone + Default {
    /// What travels with each call.
    type Params;

    /// Answers a call and keeps what has to be kept.
    fn decide(&mut self, at: u64, params: &Self::Params, cost: u64) -> Result<Verdict, TestCaseError>;

    /// What a call would be answered.
    fn peek(&self, at: u64, params: &Self::Params, cost: u64) -> Result<Answer, TestCaseError>;

    /// What a call with the remembered parameters would be answered; `None` without a state.
    fn peek_remembered(&self, at: u64, cost: u64) -> Result<Option<Answer>, TestCaseError>;

    /// Whether the state can't be told from a missing one. A missing one can't.
    fn is_unused(&self, at: u64) -> Result<bool, TestCaseError>;

    /// From when on the state can't be told from a missing one; `None` without a state.
    fn unused_from(&self) -> Result<Option<u64>, TestCaseError>;

    /// This state, only that its last call was at `at`.
    fn restamped(&self, at: u64) -> Result<Self, TestCaseError>;

    /// So many units were taken whatever there was, from an unused limiter.
    fn owe(&mut self, at: u64, params: &Self::Params, owed: u64);

    /// The key is gone.
    fn forget(&mut self);

    /// What is stored, if anything.
    fn bytes(&self) -> Option<&[u8]>;
}

/// An algorithm whose state is small and copied.
pub trait Small {
    /// What travels with each call, in plain numbers.
    type Params;
    /// The crate's algorithm.
    type Limiter: Limiter<State = Self::State>;
    /// What the crate keeps of it.
    type State: LimiterState<Limiter = Self::Limiter> + PartialEq + std::fmt::Debug;

    /// The crate's algorithm with these parameters.
    fn limiter(params: &Self::Params) -> Self::Limiter;

    /// The state, only that its last call was at `at`.
    fn restamped(state: Self::State, at: Micros) -> Option<Self::State>;

    /// The state after so many units were taken from an unused limiter, perhaps more than there were; `None` if this
    /// algorithm knows no debt, or not with these parameters.
    fn owing(limiter: Self::Limiter, at: Micros, owed: u64) -> Option<Self::State>;
}

/// A small state, stored.
pub struct Stored<A> {
    bytes: Option<Vec<u8>>,
    algorithm: std::marker::PhantomData<A>,
}

impl<A> Default for Stored<A> {
    fn default() -> Self {
        Self { bytes: None, algorithm: std::marker::PhantomData }
    }
}

impl<A> Clone for Stored<A> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), ..Self::default() }
    }
}

impl<A: Small> Stored<A> {
    fn state(&self) -> Result<Option<A::State>, TestCaseError> {
        let Some(bytes) = &self.bytes else {
            return Ok(None);
        };
        prop_assert!(layout::Stored::has_length(bytes.len()));
        let state = State::decode(bytes).map_err(|error| TestCaseError::fail(format!("{error:?} for {bytes:02x?}")))?;
        A::State::try_from(state)
            .map(Some)
            .map_err(|other| TestCaseError::fail(format!("{other:?} is of another kind")))
    }

    /// Stores a state as a server does that only writes what changed.
    fn store(&mut self, state: A::State) {
        let encoded = state.into().encode();
        match &mut self.bytes {
            Some(old) if old.len() == encoded.len() => {
                let from = encoded.changed_from(old);
                old[from..].copy_from_slice(&encoded[from..]);
            }
            bytes => *bytes = Some(encoded.to_vec()),
        }
    }
}

impl<A: Small> Subject for Stored<A> {
    type Params = A::Params;

    fn decide(&mut self, at: u64, params: &A::Params, cost: u64) -> Result<Verdict, TestCaseError> {
        let outcome = A::limiter(params).decide(self.state()?, moment(at), units(cost));
        if let Some(next) = outcome.next {
            self.store(next);
            prop_assert_eq!(self.state()?, Some(next), "stored and read again");
        }
        Ok(Verdict { answer: answer(outcome.decision), writes: outcome.next.is_some() })
    }

    fn peek(&self, at: u64, params: &A::Params, cost: u64) -> Result<Answer, TestCaseError> {
        Ok(answer(A::limiter(params).peek(self.state()?, moment(at), units(cost))))
    }

    fn peek_remembered(&self, at: u64, cost: u64) -> Result<Option<Answer>, TestCaseError> {
        Ok(self.state()?.map(|state| answer(state.into().peek(moment(at), units(cost)))))
    }

    fn is_unused(&self, at: u64) -> Result<bool, TestCaseError> {
        Ok(self.state()?.is_none_or(|state| state.into().is_unused(moment(at))))
    }

    fn unused_from(&self) -> Result<Option<u64>, TestCaseError> {
        Ok(self.state()?.map(|state| state.into().unused_at().get()))
    }

    fn restamped(&self, at: u64) -> Result<Self, TestCaseError> {
        let mut restamped = Self::default();
        if let Some(state) = self.state()? {
            restamped.store(A::restamped(state, moment(at)).unwrap());
        }
        Ok(restamped)
    }

    fn owe(&mut self, at: u64, params: &A::Params, owed: u64) {
        self.store(A::owing(A::limiter(params), moment(at), owed).unwrap());
    }

    fn forget(&mut self) {
        self.bytes = None;
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }
}

/// A moment in the crate's terms.
pub fn moment(at: u64) -> Micros {
    Micros::new(at).unwrap()
}

fn units(cost: u64) -> Cost {
    Cost::new(cost).unwrap()
}

/// A decision in the model's terms.
pub fn answer(decision: Decision) -> Answer {
    Answer {
        allowed: decision.allowed,
        limit: decision.limit,
        remaining: decision.remaining,
        retry_after: match decision.retry_after {
            RetryAfter::Millis(millis) => i64::try_from(millis).unwrap(),
            RetryAfter::Never => NEVER,
        },
        reset_after: decision.reset_after,
    }
}
