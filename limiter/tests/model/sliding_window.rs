//! The sliding window counter by definition: what was taken in the window of now counts whole, what was taken in the one
//! before counts for the part of it that the last stretch as long as a window still covers.

use num_bigint::BigInt;

use super::{Event, Exact, Model, Usage, whole};

/// At most `limit` units in the last `window` microseconds, estimated.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    pub limit: u64,
    pub window: u64,
}

/// So many units, taken at some time.
#[derive(Clone)]
struct Taking {
    at: u64,
    units: BigInt,
}

/// Everything taken, oldest first, and the parameters of the last call that took something.
#[derive(Default)]
pub struct Standing {
    takings: Vec<Taking>,
    /// The time of the last event.
    stamp: Option<u64>,
    remembered: Option<Params>,
}

pub enum SlidingWindow {}

impl Model for SlidingWindow {
    type Params = Params;
    type Standing = Standing;

    fn limit(params: &Params) -> u64 {
        params.limit
    }

    fn stamp(standing: &Standing) -> Option<u64> {
        standing.stamp
    }

    fn after(mut standing: Standing, event: &Event<Params>) -> Standing {
        match event {
            Event::Taken { at, cost, params } => {
                let mut takings = if standing.is_unused(*at) { Vec::new() } else { standing.seen_with(params) };
                takings.push(Taking { at: *at, units: (*cost).into() });
                Standing { takings, stamp: Some(*at), remembered: Some(params.clone()) }
            }
            Event::Refunded { at, amount, age } => {
                let Some(window) = standing.remembered.as_ref().map(|remembered| remembered.window) else {
                    return standing;
                };
                let (of_now, taken_in) = (at / window, at.saturating_sub(*age) / window);
                let mut counts = [of_now.checked_sub(1), Some(of_now)].map(|number| {
                    let of_it = standing.takings.iter().filter(|taking| Some(taking.at / window) == number);
                    of_it.map(|taking| &taking.units).sum::<BigInt>()
                });
                let Some(index) =
                    [of_now.checked_sub(1), Some(of_now)].iter().position(|&number| number == Some(taken_in))
                else {
                    return standing;
                };
                if counts[index] == BigInt::from(0) {
                    return standing;
                }
                counts[index] = (&counts[index] - BigInt::from(*amount)).max(BigInt::from(0));
                let [before, now] = counts;
                let before = of_now.checked_sub(1).map(|number| Taking { at: number * window, units: before });
                standing.takings = before.into_iter().chain([Taking { at: *at, units: now }]).collect();
                standing.stamp = Some(*at);
                standing
            }
            Event::SteppedBack { at } => {
                let (Some(stamp), Some(remembered)) = (standing.stamp, standing.remembered.as_ref()) else {
                    return standing;
                };
                if stamp / remembered.window == at / remembered.window {
                    // Within the window only the time moves: what was taken later in it counts as taken now.
                    for taking in &mut standing.takings {
                        taking.at = taking.at.min(*at);
                    }
                } else {
                    let units = standing.estimate_last();
                    standing.takings = vec![Taking { at: *at, units }];
                }
                standing.stamp = Some(*at);
                standing
            }
        }
    }

    fn usage(standing: &Standing, params: &Params) -> Usage {
        let Some(remembered) = &standing.remembered else {
            return Box::new(|_| whole(0));
        };
        let by_remembered = estimate(standing.takings.clone(), remembered.window);
        if params == remembered {
            return by_remembered;
        }
        let by_caller = estimate(standing.seen_with(params), params.window);
        Box::new(move |now| if by_remembered(now) == whole(0) { whole(0) } else { by_caller(now) })
    }

    fn remembered_usage(standing: &Standing) -> Usage {
        match &standing.remembered {
            Some(remembered) => Self::usage(standing, remembered),
            None => Box::new(|_| whole(0)),
        }
    }
}

impl Standing {
    fn is_unused(&self, at: u64) -> bool {
        SlidingWindow::remembered_usage(self)(&BigInt::from(at)) == whole(0)
    }

    /// The estimate at the last event, rounded up.
    fn estimate_last(&self) -> BigInt {
        let at = BigInt::from(self.stamp.unwrap_or(0));
        SlidingWindow::remembered_usage(self)(&at).ceil().to_integer()
    }

    /// What was taken in the eyes of a caller with other parameters: with the same window two counts, each cut to a
    /// limit that got smaller but not to 0; with another the estimate at the last event, made then, and cut likewise.
    fn seen_with(&self, params: &Params) -> Vec<Taking> {
        let (Some(stamp), Some(remembered)) = (self.stamp, &self.remembered) else {
            return Vec::new();
        };
        if params == remembered {
            return self.takings.clone();
        }
        let cut = |units: BigInt| {
            let smaller = 0 < params.limit && params.limit < remembered.limit;
            if smaller { units.min(params.limit.into()) } else { units }
        };
        if params.window != remembered.window {
            return vec![Taking { at: stamp, units: cut(self.estimate_last()) }];
        }
        let number = stamp / params.window;
        let counted = |number: u64| -> BigInt {
            let of_it = self.takings.iter().filter(|taking| taking.at / params.window == number);
            of_it.map(|taking| &taking.units).sum()
        };
        let before =
            number.checked_sub(1).map(|before| Taking { at: before * params.window, units: cut(counted(before)) });
        before.into_iter().chain([Taking { at: stamp, units: cut(counted(number)) }]).collect()
    }
}

fn estimate(takings: Vec<Taking>, window: u64) -> Usage {
    Box::new(move |now| {
        let number = now / window;
        let counted = |number: &BigInt| -> BigInt {
            let of_it = takings.iter().filter(|taking| BigInt::from(taking.at) / window == *number);
            of_it.map(|taking| &taking.units).sum()
        };
        let left = (&number + 1) * window - now;
        let covered = Exact::new(counted(&(&number - 1)) * left, window.into());
        Exact::from_integer(counted(&number)) + covered
    })
}
