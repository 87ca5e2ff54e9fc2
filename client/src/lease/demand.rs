//! How much is asked for.

use std::time::Duration;

/// What was asked so long ago counts about a third of what is asked now.
const SETTLES_IN: Duration = Duration::from_millis(200);
/// It is measured in steps of at least so long, …
const STEP: Duration = Duration::from_millis(20);
/// … or, where so many units are asked for within one, of at least so long: a storm is to be noticed before many have asked Redis.
const STORM: (u64, Duration) = (32, Duration::from_millis(1));

/// Units a second, as an exponentially weighted moving average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    per_second: f64,
    /// Since when the units below were asked for.
    since: Duration,
    units: u64,
}

impl Demand {
    /// At first nobody asks for anything.
    pub fn new(now: Duration) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// So many units are asked for, 0 included. Whether that changes what it is.
    pub fn add(&mut self, now: Duration, units: u64) -> bool {
        self.units = self.units.saturating_add(units);
        let time = now.saturating_sub(self.since);
        let is_storm = self.units >= STORM.0 && time >= STORM.1;
        if time < STEP && !is_storm {
            return false;
        }
        let measured = self.units as f64 / time.as_secs_f64();
        let weight = 1.0 - (-time.as_secs_f64() / SETTLES_IN.as_secs_f64()).exp();
        self.per_second += weight * (measured - self.per_second);
        (self.since, self.units) = (now, 0);
        true
    }

    pub fn per_second(&self) -> f64 {
        self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::Demand;
    use std::time::Duration;

    /// So many units each millisecond for so many of them.
    fn ask(demand: &mut Demand, millis: std::ops::Range<u64>, units: u64) -> f64 {
        for milli in millis {
            demand.add(Duration::from_millis(milli), units);
        }
        demand.per_second()
    }

    #[test]
    fn it_follows_what_is_asked() {
        let mut demand = Demand::new(Duration::ZERO);
        assert!((100.0..1_000.0).contains(&ask(&mut demand, 0..50, 1)), "soon it is noticed");
        assert!((990.0..1_010.0).contains(&ask(&mut demand, 50..2_000, 1)));
        assert!((9_900.0..10_100.0).contains(&ask(&mut demand, 2_000..4_000, 10)));
        demand.add(Duration::from_secs(6), 0);
        assert!(demand.per_second() < 100.0, "a pause: {demand:?}");
    }
}
