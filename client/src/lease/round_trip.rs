//! How long calls to Redis take.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is taken for it before the first call.
const FIRST: Duration = Duration::from_millis(1);

/// The smoothed time of a round trip and how much it varies, as TCP keeps them (V. Jacobson, "Congestion avoidance and control", 1988).
#[derive(Debug)]
pub(crate) struct RoundTrip(Mutex<Smoothed>);

#[derive(Clone, Copy, Debug)]
struct Smoothed {
    mean: f64,
    deviation: f64,
}

impl Default for RoundTrip {
    fn default() -> Self {
        Self(Mutex::new(Smoothed { mean: FIRST.as_secs_f64(), deviation: 0.0 }))
    }
}

impl RoundTrip {
    pub fn took(&self, time: Duration) {
        let mut smoothed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let error = time.as_secs_f64() - smoothed.mean;
        smoothed.mean += error / 8.0;
        smoothed.deviation += (error.abs() - smoothed.deviation) / 4.0;
    }

    pub fn usual(&self) -> Duration {
        Duration::from_secs_f64(self.get().mean)
    }

    /// Hardly any call takes longer.
    pub fn longest(&self) -> Duration {
        let Smoothed { mean, deviation } = self.get();
        Duration::from_secs_f64(mean + 4.0 * deviation)
    }

    fn get(&self) -> Smoothed {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::RoundTrip;
    use std::time::Duration;

    #[test]
    fn it_follows_what_calls_take() {
        let trip = RoundTrip::default();
        for _ in 0..100 {
            trip.took(Duration::from_millis(10));
        }
        assert!((9_900..=10_100).contains(&trip.usual().as_micros()), "{trip:?}");
        assert!(trip.longest() < Duration::from_millis(11), "{trip:?}");
        trip.took(Duration::from_millis(50));
        assert!(trip.longest() > Duration::from_millis(50), "{trip:?}");
    }
}
