//! Faults of set-up, which show with each request.

#[cfg(feature = "tracing")]
use std::sync::{Mutex, PoisonError};
#[cfg(feature = "tracing")]
use std::time::{Duration, Instant};

/// A fault that is logged as an error, once a minute.
pub(super) struct Fault {
    #[cfg(feature = "tracing")]
    told: Mutex<Option<Instant>>,
}

impl Fault {
    pub const fn new() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            told: Mutex::new(None),
        }
    }

    /// It shows.
    #[cfg(feature = "tracing")]
    pub fn shows(&self, what: std::fmt::Arguments<'_>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= Duration::from_secs(60)) {
            *told = Some(Instant::now());
            tracing::error!("{what}");
        }
    }

    #[cfg(not(feature = "tracing"))]
    pub fn shows(&self, _what: std::fmt::Arguments<'_>) {}
}
