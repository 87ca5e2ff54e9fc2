//! Random calls that aim where limiters break: at edges, at waits just over or not quite, at exactly what is left.

use proptest::arbitrary::any as anything;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop, prop_oneof};

use super::{Algorithm, Conditions, ParamsOf, Scenario};
use crate::model::{Answer, MOST, Model};

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const DAY: u64 = 86_400 * SECOND;

/// No scenario goes on beyond this moment, so that waits and edges fit in what a limiter takes as a time.
const END: u64 = 1 << 61;

/// One call, in terms of the moment when its turn comes.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long after the last call it comes.
    pub gap: Gap,
    /// What it asks for.
    pub cost: Asked,
    /// Which of the scenario's parameters it uses.
    pub params: usize,
    /// Whether the store drops the key first, if it may.
    pub collected: bool,
}

/// The time since the last call.
#[derive(Clone, Debug)]
pub enum Gap {
    /// So many microseconds.
    Micros(u64),
    /// The last answer's wait, and so many microseconds.
    Retry(i64),
    /// The last answer's time until unused, and so many microseconds.
    Reset(i64),
    /// So many 256ths of the last answer's time until unused.
    ShareOfReset(u8),
    /// Until the next edge, and so many microseconds.
    Edge(i64),
    /// The clock goes back so many microseconds.
    Back(u64),
    /// The clock goes back by so many 256ths of the last answer's time until unused.
    BackShare(u8),
}

impl Gap {
    /// The time of the call.
    pub fn end(&self, now: u64, last: Option<&Answer>, edge: Option<u64>) -> u64 {
        let after = |millis: u64, late: i64| {
            let wait = millis.min(END / MILLISECOND) * MILLISECOND;
            (now + wait).saturating_add_signed(late).max(now)
        };
        let reset = last.map_or(0, |answer| answer.reset_after);
        let share = |part: u8| reset.min(END / MILLISECOND) * MILLISECOND / 256 * u64::from(part);
        let at = match *self {
            Self::Micros(micros) => now + micros,
            Self::Retry(late) => after(last.map_or(0, |answer| u64::try_from(answer.retry_after).unwrap_or(0)), late),
            Self::Reset(late) => after(reset, late),
            Self::ShareOfReset(part) => now + share(part),
            Self::Edge(late) => edge.unwrap_or(now).saturating_add_signed(late).max(now),
            Self::Back(micros) => now.saturating_sub(micros),
            Self::BackShare(part) => now.saturating_sub(share(part)),
        };
        at.min(END)
    }
}

/// The cost of a call.
#[derive(Clone, Debug)]
pub enum Asked {
    /// So many units.
    Units(u64),
    /// What remains, and so many units more or less.
    Remaining(i64),
    /// All that can be had at once, and so many units more or less.
    Limit(i64),
    /// So many 256ths of what remains.
    ShareOfRemaining(u8),
}

impl Asked {
    /// The units, where a look said `answer`.
    pub fn units(&self, answer: &Answer) -> u64 {
        let units = match *self {
            Self::Units(units) => units,
            Self::Remaining(more) => answer.remaining.saturating_add_signed(more),
            Self::Limit(more) => answer.limit.saturating_add_signed(more),
            Self::ShareOfRemaining(part) => answer.remaining / 256 * u64::from(part),
        };
        units.min(MOST)
    }
}

/// Random scenarios.
pub fn any<A: Algorithm>(conditions: Conditions) -> impl Strategy<Value = Scenario<ParamsOf<A>>> {
    let params = match conditions {
        Conditions::Steady => vec(A::any_params(), 1).boxed(),
        Conditions::Changing | Conditions::Stepping => prop_oneof![vec(A::any_params(), 1..=3), related::<A>()].boxed(),
    };
    let steps = vec(one(conditions), 1..=40);
    (params, start(), steps).prop_map(move |(params, start, steps)| Scenario {
        conditions,
        params,
        start,
        owed: 0,
        steps,
    })
}

/// Random scenarios that begin with more in use than can be had at once.
pub fn in_debt<A: Algorithm>(conditions: Conditions) -> impl Strategy<Value = Scenario<ParamsOf<A>>> {
    (any::<A>(conditions), anything::<u64>()).prop_map(|(mut scenario, owed)| {
        let limit = A::Model::limit(&scenario.params[0]);
        scenario.owed = limit + owed % ((A::MOST_IN_USE - 1) * limit + 1);
        scenario
    })
}

/// Two sets of parameters that differ in what can be had at once alone, or in all but that.
fn related<A: Algorithm>() -> impl Strategy<Value = Vec<ParamsOf<A>>> {
    let more = prop_oneof![Just(None), (0..=7_u64).prop_map(Some)];
    (A::any_params(), A::any_params(), more).prop_map(|(one, other, more)| {
        let limit = A::Model::limit(&one);
        let related = match more {
            Some(eighths) => A::with_limit(&one, (limit + limit * eighths / 8 + 1).min(MOST)),
            None => A::with_limit(&other, limit),
        };
        vec![one, related]
    })
}

/// Midnights, the epoch, today, and far away.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(1_814_400 * SECOND * 1_000),
        1 => Just(0),
        3 => 1_700_000_000 * SECOND..2_000_000_000 * SECOND,
        1 => 0..END / 2,
    ]
}

fn one(conditions: Conditions) -> impl Strategy<Value = Step> {
    let ahead = gap_ahead().boxed();
    let gap = match conditions {
        Conditions::Steady | Conditions::Changing => ahead,
        Conditions::Stepping => prop_oneof![3 => ahead, 1 => gap_back()].boxed(),
    };
    (gap, asked(), 0..3_usize, prop::bool::weighted(0.3)).prop_map(|(gap, cost, params, collected)| Step {
        gap,
        cost,
        params,
        collected,
    })
}

fn gap_ahead() -> impl Strategy<Value = Gap> {
    let near = || prop::sample::select(&[0, 0, -1_000, -999, -1, 1, 1_000][..]);
    prop_oneof![
        4 => Just(Gap::Micros(0)),
        2 => (1..3 * MILLISECOND).prop_map(Gap::Micros),
        2 => (1..5_000_u64).prop_map(|millis| Gap::Micros(millis * MILLISECOND)),
        1 => (1..100 * DAY).prop_map(Gap::Micros),
        1 => (1..40_000_u64).prop_map(|days| Gap::Micros(days * DAY)),
        4 => near().prop_map(Gap::Retry),
        2 => near().prop_map(Gap::Reset),
        4 => anything::<u8>().prop_map(Gap::ShareOfReset),
        3 => near().prop_map(Gap::Edge),
    ]
}

fn gap_back() -> impl Strategy<Value = Gap> {
    prop_oneof![
        2 => (1..5 * SECOND).prop_map(Gap::Back),
        2 => (1..100 * DAY).prop_map(Gap::Back),
        1 => Just(Gap::Back(END)),
        3 => anything::<u8>().prop_map(Gap::BackShare),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        1 => Just(Asked::Units(0)),
        5 => Just(Asked::Units(1)),
        2 => (2..10_u64).prop_map(Asked::Units),
        1 => (0..=MOST).prop_map(Asked::Units),
        1 => Just(Asked::Units(MOST)),
        4 => (-1..=1_i64).prop_map(Asked::Remaining),
        3 => (-1..=1_i64).prop_map(Asked::Limit),
        4 => anything::<u8>().prop_map(Asked::ShareOfRemaining),
    ]
}

/// Limits and capacities.
pub fn limit() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        3 => Just(1),
        6 => 2..=10_u64,
        3 => prop::sample::select(vec![100, 1_000, 6_000, 1_000_000_000]),
        1 => 0..=MOST,
        1 => Just(MOST),
    ]
}
