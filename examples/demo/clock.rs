//! Redis' clock, which is the one that decides.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::time::sleep;

use crate::Fallible;
use crate::limiters::WINDOW;

/// Longer than a run takes.
const MARGIN: Duration = Duration::from_secs(10);

/// A moment by Redis' clock, since the Unix epoch.
#[derive(Clone, Copy)]
pub struct Moment(Duration);

impl Moment {
    pub async fn now(redis: &mut MultiplexedConnection) -> Fallible<Self> {
        let (seconds, microseconds): (u64, u64) = redis::cmd("TIME").query_async(redis).await?;
        Ok(Moment(Duration::from_secs(seconds) + Duration::from_micros(microseconds)))
    }

    /// How long the window that holds `earlier` still lasts at this moment; zero if it is over.
    pub fn left_of_window_at(self, earlier: Moment) -> Duration {
        let windows = earlier.0.as_secs() / WINDOW.as_secs();
        let edge = Duration::from_secs((windows + 1) * WINDOW.as_secs());
        edge.saturating_sub(self.0)
    }

    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Windows are aligned to the clock, and one that turns during a run would admit another `limit`: waits the few seconds
/// if the hour is about to turn.
pub async fn away_from_the_edge(redis: &mut MultiplexedConnection) -> Fallible<()> {
    let now = Moment::now(redis).await?;
    let left = now.left_of_window_at(now);
    if left < MARGIN {
        println!("       the hour turns in {:.1} s: waiting for it", left.as_secs_f64());
        sleep(left + Duration::from_millis(10)).await;
    }
    Ok(())
}
