//! What a layer holds requests against.

use std::iter::zip;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::request::Parts;

use super::dialect::Dialect;
use super::key_by::KeyBy;
use super::refusal::Refusal;
use super::source::Identity;
use crate::check::Check;
use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::policy::Policy;

/// What a layer holds requests against.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub limiter: Limiter,
    pub limits: Vec<Limit>,
    pub dialects: Vec<Dialect>,
}

/// A limit, and whom it counts.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub policy: Policy,
    pub key_by: KeyBy,
    /// Whether its numbers are for callers.
    pub is_told: bool,
}

/// A limit that applies to a request.
pub(super) struct Applied {
    pub check: Check,
    /// As in [`Limit`].
    is_told: bool,
}

/// A limit that a request was held against, and what it decided.
#[derive(Debug)]
pub(super) struct Checked {
    pub policy: Policy,
    pub decision: Decision,
    /// As in [`Limit`].
    pub is_told: bool,
}

/// What came of the checks of a request.
pub(super) struct Verdict {
    checked: Vec<Checked>,
    asked_at: SystemTime,
}

impl Rules {
    /// The same, with no places in queues that would have their turn later.
    pub fn with_turns_within(self, longest: Duration) -> Self {
        let limits = self.limits.into_iter().map(|limit| {
            let policy = limit.policy.with_turns_within(longest);
            Limit { policy, ..limit }
        });
        Self { limits: limits.collect(), ..self }
    }

    /// The limits that apply to a request, each with the subject that it counts.
    pub fn apply(&self, head: &Parts) -> Result<Vec<Applied>, Refusal> {
        let mut applied = Vec::with_capacity(self.limits.len());
        for Limit { policy, key_by, is_told } in &self.limits {
            let is_shadow = policy.is_shadow();
            match key_by.identity(head) {
                Identity::Subject(subject) => {
                    applied.push(Applied { check: Check::new(policy, subject), is_told: *is_told && !is_shadow });
                }
                Identity::Missing if key_by.is_optional() || is_shadow => {}
                Identity::Contradictory | Identity::Impossible if is_shadow => {}
                Identity::Impossible => return Err(Refusal::impossible(policy.shared_name())),
                Identity::Missing | Identity::Contradictory => {
                    return Err(Refusal::missing(key_by.to_string(), policy.shared_name()));
                }
            }
        }
        Ok(applied)
    }

    pub async fn judge(&self, applied: Vec<Applied>) -> Verdict {
        // Taken first: a reset that is added to it is then never late by the time that asking takes.
        let asked_at = self.limiter.wall_clock();
        let decisions = self.limiter.check_all(applied.iter().map(|limit| limit.check.clone())).await.decisions;
        let checked = zip(applied, decisions).filter_map(|(Applied { check, is_told }, decision)| {
            Some(Checked { policy: check.policy().clone(), decision: decision?, is_told })
        });
        Verdict { checked: checked.collect(), asked_at }
    }

    /// Adds to a response what its caller is to know.
    pub fn tell(&self, verdict: &Verdict, headers: &mut HeaderMap) {
        for dialect in &self.dialects {
            dialect.write(&verdict.checked, verdict.asked_at, headers);
        }
    }
}

impl Verdict {
    pub fn refusal(&self) -> Option<Refusal> {
        Refusal::by(&self.checked)
    }

    /// How long to wait before the request goes on. A shadow delays nothing.
    pub fn delay(&self) -> Duration {
        let real = self.checked.iter().filter(|checked| !checked.policy.is_shadow());
        real.map(|checked| checked.decision.delay).max().unwrap_or_default()
    }
}
