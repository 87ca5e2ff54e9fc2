//! Several limits of one request: all allow it, or nothing is taken.

use std::iter::zip;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rl_limiter::Cost;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::{Backend, Limiter, units};
use crate::check::{Check, Verdict};
use crate::decision::{Decision, Source};
use crate::error::Error;
use crate::fallback::Outage;
use crate::lease::Spent;
use crate::rule::Algorithm;
use crate::servers::Command;

/// So many limits fit into one call.
const MOST_IN_A_CALL: usize = 32;

/// When limits were asked, by this process's clock.
#[derive(Clone, Copy)]
struct Span {
    /// Before all decided.
    begun: Instant,
    /// After all decided.
    ended: Instant,
}

/// What a limit said.
struct Answer {
    decision: Decision,
    took: Option<Took>,
    span: Span,
}

/// Of what units were taken that can be given back.
enum Took {
    /// Of a lease, or of this server's part of the limit.
    Here(Option<Spent>),
    /// Of what Redis counts, or a limiter in memory.
    Elsewhere,
}

impl Limiter {
    /// Holds a request against several limits: it is allowed if all allow it, and if one denies, nothing is taken of the others.
    ///
    /// ```
    /// use redis_rl_client::{Check, DAY, Limiter, Policy, Rate, SECOND};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), redis_rl_client::PolicyError> {
    /// # let limiter = Limiter::in_memory();
    /// let requests = Policy::token_bucket("requests", 20, Rate::per(10, SECOND))?;
    /// let tokens = Policy::fixed_window("tokens", 100_000, DAY)?;
    ///
    /// let verdict = limiter
    ///     .check_all([Check::new(&requests, "user:42"), Check::new(&tokens, "user:42").cost(850)])
    ///     .await;
    /// if !verdict.allowed {
    ///     println!("429, Retry-After: {:?}", verdict.retry_after());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The limits of one subject are decided by one call, all or nothing, however many ask at once; up to 32 fit into it. Those of another
    /// subject are asked at the same time, since in a cluster they may be elsewhere, and a denial there gives back what these took a moment
    /// later: to a lease at once, to Redis in the background. [Shadows](crate::Policy::shadow), which must not deny what others allow, are
    /// asked alone, too.
    ///
    /// Leaky buckets take no place back, so a call with one is made when all others have allowed; if several of different subjects are asked,
    /// those that allow keep a place for a request that another one denies. While one denies from memory ([`Source::DenyCache`]) the others
    /// are not asked at all.
    ///
    /// A limit that can't be asked is decided as in [`Limiter::check`], each by its own policy. What was begun is ended in a task of its own,
    /// even if whoever waits for it goes away.
    pub async fn check_all(&self, checks: impl IntoIterator<Item = Check>) -> Verdict {
        let checks: Arc<[Check]> = checks.into_iter().collect();
        let denials: Vec<_> = checks.iter().map(|check| self.denial_at_hand(check)).collect();
        if checks.is_empty() || denials.iter().any(Option::is_some) {
            // As in a check that is answered from here.
            consume_budget().await;
            return Verdict::new(&checks, denials);
        }
        let (tell, told) = oneshot::channel();
        let work = self.clone().ask_each(Arc::clone(&checks), tell);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(work)),
            Err(_) => work.await,
        }
        // A runtime that is shutting down drops its tasks.
        let unanswered = || checks.iter().map(|check| Some(self.unanswered(check))).collect();
        Verdict::new(&checks, told.await.unwrap_or_else(|_| unanswered()))
    }

    /// The denial that holds for a check, if one is known here.
    fn denial_at_hand(&self, check: &Check) -> Option<Decision> {
        let policy = check.policy();
        if policy.is_shadow() || check.units() == 0 {
            return None;
        }
        let key = self.key(policy, check.subject());
        let denial = self.0.deny_cache.find(&key, check.units(), self.0.clock.now())?;
        Some(self.shown(policy, self.answer(policy, denial, Source::DenyCache)))
    }

    /// What a limit decides where nobody lived to tell.
    fn unanswered(&self, check: &Check) -> Decision {
        self.shown(check.policy(), self.closed(check.policy()))
    }

    /// Tells what was decided as soon as it is known, and then ends what is left to do.
    async fn ask_each(self, checks: Arc<[Check]>, tell: oneshot::Sender<Vec<Option<Decision>>>) {
        let queues = |call: &Vec<usize>| call.iter().any(|&index| checks[index].policy().rule().queues());
        let (last, first): (Vec<_>, Vec<_>) = calls(&checks).into_iter().partition(queues);
        let mut answers: Vec<Option<Answer>> = checks.iter().map(|_| None).collect();
        self.ask_calls(&checks, &first, &mut answers).await;
        if !is_denied(&checks, &answers) {
            self.ask_calls(&checks, &last, &mut answers).await;
        }
        let is_denied = is_denied(&checks, &answers);
        let mut elsewhere = Vec::new();
        for (check, answer) in zip(&*checks, &answers) {
            if let Some(Answer { took: Some(took), span, .. }) = answer
                && is_denied
                // Before the caller can come again.
                && !self.give_back_here(check, took, *span)
            {
                elsewhere.push((check, *span));
            }
        }
        let decisions = answers.into_iter().map(|answer| answer.map(|answer| answer.decision)).collect();
        // Nobody listens where the caller has gone away.
        let _ = tell.send(decisions);
        join_all(elsewhere.into_iter().map(|(check, span)| self.give_back(check, span))).await;
    }

    async fn ask_calls(&self, checks: &[Check], calls: &[Vec<usize>], answers: &mut [Option<Answer>]) {
        let begun = Instant::now();
        let of = |call: &Vec<usize>| call.iter().map(|&index| &checks[index]).collect::<Vec<_>>();
        let decided = join_all(calls.iter().map(async |call| self.ask_call(&of(call)).await)).await;
        let span = Span { begun, ended: Instant::now() };
        for (call, decided) in zip(calls, decided) {
            for (&index, (decision, took)) in zip(call, decided) {
                answers[index] = Some(Answer { decision, took, span });
            }
        }
    }

    /// What limits say that share a call, and whether something was taken that can be given back.
    async fn ask_call(&self, checks: &[&Check]) -> Vec<(Decision, Option<Took>)> {
        if let [check] = checks {
            return vec![self.ask_alone(check).await];
        }
        let keys: Vec<String> = checks.iter().map(|check| self.key(check.policy(), check.subject())).collect();
        let asked = match self.ask_several(checks, &keys).await {
            // A fault of one of them, such as a key of another type, or of the command alone, for which a permission may be missing.
            // Nothing was taken.
            Err(error) if !error.is_outage() => {
                return join_all(checks.iter().map(async |check| self.ask_alone(check).await)).await;
            }
            asked => self.noted(asked),
        };
        let decided = zip(checks, keys).enumerate().map(|(index, (check, key))| {
            let policy = check.policy();
            let (decision, all) = match &asked {
                Ok((all, decisions)) => {
                    if self.may_cache(check.units()) {
                        self.0.deny_cache.remember(&key, check.units(), decisions[index], self.0.clock.now());
                    }
                    (self.answer(policy, decisions[index], self.source()), *all)
                }
                Err(error) => (self.fall_back(policy, &key, check.units(), error), true),
            };
            let decision = self.shown(policy, decision);
            let took = took(check, &decision, None).filter(|_| all);
            (decision, took)
        });
        decided.collect()
    }

    async fn ask_alone(&self, check: &Check) -> (Decision, Option<Took>) {
        let (decision, spent) = self.check_spending(check.policy(), check.subject(), check.units()).await;
        let took = took(check, &decision, spent);
        (decision, took)
    }

    /// One call for several limits, all or nothing: whether all are allowed, and what each says.
    async fn ask_several(
        &self,
        checks: &[&Check],
        keys: &[String],
    ) -> Result<(bool, Vec<rl_limiter::Decision>), Error> {
        let costs: Result<Vec<Cost>, Error> = checks.iter().map(|check| units(check.units())).collect();
        let costs = costs?;
        match &self.0.backend {
            Backend::Memory(memory) => {
                let of = |((check, key), cost): ((&&Check, &String), Cost)| {
                    (check.policy().rule().algorithm, key.clone(), cost)
                };
                let asked: Vec<_> = zip(zip(checks, keys), costs).map(of).collect();
                let asked: Vec<_> =
                    asked.iter().map(|(algorithm, key, cost)| (*algorithm, key.as_str(), *cost)).collect();
                memory.decide_all(&asked, self.0.clock.now())
            }
            Backend::Redis(redis) => {
                let costs: Vec<String> = costs.iter().map(|cost| cost.get().to_string()).collect();
                let mut arguments = Vec::with_capacity(5 * checks.len());
                for ((check, key), cost) in zip(zip(checks, keys), &costs) {
                    let rule = check.policy().rule();
                    let [limit, pace] = &*rule.arguments;
                    arguments.extend([key.as_str(), rule.kind(), limit, pace, cost]);
                }
                let command = Command::new("RL.MULTI", arguments[0], &arguments[1..]);
                let reply = redis.send(command).await;
                reply.and_then(|reply| reply.unwrap_or_default().decisions(checks.len()))
            }
        }
    }

    /// To a lease, or to this server's part of the limit. Whether that is who gave it.
    fn give_back_here(&self, check: &Check, took: &Took, span: Span) -> bool {
        let spent = match took {
            Took::Elsewhere => return false,
            Took::Here(spent) => spent,
        };
        if let (Some(spent), Backend::Redis(redis)) = (spent, &self.0.backend) {
            return redis.leases.restore(spent);
        }
        let Some(amount) = Cost::new(check.units()) else { return true };
        let age = age(check.policy().rule().algorithm, span);
        let key = self.key(check.policy(), check.subject());
        self.0.local_share.give_back(&key, amount, age.and_then(|age| super::age(age).ok()), self.0.clock.now());
        true
    }

    async fn give_back(&self, check: &Check, span: Span) {
        let age = age(check.policy().rule().algorithm, span);
        // Failures are reported where they happen; a unit that is not given back errs to the safe side.
        let _ = self.refund(check.policy(), check.subject(), check.units(), age).await;
    }
}

/// Which limits share a call, by their places: those of one subject, whose keys share a slot. One that is there twice is asked twice, since a
/// call may name a key once.
fn calls(checks: &[Check]) -> Vec<Vec<usize>> {
    let mut calls: Vec<Vec<usize>> = Vec::new();
    for (index, check) in checks.iter().enumerate() {
        let fits = |call: &&mut Vec<usize>| {
            let of_one_subject = call.iter().all(|&other| may_share(&checks[other], check));
            call.len() < MOST_IN_A_CALL && of_one_subject
        };
        match calls.iter_mut().find(fits) {
            Some(call) => call.push(index),
            None => calls.push(vec![index]),
        }
    }
    calls
}

fn may_share(one: &Check, other: &Check) -> bool {
    let is_alone = |check: &Check| check.policy().is_shadow() || check.policy().is_leased();
    let is_same_key = one.policy().name() == other.policy().name();
    one.subject() == other.subject() && !is_same_key && !is_alone(one) && !is_alone(other)
}

fn is_denied(checks: &[Check], answers: &[Option<Answer>]) -> bool {
    let denies = |(check, answer): (&Check, &Option<Answer>)| {
        answer.as_ref().is_some_and(|answer| check.is_denied_by(&answer.decision))
    };
    zip(checks, answers).any(denies)
}

/// Of what units were taken, by somebody who counts them and takes them back.
fn took(check: &Check, decision: &Decision, spent: Option<Spent>) -> Option<Took> {
    if check.units() == 0 || !decision.allowed || decision.shadow_denied || check.policy().rule().queues() {
        return None;
    }
    match decision.source {
        Source::Redis | Source::Memory => Some(Took::Elsewhere),
        Source::Lease | Source::Fallback(Outage::LocalShare) => Some(Took::Here(spent)),
        _ => None,
    }
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

    use super::{Span, calls};
    use crate::check::Check;
    use crate::decision::Source;
    use crate::limiter::Limiter;
    use crate::policy::{HOUR, MINUTE, Policy, Rate};

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
        let verdict = limiter.check_all([Check::new(&other, "all"), Check::new(&denied, "a")]).await;
        let [None, Some(denial)] = &verdict.decisions[..] else { panic!("{verdict:?}") };
        assert_eq!((&*denial.policy, denial.allowed, verdict.allowed), ("denied", false, false));
        assert_eq!(denial.source, Source::DenyCache);
        assert_eq!(limiter.peek(&other, "all").await.unwrap().remaining, Some(5));
        let others = limiter.check_all([Check::new(&denied, "b")]).await;
        assert!(others.allowed, "it is not a matter of the policy alone");
    }

    #[tokio::test]
    async fn what_a_shadow_is_known_to_deny_is_asked_of_the_others() {
        let shadow = Policy::fixed_window("shadow", 1, HOUR).unwrap().shadow();
        let other = Policy::fixed_window("other", 5, HOUR).unwrap();
        let limiter = knowing_a_denial(&shadow);
        let verdict = limiter.check_all([Check::new(&shadow, "a"), Check::new(&other, "all")]).await;
        assert!(verdict.allowed);
        assert_eq!(verdict.decisions[1].as_ref().unwrap().remaining, Some(4));
    }

    #[test]
    fn limits_of_one_subject_share_a_call_but_shadows_and_what_is_there_twice() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Policy::fixed_window(name, 1, HOUR).unwrap());
        let shadow = Policy::fixed_window("shadow", 1, HOUR).unwrap().shadow();
        let checks = [(&a, "x"), (&b, "y"), (&shadow, "x"), (&c, "x"), (&a, "x"), (&c, "y"), (&b, "x")];
        let checks = checks.map(|(policy, subject)| Check::new(policy, subject));
        assert_eq!(calls(&checks), [vec![0, 3, 6], vec![1, 5], vec![2], vec![4]]);
        let many: Vec<_> = (0..70).map(|index| Policy::fixed_window(&format!("p{index}"), 1, HOUR).unwrap()).collect();
        let many: Vec<_> = many.iter().map(|policy| Check::new(policy, "x")).collect();
        assert_eq!(calls(&many).iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 6]);
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
        limiter.give_back(&Check::new(policy, "a"), span).await;
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
        limiter.give_back(&Check::new(&log, "a"), Span { begun, ended }).await;
        assert_eq!(limiter.peek(&log, "a").await.unwrap().remaining, Some(10));
    }
}
