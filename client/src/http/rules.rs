//! What a layer holds requests against.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::request::Parts;

use super::dialect::{Dialect, Standing};
use super::key_by::{Identity, KeyBy};
use super::refusal::Refusal;
use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::policy::Policy;

/// What a layer holds requests against.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub limiter: Limiter,
    pub limits: Vec<(Policy, KeyBy)>,
    pub dialects: Vec<Dialect>,
}

/// The limits that apply to a request, each with the subject that it counts.
pub(super) type Applied = Vec<(Policy, Vec<u8>)>;

/// What came of the checks of a request.
pub(super) struct Verdict {
    pub refusal: Option<Refusal>,
    /// How long to wait before it goes on.
    pub delay: Duration,
    applied: Applied,
    decisions: Vec<Option<Decision>>,
    asked_at: SystemTime,
}

impl Rules {
    /// The same, with no places in queues that would have their turn later.
    pub fn with_turns_within(self, longest: Duration) -> Self {
        let limits = self.limits.into_iter().map(|(policy, key_by)| (policy.with_turns_within(longest), key_by));
        Self { limits: limits.collect(), ..self }
    }

    pub fn apply(&self, head: &Parts) -> Result<Applied, Refusal> {
        let mut applied = Vec::with_capacity(self.limits.len());
        for (policy, key_by) in &self.limits {
            match key_by.identity(head) {
                Identity::Subject(subject) => applied.push((policy.clone(), subject)),
                Identity::Missing if key_by.is_optional() || policy.is_shadow() => {}
                Identity::Contradictory if policy.is_shadow() => {}
                Identity::Missing | Identity::Contradictory => {
                    return Err(Refusal::missing(key_by.to_string(), policy.shared_name()));
                }
            }
        }
        Ok(applied)
    }

    pub async fn judge(&self, applied: Applied) -> Verdict {
        // Taken first: a reset that is added to it is then never late by the time that asking takes.
        let asked_at = self.limiter.wall_clock();
        let decisions = self.limiter.check_each(&applied).await;
        let refusal = Refusal::by(&decisions);
        // A shadow delays nothing.
        let delays = std::iter::zip(&applied, &decisions).filter(|((policy, _), _)| !policy.is_shadow());
        let delay = delays.filter_map(|(_, decision)| Some(decision.as_ref()?.delay)).max().unwrap_or_default();
        Verdict { refusal, delay, applied, decisions, asked_at }
    }

    /// Adds to a response what its caller is to know.
    pub fn tell(&self, verdict: &Verdict, headers: &mut HeaderMap) {
        let standings: Vec<_> = std::iter::zip(&verdict.applied, &verdict.decisions)
            .filter(|((policy, _), _)| !policy.is_shadow())
            .map(|((policy, _), decision)| Standing { policy, decision: decision.as_ref() })
            .collect();
        for dialect in &self.dialects {
            dialect.write(&standings, verdict.asked_at, headers);
        }
    }
}
