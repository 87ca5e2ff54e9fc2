//! The fixed window: its parameters, and the bound for each window.

use num_bigint::BigInt;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_limiter::{Limit, Micros, Window, fixed_window};

use super::subject::{Small, Stored};
use super::{Algorithm, Taken};
use crate::model::fixed_window::{FixedWindow, Params};

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

impl Small for FixedWindow {
    type Params = Params;
    type Limiter = rl_limiter::FixedWindow;
    type State = fixed_window::State;

    fn limiter(params: &Params) -> rl_limiter::FixedWindow {
        let (limit, window) = (Limit::new(params.limit), Window::from_micros(params.window));
        rl_limiter::FixedWindow::new(limit.unwrap(), window.unwrap())
    }

    fn restamped(state: fixed_window::State, at: Micros) -> Option<fixed_window::State> {
        let limiter = rl_limiter::LimiterState::limiter(&state);
        fixed_window::State::new(limiter, at, state.count())
    }

    fn owing(_limiter: rl_limiter::FixedWindow, _at: Micros, _owed: u64) -> Option<fixed_window::State> {
        None
    }
}

impl Algorithm for FixedWindow {
    type Model = Self;
    type Subject = Stored<Self>;

    fn any_params() -> BoxedStrategy<Params> {
        (super::scenarios::limit(), window()).prop_map(|(limit, window)| Params { limit, window }).boxed()
    }

    fn next_edge(params: &Params, at: u64) -> Option<u64> {
        Some((at / params.window + 1) * params.window)
    }

    fn longest_wait(params: &Params) -> BigInt {
        params.window.div_ceil(1_000).into()
    }

    /// The clock that goes back into a window which is over lives through it twice, so there the bound is the model's.
    fn within_bounds(params: &Params, taken: &[Taken], stepped: bool) -> Result<(), TestCaseError> {
        let window = |one: &Taken| one.at / params.window;
        for first in taken.iter().filter(|_| !stepped) {
            let same = taken.iter().filter(|one| window(one) == window(first));
            let sum: u64 = same.map(|one| one.cost).sum();
            prop_assert!(sum <= params.limit, "{sum} units in the window of {first:?}");
        }
        Ok(())
    }

    fn with_limit(params: &Params, limit: u64) -> Params {
        Params { limit, ..*params }
    }
}

/// Everyday and extreme windows in microseconds.
pub fn window() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => prop::sample::select(vec![1_000, 1_001, 250_000, SECOND, 10 * SECOND, 60 * SECOND, 3_600 * SECOND, DAY, 7 * DAY]),
        1 => 1_000..3 * SECOND,
        1 => 1_000..=36_500 * DAY,
        1 => Just(36_500 * DAY),
    ]
}
