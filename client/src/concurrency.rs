//! A limit for what goes on at the same time, as users set it up.

use std::sync::Arc;
use std::time::Duration;

use rl_limiter::{Limit, Window};

use crate::fallback::Outage;

/// How much may go on at the same time, by [`Limiter::acquire`](crate::Limiter::acquire). Made by
/// [`Policy::concurrent`](crate::Policy::concurrent). Cheap to clone.
///
/// It is a type of its own, because it counts what is held and not what is asked: what it allows has to be given back.
#[derive(Clone, Debug)]
pub struct ConcurrencyPolicy {
    pub(crate) name: Arc<str>,
    pub(crate) limit: Limit,
    pub(crate) ttl: Window,
    pub(crate) outage: Option<Outage>,
    pub(crate) shadow: bool,
}

impl ConcurrencyPolicy {
    /// Decides and counts, but never blocks: what it would deny gets a guard that holds nothing. See
    /// [`Decision::shadow_denied`](crate::Decision::shadow_denied).
    #[must_use]
    pub fn shadow(self) -> Self {
        Self { shadow: true, ..self }
    }

    /// What decides while Redis is away, in place of what the limiter was built with; see [`Limiter::acquire`](crate::Limiter::acquire).
    #[must_use]
    pub fn on_outage(self, outage: Outage) -> Self {
        Self { outage: Some(outage), ..self }
    }

    /// Its name: in keys, metrics and answers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The most that can be held at once, in units.
    pub fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// How long Redis keeps the place of a holder that it does not hear of.
    pub fn ttl(&self) -> Duration {
        Duration::from_micros(self.ttl.as_micros())
    }

    /// Whether it never blocks.
    pub fn is_shadow(&self) -> bool {
        self.shadow
    }
}
