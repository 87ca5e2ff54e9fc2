//! Several limits of one request.

use std::time::SystemTime;

use futures_util::future::join_all;
use tokio::runtime::Handle;

use super::{Backend, Limiter};
use crate::decision::{Decision, Source};
use crate::policy::Policy;

impl Limiter {
    /// Checks a request against each limit at once; if one denies, gives back what the others took.
    ///
    /// Where one is known to deny without asking Redis, that is the answer and the others are not asked (`None`): a
    /// caller who goes on in spite of denials costs no calls.
    pub(crate) async fn check_each(&self, limits: &[(Policy, Vec<u8>)]) -> Vec<Option<Decision>> {
        if limits.len() > 1 {
            let denials: Vec<_> = limits.iter().map(|(policy, subject)| self.denial_at_hand(policy, subject)).collect();
            if denials.iter().any(Option::is_some) {
                return denials;
            }
        }
        let checks = limits.iter().map(|(policy, subject)| self.check(policy, subject));
        let decisions = join_all(checks).await;
        if decisions.iter().any(|decision| !decision.allowed) {
            self.give_back(limits, &decisions).await;
        }
        decisions.into_iter().map(Some).collect()
    }

    /// The time by which this limiter's answers are meant: the wall clock's, or that of a limiter in memory.
    pub(crate) fn wall_clock(&self) -> SystemTime {
        match self.0.backend {
            Backend::Redis(_) => SystemTime::now(),
            Backend::Memory(_) => self.0.clock.wall_clock(),
        }
    }

    /// The denial that holds for a check of cost 1, if one is known here.
    fn denial_at_hand(&self, policy: &Policy, subject: &[u8]) -> Option<Decision> {
        if policy.is_shadow() {
            return None;
        }
        let key = self.key(policy, subject);
        let denial = self.0.deny_cache.find(&key, 1, self.0.clock.now())?;
        Some(self.shown(policy, self.answer(policy, denial, Source::DenyCache)))
    }

    /// In the background, because the caller is refused whether it succeeds or not.
    async fn give_back(&self, limits: &[(Policy, Vec<u8>)], decisions: &[Decision]) {
        let taken: Vec<_> = std::iter::zip(limits, decisions)
            .filter(|((policy, _), decision)| took(policy, decision))
            .map(|(limit, _)| limit.clone())
            .collect();
        if taken.is_empty() {
            return;
        }
        let limiter = self.clone();
        let refunds = async move {
            // Failures are reported where they happen; a unit that is not given back errs to the safe side.
            join_all(taken.iter().map(|(policy, subject)| limiter.refund(policy, subject, 1, None))).await;
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(refunds)),
            Err(_) => refunds.await,
        }
    }
}

/// Whether a check of cost 1 took a unit that can be given back.
fn took(policy: &Policy, decision: &Decision) -> bool {
    decision.allowed
        && !decision.shadow_denied
        && matches!(decision.source, Source::Redis | Source::Memory)
        && !policy.rule().queues()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rl_limiter::{Decision, RetryAfter};

    use crate::decision::Source;
    use crate::limiter::Limiter;
    use crate::policy::{HOUR, Policy};

    fn knowing_a_denial(policy: &Policy) -> Limiter {
        let limiter = Limiter::in_memory();
        let retry_after = RetryAfter::Millis(60_000);
        let denial = Decision { allowed: false, limit: 1, remaining: 0, retry_after, reset_after: 60_000 };
        limiter.0.deny_cache.remember(&limiter.key(policy, b"a"), 1, denial, limiter.0.clock.now());
        limiter
    }

    #[tokio::test]
    async fn where_one_is_known_to_deny_the_others_are_not_asked() {
        let denied = Policy::fixed_window("denied", 1, HOUR).unwrap();
        let other = Policy::fixed_window("other", 5, HOUR).unwrap();
        let limiter = knowing_a_denial(&denied);
        let limits = [(other.clone(), b"all".to_vec()), (denied, b"a".to_vec())];
        let decisions = limiter.check_each(&limits).await;
        assert_eq!(decisions[0], None);
        let denial = decisions[1].as_ref().unwrap();
        assert_eq!((denial.allowed, denial.source), (false, Source::DenyCache));
        assert_eq!(limiter.peek(&other, "all").await.unwrap().remaining, Some(5));
        let another = limiter.check_each(&[limits[0].clone()]).await;
        assert!(another[0].as_ref().unwrap().allowed, "it is not a matter of the policy alone");
    }

    #[tokio::test]
    async fn what_a_shadow_is_known_to_deny_is_asked_of_the_others() {
        let shadow = Policy::fixed_window("shadow", 1, HOUR).unwrap().shadow();
        let other = Policy::fixed_window("other", 5, HOUR).unwrap();
        let limiter = knowing_a_denial(&shadow);
        let limits = [(shadow, b"a".to_vec()), (other, b"all".to_vec())];
        let decisions = limiter.check_each(&limits).await;
        assert!(decisions.iter().all(|decision| decision.as_ref().unwrap().allowed));
        assert_eq!(decisions[1].as_ref().unwrap().remaining, Some(4));
    }
}
