//! What a server does for a request that it admits: a query or two, say.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

pub const SHORTEST_MS: u64 = 5;
pub const LONGEST_MS: u64 = 14;

/// Requests take differently long, as they do in earnest. If all took the same time, they would march in step, and what
/// happens at the same time would be a matter of luck.
#[derive(Default)]
pub struct Work {
    served: AtomicU64,
}

impl Work {
    pub async fn serve(&self) {
        let served = self.served.fetch_add(1, Ordering::Relaxed);
        // 7 shares no factor with the spread, so that it visits every length, neighbours far apart.
        let longer = served.wrapping_mul(7) % (LONGEST_MS - SHORTEST_MS + 1);
        sleep(Duration::from_millis(SHORTEST_MS + longer)).await;
    }
}
