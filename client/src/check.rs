//! Several limits of one request: what is asked, and the answer.

use std::cmp::Ordering;
use std::iter::zip;
use std::time::Duration;

use crate::decision::Decision;
use crate::policy::Policy;

/// A limit that a request is held against by [`Limiter::check_all`](crate::Limiter::check_all): by which policy, whom it counts, and
/// what the request costs there.
#[derive(Clone, Debug)]
#[must_use]
pub struct Check {
    policy: Policy,
    subject: Vec<u8>,
    cost: u64,
}

impl Check {
    /// Of a request that costs 1. The subject is as for [`Limiter::check`](crate::Limiter::check).
    pub fn new(policy: &Policy, subject: impl AsRef<[u8]>) -> Self {
        Self { policy: policy.clone(), subject: subject.as_ref().to_vec(), cost: 1 }
    }

    /// Of one that costs so much, from 0 to 2^53 − 1. At a cost of 0 the limit is looked at, takes nothing and denies nothing.
    pub fn cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn subject(&self) -> &[u8] {
        &self.subject
    }

    pub(crate) fn units(&self) -> u64 {
        self.cost
    }

    /// Whether such an answer to it keeps the request from going on.
    pub(crate) fn is_denied_by(&self, decision: &Decision) -> bool {
        self.cost > 0 && !decision.allowed
    }
}

/// What several limits say to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "who is denied must not go on"]
pub struct Verdict {
    /// Whether the request may go on: no limit denies. Only then was anything taken that is not given back.
    pub allowed: bool,
    /// What each limit says, in the order in which they were asked: whether it alone would allow the request. `None` of one that was not
    /// asked, because another one denies.
    pub decisions: Vec<Option<Decision>>,
    decisive: Option<usize>,
}

impl Verdict {
    pub(crate) fn new(checks: &[Check], decisions: Vec<Option<Decision>>) -> Self {
        let denies = |(check, decision): (&Check, &Option<Decision>)| {
            decision.as_ref().is_some_and(|decision| check.is_denied_by(decision))
        };
        let denying: Vec<bool> = zip(checks, &decisions).map(denies).collect();
        let allowed = !denying.contains(&true);
        let candidates = zip(&decisions, denying).enumerate().filter(|(_, (_, denies))| *denies != allowed);
        let known = candidates.filter_map(|(index, (decision, _))| Some((index, decision.as_ref()?)));
        let precedes = |one: &Decision, other: &Decision| match allowed {
            true => one.is_scarcer_than(other),
            false => one.waits_longer_than(other),
        };
        let decisive = known.reduce(|first, next| if precedes(next.1, first.1) { next } else { first });
        let decisive = decisive.map(|(index, _)| index);
        Self { allowed, decisions, decisive }
    }

    /// The one that matters most: of those that deny the one with the longest wait, "never" being longest; if none denies, the one of
    /// which the smallest share is left, where that is known. `None` if there was no limit at all.
    pub fn decisive(&self) -> Option<&Decision> {
        self.decisions.get(self.decisive?)?.as_ref()
    }

    /// Denied: after this long all limits that deny would allow the request, if nobody else takes budget meanwhile; `None` if no wait
    /// helps. Allowed: zero.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.decisive() {
            Some(decision) if !self.allowed => decision.retry_after,
            _ => Some(Duration::ZERO),
        }
    }

    /// How long an allowed request has to wait for its turn in a leaky bucket, the longest of several.
    pub fn delay(&self) -> Duration {
        let allowed = self.decisions.iter().flatten().filter(|decision| self.allowed && !decision.shadow_denied);
        allowed.map(|decision| decision.delay).max().unwrap_or_default()
    }

    /// Whether it was denied not because too much was used, but because nobody could tell: an HTTP server answers 503, not 429.
    pub fn is_unavailable(&self) -> bool {
        let mut denials = self.decisions.iter().flatten().filter(|decision| !decision.allowed);
        !self.allowed && denials.all(Decision::is_unavailable)
    }
}

impl Decision {
    fn waits_longer_than(&self, other: &Self) -> bool {
        let wait = |decision: &Self| decision.retry_after.unwrap_or(Duration::MAX);
        wait(self) > wait(other)
    }

    /// Whether a smaller share of this is known to be left, as exact fractions; of a limit of 0 nothing is.
    pub(crate) fn is_scarcer_than(&self, other: &Self) -> bool {
        let (Some(left), Some(left_of_other)) = (self.remaining, other.remaining) else {
            return self.remaining.is_some() && other.remaining.is_none();
        };
        let share = |left: u64, limit: u64| (if limit == 0 { 0 } else { left }, limit.max(1));
        let ((left, limit), (other_left, other_limit)) = (share(left, self.limit), share(left_of_other, other.limit));
        let product = |left: u64, limit: u64| u128::from(left) * u128::from(limit);
        product(left, other_limit).cmp(&product(other_left, limit)) == Ordering::Less
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Check, Verdict};
    use crate::decision::{Decision, Source};
    use crate::policy::{HOUR, Policy};

    fn decision(allowed: bool, limit: u64, remaining: Option<u64>, retry_after: Option<u64>) -> Decision {
        Decision {
            allowed,
            limit,
            remaining,
            retry_after: retry_after.map(Duration::from_secs),
            reset_after: None,
            delay: Duration::ZERO,
            source: Source::Redis,
            shadow_denied: false,
            policy: "p".into(),
        }
    }

    fn verdict(decisions: &[Decision]) -> Verdict {
        let check = Check::new(&Policy::fixed_window("p", 1, HOUR).unwrap(), "a");
        Verdict::new(&vec![check; decisions.len()], decisions.iter().cloned().map(Some).collect())
    }

    #[test]
    fn of_those_that_deny_the_longest_wait_decides_and_never_is_longest() {
        let (allows, denies) = (decision(true, 10, Some(0), Some(0)), |wait| decision(false, 10, Some(0), wait));
        let two = verdict(&[denies(Some(5)), allows.clone(), denies(Some(9)), denies(Some(9))]);
        assert_eq!((two.allowed, two.decisive, two.retry_after()), (false, Some(2), Some(Duration::from_secs(9))));
        let never = verdict(&[denies(Some(5)), denies(None), allows]);
        assert_eq!((never.allowed, never.decisive, never.retry_after()), (false, Some(1), None));
    }

    #[test]
    fn if_none_denies_the_smallest_share_decides() {
        let left = |limit, remaining| decision(true, limit, remaining, Some(0));
        assert_eq!(verdict(&[left(10, Some(3)), left(100, Some(29)), left(1_000, Some(290))]).decisive, Some(1));
        assert_eq!(verdict(&[left(10, Some(3)), left(0, Some(0)), left(10, Some(0))]).decisive, Some(1));
        assert_eq!(verdict(&[left(10, None), left(10, Some(10))]).decisive, Some(1), "what is known");
        let nothing = verdict(&[]);
        assert!(nothing.allowed && nothing.decisive().is_none() && nothing.retry_after() == Some(Duration::ZERO));
    }

    #[test]
    fn what_costs_nothing_denies_nothing() {
        let looks = Check::new(&Policy::fixed_window("p", 1, HOUR).unwrap(), "a").cost(0);
        let verdict = Verdict::new(&[looks], vec![Some(decision(false, 10, Some(0), Some(5)))]);
        assert!(verdict.allowed && !verdict.is_unavailable() && verdict.retry_after() == Some(Duration::ZERO));
    }
}
