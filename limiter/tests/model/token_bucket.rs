//! The token bucket by definition: over no interval may more be taken than `capacity + rate × time`.
//!
//! So nothing is refilled here. The units in use are what the worst interval that ends now has left of its allowance:
//! the maximum, over all takings, of what was taken from that one on less `rate × time` since it.

use num_bigint::{BigInt, Sign};

use super::{Event, Exact, Model, Usage, whole};

/// `capacity` units at once, and `rate` units per microsecond.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    pub capacity: u64,
    pub rate: Exact,
}

/// So many units, taken at some time. Fractions come from a change of parameters or a step of the clock, where what is
/// in use becomes one taking.
#[derive(Clone)]
struct Taking {
    at: u64,
    units: Exact,
}

/// Everything taken since the last change or step, oldest first, and the parameters of the last call that took
/// something.
#[derive(Default)]
pub struct Standing {
    takings: Vec<Taking>,
    remembered: Option<Params>,
}

pub enum TokenBucket {}

impl Model for TokenBucket {
    type Params = Params;
    type Standing = Standing;

    fn limit(params: &Params) -> u64 {
        params.capacity
    }

    fn stamp(standing: &Standing) -> Option<u64> {
        standing.takings.last().map(|taking| taking.at)
    }

    fn after(mut standing: Standing, event: &Event<Params>) -> Standing {
        match event {
            Event::Taken { at, cost, params } => {
                let mut takings = if standing.is_unused(*at) { Vec::new() } else { standing.seen_with(params) };
                takings.push(Taking { at: *at, units: whole(*cost) });
                Standing { takings, remembered: Some(params.clone()) }
            }
            Event::Refunded { at, amount, age } => {
                let Some(remembered) = &standing.remembered else { return standing };
                let refilled_since = &remembered.rate * BigInt::from(*age);
                let given = (whole(*amount) - refilled_since).max(whole(0));
                if given > whole(0) {
                    let used = TokenBucket::remembered_usage(&standing)(&BigInt::from(*at));
                    standing.takings = vec![Taking { at: *at, units: (used - given).max(whole(0)) }];
                }
                standing
            }
            Event::SteppedBack { at } => {
                standing.takings = vec![Taking { at: *at, units: standing.used_last() }];
                standing
            }
        }
    }

    fn usage(standing: &Standing, params: &Params) -> Usage {
        let Some(remembered) = &standing.remembered else {
            return Box::new(|_| whole(0));
        };
        let by_remembered = in_use(&standing.takings, &remembered.rate);
        if params == remembered {
            return by_remembered;
        }
        let by_caller = in_use(&standing.seen_with(params), &params.rate);
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
        TokenBucket::remembered_usage(self)(&BigInt::from(at)) == whole(0)
    }

    /// The units in use right after the last taking.
    fn used_last(&self) -> Exact {
        let Some(last) = self.takings.last() else {
            return whole(0);
        };
        TokenBucket::remembered_usage(self)(&BigInt::from(last.at))
    }

    /// What was taken in the eyes of a caller with other parameters: what was in use after the last taking counts as
    /// made then, and is cut to a capacity that got smaller, but not to 0.
    ///
    /// The promise leaves open how finely a change is rounded against the caller, below one unit. It is done in steps of
    /// the new rate's denominator, in which all amounts at that rate are whole.
    fn seen_with(&self, params: &Params) -> Vec<Taking> {
        let (Some(last), Some(remembered)) = (self.takings.last(), &self.remembered) else {
            return Vec::new();
        };
        if params == remembered {
            return self.takings.clone();
        }
        let steps = Exact::from_integer(params.rate.denom().clone());
        let units = (self.used_last() * &steps).ceil() / steps;
        let cut = 0 < params.capacity && params.capacity < remembered.capacity;
        let units = if cut { units.min(whole(params.capacity)) } else { units };
        vec![Taking { at: last.at, units }]
    }
}

/// The units in use: the most that any interval which begins with a taking and ends now has taken beyond `rate × time`.
fn in_use(takings: &[Taking], rate: &Exact) -> Usage {
    // In steps of a common denominator, in which all amounts are whole.
    let steps = takings.iter().map(|taking| taking.units.denom()).fold(rate.denom().clone(), common_multiple);
    let in_steps = |amount: &Exact| amount.numer() * (&steps / amount.denom());
    let rate = in_steps(rate);

    // Each interval's excess falls by `rate` for each microsecond, so the worst one stays the worst.
    let mut taken = BigInt::from(0);
    let mut worst = BigInt::from(0);
    for taking in takings.iter().rev() {
        taken += in_steps(&taking.units);
        worst = worst.max(&taken + &rate * taking.at);
    }
    Box::new(move |now| Exact::new_raw((&worst - &rate * now).max(BigInt::from(0)), steps.clone()))
}

fn common_multiple(a: BigInt, b: &BigInt) -> BigInt {
    if (&a % b).sign() == Sign::NoSign { a } else { a * b }
}
