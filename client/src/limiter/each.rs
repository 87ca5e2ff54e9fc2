//! Several limits of one request.

use std::iter::zip;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::{Backend, Limiter};
use crate::decision::{Decision, Source};
use crate::fallback::Outage;
use crate::policy::Policy;
use crate::rule::Algorithm;

/// A limit that a request is held against.
#[derive(Debug)]
pub(crate) struct Applied {
    pub policy: Policy,
    pub subject: Vec<u8>,
    /// Whether its numbers are for the caller.
    pub is_told: bool,
}

/// A limit that a request was held against, and what it decided.
#[derive(Debug)]
pub(crate) struct Checked {
    pub policy: Policy,
    pub decision: Decision,
    /// As in [`Applied`].
    pub is_told: bool,
}

impl Applied {
    fn decided(&self, decision: Decision) -> Checked {
        Checked { policy: self.policy.clone(), decision, is_told: self.is_told }
    }
}

/// When limits were asked, by this process's clock.
#[derive(Clone, Copy)]
struct Span {
    /// Before all decided.
    begun: Instant,
    /// After all decided.
    ended: Instant,
}

impl Limiter {
    /// Holds a request against limits; if one denies, gives back what the others took. The limits that were asked.
    ///
    /// Where one is known to deny without asking Redis, that is the answer and the others are not asked: a caller who
    /// goes on in spite of denials costs no calls. Queues are asked once all others have allowed, since they take no
    /// place back.
    ///
    /// What was begun is ended in a task of its own, even if whoever waits for it goes away.
    pub(crate) async fn check_each(&self, limits: Vec<Applied>) -> Vec<Checked> {
        let denials: Vec<_> = limits.iter().filter_map(|limit| self.denial_at_hand(limit)).collect();
        if limits.is_empty() || !denials.is_empty() {
            // As in a check that is answered from here.
            consume_budget().await;
            return denials;
        }
        let limits: Arc<[_]> = limits.into();
        let (tell, told) = oneshot::channel();
        let work = self.clone().ask_each(Arc::clone(&limits), tell);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(work)),
            Err(_) => work.await,
        }
        // A runtime that is shutting down drops its tasks.
        told.await.unwrap_or_else(|_| limits.iter().map(|limit| self.unanswered(limit)).collect())
    }

    /// The time by which this limiter's answers are meant: the wall clock's, or that of a limiter in memory.
    pub(crate) fn wall_clock(&self) -> SystemTime {
        match self.0.backend {
            Backend::Redis(_) => SystemTime::now(),
            Backend::Memory(_) => self.0.clock.wall_clock(),
        }
    }

    /// The denial that holds for a check of cost 1, if one is known here.
    fn denial_at_hand(&self, limit: &Applied) -> Option<Checked> {
        let policy = &limit.policy;
        if policy.is_shadow() {
            return None;
        }
        let key = self.key(policy, &limit.subject);
        let denial = self.0.deny_cache.find(&key, 1, self.0.clock.now())?;
        Some(limit.decided(self.shown(policy, self.answer(policy, denial, Source::DenyCache))))
    }

    /// What a limit decides where nobody lived to tell.
    fn unanswered(&self, limit: &Applied) -> Checked {
        limit.decided(self.shown(&limit.policy, self.closed(&limit.policy)))
    }

    /// Tells what was decided as soon as it is known, and then ends what is left to do.
    async fn ask_each(self, limits: Arc<[Applied]>, tell: oneshot::Sender<Vec<Checked>>) {
        let (queues, others): (Vec<_>, Vec<_>) = limits.iter().partition(|limit| limit.policy.rule().queues());
        let begun = Instant::now();
        let mut checked = self.ask_all(&others).await;
        let span = Span { begun, ended: Instant::now() };
        if !is_refused(&checked) {
            checked.extend(self.ask_all(&queues).await);
        }
        let taken = if is_refused(&checked) { taken(&others, &checked) } else { Vec::new() };
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|(_, source)| matches!(source, Source::Fallback(_)));
        // Before the caller can come again.
        for (limit, _) in here {
            self.give_back_here(limit, span);
        }
        // Nobody listens where the caller has gone away.
        let _ = tell.send(checked);
        join_all(elsewhere.into_iter().map(|(limit, _)| self.give_back(limit, span))).await;
    }

    async fn ask_all(&self, limits: &[&Applied]) -> Vec<Checked> {
        join_all(limits.iter().map(async |limit| limit.decided(self.check(&limit.policy, &limit.subject).await))).await
    }

    /// To this server's part of the limit.
    fn give_back_here(&self, limit: &Applied, span: Span) {
        let age = age(limit.policy.rule().algorithm, span);
        let key = self.key(&limit.policy, &limit.subject);
        self.0.local_share.give_back(&key, age.and_then(|age| super::age(age).ok()), self.0.clock.now());
    }

    async fn give_back(&self, limit: &Applied, span: Span) {
        let age = age(limit.policy.rule().algorithm, span);
        // Failures are reported where they happen; a unit that is not given back errs to the safe side.
        let _ = self.refund(&limit.policy, &limit.subject, 1, age).await;
    }
}

fn is_refused(checked: &[Checked]) -> bool {
    checked.iter().any(|checked| !checked.decision.allowed)
}

/// The limits of which a unit was taken that can be given back, and who took it.
fn taken<'a>(limits: &[&'a Applied], checked: &[Checked]) -> Vec<(&'a Applied, Source)> {
    let took = |decision: &Decision| {
        let keeps_count =
            matches!(decision.source, Source::Redis | Source::Memory | Source::Fallback(Outage::LocalShare));
        decision.allowed && !decision.shadow_denied && keeps_count
    };
    let all = zip(limits, checked).map(|(limit, checked)| (*limit, &checked.decision));
    all.filter(|(_, decision)| took(decision)).map(|(limit, decision)| (limit, decision.source)).collect()
}

/// How long ago a unit that is given back is said to have been taken.
fn age(algorithm: Algorithm, span: Span) -> Option<Duration> {
    match algorithm {
        // Rather too long ago: across the edge of a window it would come on top of the next one's limit.
        Algorithm::FixedWindow(_) | Algorithm::SlidingWindow(_) => Some(span.begun.elapsed()),
        // Rather not long enough: among entries that are older than it is it would not be found.
        Algorithm::SlidingLog(_) => Some(span.ended.elapsed()),
        // In full: a bucket that is not full lacks all of it, and takes no more than it lacks.
        Algorithm::TokenBucket(_) => None,
        // Not at all.
        Algorithm::LeakyBucket { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rl_limiter::{Decision, RetryAfter};
    use tokio::time::{Instant, advance};

    use super::{Applied, Span};
    use crate::decision::Source;
    use crate::limiter::Limiter;
    use crate::policy::{HOUR, MINUTE, Policy, Rate};

    fn applied(policy: &Policy, subject: &str) -> Applied {
        Applied { policy: policy.clone(), subject: subject.into(), is_told: true }
    }

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
        let checked = limiter.check_each(vec![applied(&other, "all"), applied(&denied, "a")]).await;
        let [denial] = &checked[..] else { panic!("{checked:?}") };
        assert_eq!((denial.policy.name(), denial.decision.allowed), ("denied", false));
        assert_eq!(denial.decision.source, Source::DenyCache);
        assert_eq!(limiter.peek(&other, "all").await.unwrap().remaining, Some(5));
        let others = limiter.check_each(vec![applied(&denied, "b")]).await;
        assert!(others[0].decision.allowed, "it is not a matter of the policy alone");
    }

    #[tokio::test]
    async fn what_a_shadow_is_known_to_deny_is_asked_of_the_others() {
        let shadow = Policy::fixed_window("shadow", 1, HOUR).unwrap().shadow();
        let other = Policy::fixed_window("other", 5, HOUR).unwrap();
        let limiter = knowing_a_denial(&shadow);
        let checked = limiter.check_each(vec![applied(&shadow, "a"), applied(&other, "all")]).await;
        assert!(checked.iter().all(|checked| checked.decision.allowed));
        assert_eq!(checked[1].decision.remaining, Some(4));
    }

    /// How many units are used after one was taken, in the last millisecond of a minute, and given back so much later.
    async fn used_after(policy: &Policy, later: Duration) -> u64 {
        let limiter = Limiter::in_memory_at(std::time::UNIX_EPOCH + 1_000 * HOUR);
        advance(MINUTE - Duration::from_millis(1)).await;
        let begun = Instant::now();
        assert!(limiter.check(policy, "a").await.allowed);
        let span = Span { begun, ended: begun };
        advance(later).await;
        assert!(limiter.check(policy, "a").await.allowed);
        limiter.give_back(&applied(policy, "a"), span).await;
        policy.limit() - limiter.peek(policy, "a").await.unwrap().remaining.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_goes_back_to_the_window_that_it_was_taken_of() {
        let at_once = Duration::from_micros(500);
        let over_the_edge = Duration::from_millis(2);
        let fixed = Policy::fixed_window("fixed", 10, MINUTE).unwrap();
        assert_eq!(used_after(&fixed, at_once).await, 1);
        assert_eq!(used_after(&fixed, over_the_edge).await, 1, "of the new window none comes back");
        for policy in [
            Policy::sliding_window("sliding", 10, MINUTE).unwrap(),
            Policy::sliding_log("log", 10, MINUTE).unwrap(),
            Policy::token_bucket("bucket", 10, Rate::per(1, HOUR)).unwrap(),
        ] {
            assert_eq!(used_after(&policy, at_once).await, 1, "{}", policy.name());
            assert_eq!(used_after(&policy, over_the_edge).await, 1, "{}", policy.name());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_gives_back_an_entry_that_it_wrote_late() {
        let limiter = Limiter::in_memory();
        let log = Policy::sliding_log("log", 10, MINUTE).unwrap();
        let begun = Instant::now();
        // The way there is longer than the way back.
        advance(Duration::from_millis(5)).await;
        assert!(limiter.check(&log, "a").await.allowed);
        let ended = Instant::now();
        limiter.give_back(&applied(&log, "a"), Span { begun, ended }).await;
        assert_eq!(limiter.peek(&log, "a").await.unwrap().remaining, Some(10));
    }
}
