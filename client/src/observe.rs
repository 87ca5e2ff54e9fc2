//! What is told to operators: metrics and log lines, each behind its feature. Never a subject or a key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::decision::Decision;
use crate::error::{Error, ErrorKind};

/// A line about errors of one kind is not logged more often.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Reports what happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer {
    logged: Arc<Mutex<HashMap<ErrorKind, Instant>>>,
}

impl Observer {
    /// A check was decided.
    pub fn decided(&self, decision: &Decision) {
        metrics::decided(decision);
    }

    /// Redis was asked, whatever came of it.
    pub fn asked(&self, took: Duration) {
        metrics::asked(took);
    }

    /// Redis did not decide.
    pub fn failed(&self, error: &Error) {
        metrics::failed(error.kind());
        if self.may_log(error.kind()) {
            log::failed(error);
        }
    }

    /// A server's breaker opened or closed.
    pub fn breaker(&self, server: &str, is_open: bool) {
        metrics::breaker(server, is_open);
        log::breaker(server, is_open);
    }

    /// A server whose breaker is open is not needed any more.
    pub fn breaker_gone(&self, server: &str) {
        metrics::breaker(server, false);
    }

    /// A lease of this policy was asked for; so many tokens more are held than before.
    pub fn leased(&self, policy: &str, more: f64) {
        metrics::leased(policy, more);
    }

    /// The number of nodes is not known.
    pub fn nodes_unknown(&self) {
        log::nodes_unknown();
    }

    /// Redis refuses to tell the number of nodes.
    pub fn fleet_unknown(&self, error: &Error) {
        log::fleet_unknown(error);
    }

    fn may_log(&self, kind: ErrorKind) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = logged.get(&kind).is_none_or(|logged| logged.elapsed() >= LOG_EVERY);
        if is_due {
            logged.insert(kind, Instant::now());
        }
        is_due
    }
}

#[cfg(feature = "metrics")]
mod metrics {
    use std::sync::Arc;
    use std::time::Duration;

    use ::metrics::{counter, gauge, histogram};

    use crate::decision::Decision;
    use crate::error::ErrorKind;

    pub fn decided(decision: &Decision) {
        let outcome = match decision {
            _ if decision.shadow_denied => "shadow_denied",
            _ if decision.allowed => "allowed",
            _ => "denied",
        };
        let (policy, source) = (Arc::clone(&decision.policy), decision.source.label());
        counter!("ratelimit_decisions_total", "policy" => policy, "outcome" => outcome, "source" => source)
            .increment(1);
    }

    pub fn asked(took: Duration) {
        histogram!("ratelimit_redis_seconds").record(took);
    }

    pub fn failed(kind: ErrorKind) {
        counter!("ratelimit_redis_errors_total", "kind" => kind.label()).increment(1);
    }

    pub fn leased(policy: &str, more: f64) {
        counter!("ratelimit_lease_requests_total", "policy" => policy.to_owned()).increment(1);
        gauge!("ratelimit_lease_tokens_held", "policy" => policy.to_owned()).increment(more);
    }

    pub fn breaker(server: &str, is_open: bool) {
        gauge!("ratelimit_breaker_state", "server" => server.to_owned()).set(if is_open { 1.0 } else { 0.0 });
    }
}

#[cfg(not(feature = "metrics"))]
mod metrics {
    use std::time::Duration;

    use crate::decision::Decision;
    use crate::error::ErrorKind;

    pub fn decided(_: &Decision) {}
    pub fn asked(_: Duration) {}
    pub fn failed(_: ErrorKind) {}
    pub fn leased(_: &str, _: f64) {}
    pub fn breaker(_: &str, _: bool) {}
}

#[cfg(feature = "tracing")]
mod log {
    use ::tracing::{error, info, warn};

    use crate::error::Error;

    pub fn failed(error: &Error) {
        let kind = error.kind().label();
        if error.is_outage() {
            warn!(kind, %error, "redis could not be asked, the outage policy decides");
        } else {
            error!(kind, %error, "redis refuses to decide, and will until this is mended");
        }
    }

    pub fn breaker(server: &str, is_open: bool) {
        if is_open {
            warn!(server, "redis does not answer, it is not asked until it does");
        } else {
            info!(server, "redis answers again");
        }
    }

    pub fn fleet_unknown(error: &Error) {
        warn!(%error, "redis does not tell how many servers share the limits");
    }

    pub fn nodes_unknown() {
        warn!(
            "the number of nodes is not known: while redis is away this server admits whole limits, not its part of them"
        );
    }
}

#[cfg(not(feature = "tracing"))]
mod log {
    use crate::error::Error;

    pub fn failed(_: &Error) {}
    pub fn breaker(_: &str, _: bool) {}
    pub fn nodes_unknown() {}
    pub fn fleet_unknown(_: &Error) {}
}
