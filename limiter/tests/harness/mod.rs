//! Makes random calls to the crate and to the model of what it promises, and holds the answers against each other.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `subject.rs` | the crate as a server would use it: its state is bytes between two calls |
//! | `scenarios.rs` | random calls: gaps that aim at edges and waits, costs that aim at what is left |
//! | `comparison.rs` | all that has to hold after each call |
//! | `fixed_window.rs`, `sliding_window.rs`, `token_bucket.rs`, `leaky_bucket.rs` | one algorithm each: its parameters, and the bounds that follow from its definition |
//!
//! Another algorithm is one more such file beside its model: it implements [`Algorithm`], and [`subject::Small`] if its
//! state is small.

pub mod comparison;
pub mod fixed_window;
pub mod leaky_bucket;
pub mod scenarios;
pub mod sliding_window;
pub mod subject;
pub mod token_bucket;

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicU64, Ordering};

use num_bigint::BigInt;
use proptest::strategy::{BoxedStrategy, Strategy};
use proptest::test_runner::TestCaseError;

use crate::model::Model;
use crate::random::check;
use scenarios::Step;
use subject::Subject;

/// The parameters of an algorithm.
pub type ParamsOf<A> = <<A as Algorithm>::Model as Model>::Params;

/// What a call took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The time of the call.
    pub at: u64,
    /// How far the clock had gone ahead since the scenario began, its steps back left out.
    pub ahead: u64,
    /// The units.
    pub cost: u64,
}

/// One algorithm: what is promised, what keeps the promise, and what to try on it.
pub trait Algorithm: 'static {
    /// The promise.
    type Model: Model;
    /// What has to keep it.
    type Subject: Subject<Params = ParamsOf<Self>>;

    /// Everyday and extreme parameters.
    fn any_params() -> BoxedStrategy<ParamsOf<Self>>;

    /// The first moment after `at` at which something happens by itself, if the algorithm has such moments.
    fn next_edge(params: &ParamsOf<Self>, at: u64) -> Option<u64>;

    /// One full refill or window in milliseconds, rounded up: no wait is longer, whatever the parameters and clocks were.
    fn longest_wait(params: &ParamsOf<Self>) -> BigInt;

    /// Checks what was admitted with the same parameters against the bound of the definition in every interval. The clock
    /// may have `stepped` back.
    fn within_bounds(params: &ParamsOf<Self>, taken: &[Taken], stepped: bool) -> Result<(), TestCaseError>;

    /// How many times what can be had at once may be in use. More than once is a debt.
    const MOST_IN_USE: u64 = 1;

    /// The same parameters, except that so many units can be had at once.
    fn with_limit(params: &ParamsOf<Self>, limit: u64) -> ParamsOf<Self>;
}

/// What happens between the calls of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditions {
    /// Every call has the same parameters, and the clock only goes ahead.
    Steady,
    /// Callers disagree on the parameters, or change them.
    Changing,
    /// That, and the clock steps back.
    Stepping,
}

/// A scenario: some sets of parameters, and calls that each use one of them.
#[derive(Clone)]
pub struct Scenario<P> {
    pub conditions: Conditions,
    pub params: Vec<P>,
    pub start: u64,
    /// What was taken before the scenario began, whatever there was.
    pub owed: u64,
    pub steps: Vec<Step>,
}

/// A step a line, even where a failure asks for more.
impl<P: Debug> Debug for Scenario<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} from {} with {} owed", self.conditions, self.start, self.owed)?;
        self.params.iter().enumerate().try_for_each(|(index, params)| writeln!(f, "{index}: {params:?}"))?;
        self.steps.iter().try_for_each(|one| writeln!(f, "{one:?}"))
    }
}

/// Runs so many random scenarios, and prints how many calls that took.
pub fn compare<A: Algorithm>(conditions: Conditions, count: u32) {
    compare_all::<A>(&format!("{conditions:?}"), count, scenarios::any::<A>(conditions));
}

/// The same, only that a debt is there from the start.
pub fn compare_in_debt<A: Algorithm>(conditions: Conditions, count: u32) {
    compare_all::<A>(&format!("{conditions:?}, in debt"), count, scenarios::in_debt::<A>(conditions));
}

fn compare_all<A: Algorithm>(name: &str, count: u32, scenarios: impl Strategy<Value = Scenario<ParamsOf<A>>>) {
    let calls = AtomicU64::new(0);
    check(count, scenarios, |scenario| {
        calls.fetch_add(comparison::run::<A>(&scenario)?, Ordering::Relaxed);
        Ok(())
    });
    println!("{name}: {} calls", calls.into_inner());
}
