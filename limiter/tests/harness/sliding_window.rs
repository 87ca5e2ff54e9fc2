//! The sliding window counter: its parameters, and the bound for each window.

use num_bigint::BigInt;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rl_limiter::{Limit, LimiterState, Micros, Window, sliding_window};

use super::subject::{Small, Stored};
use super::{Algorithm, Taken, fixed_window};
use crate::model::sliding_window::{Params, SlidingWindow};

impl Small for SlidingWindow {
    type Params = Params;
    type Limiter = rl_limiter::SlidingWindow;
    type State = sliding_window::State;

    fn limiter(params: &Params) -> rl_limiter::SlidingWindow {
        let (limit, window) = (Limit::new(params.limit), Window::from_micros(params.window));
        rl_limiter::SlidingWindow::new(limit.unwrap(), window.unwrap())
    }

    /// Within the window only the time moves; into an earlier one goes the estimate, rounded up.
    fn restamped(state: sliding_window::State, at: Micros) -> Option<sliding_window::State> {
        let window = state.limiter().window().as_micros();
        let (last, at_micros) = (state.last().get(), at.get());
        let (current, previous) = if last / window == at_micros / window {
            (state.current(), state.previous())
        } else {
            let covered = u128::from(state.previous()) * u128::from(window - last % window);
            (state.current() + u64::try_from(covered.div_ceil(window.into())).ok()?, 0)
        };
        sliding_window::State::new(state.limiter(), at, current, previous)
    }

    fn owing(_limiter: rl_limiter::SlidingWindow, _at: Micros, _owed: u64) -> Option<sliding_window::State> {
        None
    }
}

impl Algorithm for SlidingWindow {
    type Model = Self;
    type Subject = Stored<Self>;

    fn any_params() -> BoxedStrategy<Params> {
        (super::scenarios::limit(), fixed_window::window()).prop_map(|(limit, window)| Params { limit, window }).boxed()
    }

    fn next_edge(params: &Params, at: u64) -> Option<u64> {
        Some((at / params.window + 1) * params.window)
    }

    /// The count of a window still counts in the next one.
    fn longest_wait(params: &Params) -> BigInt {
        (2 * params.window).div_ceil(1_000).into()
    }

    /// No window holds more than the limit, nor do two of them together more than the limit and what the first one had that
    /// the second no longer covered when it was taken; the clock that goes back lives through a window twice.
    fn within_bounds(params: &Params, taken: &[Taken], stepped: bool) -> Result<(), TestCaseError> {
        let window = |one: &Taken| one.at / params.window;
        for last in taken.iter().filter(|_| !stepped) {
            let until = |number: u64| -> u128 {
                let of_it = taken.iter().filter(|one| window(one) == number && one.at <= last.at);
                of_it.map(|one| u128::from(one.cost)).sum()
            };
            let number = window(last);
            let before = number.checked_sub(1).map_or(0, until);
            let left = u128::from((number + 1) * params.window - last.at);
            let sum = until(number) * u128::from(params.window) + before * left;
            let most = u128::from(params.limit) * u128::from(params.window);
            let is_last = taken.iter().all(|one| one.at != last.at || window(one) == number);
            prop_assert!(!is_last || sum <= most, "{last:?}: {sum} of {most}");
        }
        Ok(())
    }

    fn with_limit(params: &Params, limit: u64) -> Params {
        Params { limit, ..*params }
    }
}
