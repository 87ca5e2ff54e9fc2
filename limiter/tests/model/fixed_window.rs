//! The fixed window by definition: a list of what was taken when, and the sum of what lies in the window of now.

use num_bigint::BigInt;

use super::{Event, Exact, Model, Usage, whole};

/// At most `limit` units in each window of `window` microseconds since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    pub limit: u64,
    pub window: u64,
}

/// So many units, taken at some time.
#[derive(Clone, Copy)]
struct Taking {
    at: u64,
    units: u64,
}

/// Everything taken, oldest first, and the parameters of the last call that took something.
#[derive(Default)]
pub struct Standing {
    takings: Vec<Taking>,
    remembered: Option<Params>,
}

pub enum FixedWindow {}

impl Model for FixedWindow {
    type Params = Params;
    type Standing = Standing;

    fn limit(params: &Params) -> u64 {
        params.limit
    }

    fn stamp(standing: &Standing) -> Option<u64> {
        standing.takings.last().map(|taking| taking.at)
    }

    fn after(mut standing: Standing, event: &Event<Params>) -> Standing {
        match event {
            Event::Taken { at, cost, params } => {
                let mut takings = if standing.is_unused(*at) { Vec::new() } else { standing.seen_with(params) };
                takings.push(Taking { at: *at, units: *cost });
                Standing { takings, remembered: Some(params.clone()) }
            }
            Event::Refunded { at, amount, age } => {
                let Some(remembered) = &standing.remembered else { return standing };
                let of_now = window_of(&(*at).into(), remembered);
                let given = if window_of(&at.saturating_sub(*age).into(), remembered) == of_now { *amount } else { 0 };
                if given > 0 {
                    let units = standing.counted().saturating_sub(given);
                    standing.takings = vec![Taking { at: *at, units }];
                }
                standing
            }
            Event::SteppedBack { at } => {
                standing.takings = vec![Taking { at: *at, units: standing.counted() }];
                standing
            }
        }
    }

    fn usage(standing: &Standing, params: &Params) -> Usage {
        let Some(unused_from) = standing.unused_from() else {
            return Box::new(|_| whole(0));
        };
        let takings = standing.seen_with(params);
        let params = params.clone();
        Box::new(move |now| {
            if *now >= unused_from {
                return whole(0);
            }
            takings
                .iter()
                .filter(|taking| window_of(now, &params) == window_of(&taking.at.into(), &params))
                .map(units)
                .sum()
        })
    }

    fn remembered_usage(standing: &Standing) -> Usage {
        match &standing.remembered {
            Some(remembered) => Self::usage(standing, remembered),
            None => Box::new(|_| whole(0)),
        }
    }
}

impl Standing {
    /// The end of the remembered window that holds the last taking.
    fn unused_from(&self) -> Option<BigInt> {
        let (last, remembered) = (self.takings.last()?, self.remembered.as_ref()?);
        Some((window_of(&last.at.into(), remembered) + 1) * remembered.window)
    }

    fn is_unused(&self, at: u64) -> bool {
        self.unused_from().is_none_or(|end| BigInt::from(at) >= end)
    }

    /// What was taken in the remembered window that holds the last taking.
    fn live(&self) -> Vec<Taking> {
        let (Some(last), Some(remembered)) = (self.takings.last(), &self.remembered) else {
            return Vec::new();
        };
        let window = window_of(&last.at.into(), remembered);
        self.takings.iter().copied().filter(|taking| window_of(&taking.at.into(), remembered) == window).collect()
    }

    fn counted(&self) -> u64 {
        self.live().iter().map(|taking| taking.units).sum()
    }

    /// What is live in the eyes of a caller with other parameters: made at the last time, and cut to a limit that got
    /// smaller, but not to 0.
    fn seen_with(&self, params: &Params) -> Vec<Taking> {
        let (Some(last), Some(remembered)) = (self.takings.last(), &self.remembered) else {
            return Vec::new();
        };
        if params == remembered {
            return self.live();
        }
        let cut = 0 < params.limit && params.limit < remembered.limit;
        let units = if cut { self.counted().min(params.limit) } else { self.counted() };
        vec![Taking { at: last.at, units }]
    }
}

/// The number of the window, counted from the epoch, that holds a moment.
fn window_of(moment: &BigInt, params: &Params) -> BigInt {
    moment / params.window
}

fn units(taking: &Taking) -> Exact {
    whole(taking.units)
}
