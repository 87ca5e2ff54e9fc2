//! The time, as limiters in this process see it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rl_limiter::Micros;
use tokio::time::Instant;

/// The wall clock when it was made, and from then on the monotonic clock: it never steps, and windows are aligned to the Unix
/// epoch. In a test that pauses tokio's time, it pauses too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Micros,
    started: Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self::starting_at(SystemTime::now())
    }

    pub fn starting_at(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch: micros(since.as_micros()), started: Instant::now() }
    }

    pub fn now(&self) -> Micros {
        self.at(self.elapsed())
    }

    /// Since it was made.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The time so long after it was made.
    pub fn at(&self, elapsed: Duration) -> Micros {
        micros(u128::from(self.epoch.get()).saturating_add(elapsed.as_micros()))
    }

    /// The same, for what is told to others.
    #[cfg(feature = "tower")]
    pub fn wall_clock(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.now().get())
    }
}

fn micros(micros: u128) -> Micros {
    u64::try_from(micros).ok().and_then(Micros::new).unwrap_or(Micros::MAX)
}
