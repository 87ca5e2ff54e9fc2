//! A steady load, and what became of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis_rl_client::{DAY, Decision, Limiter, Policy, Source};
use tokio::sync::MutexGuard;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The deadline of limiters under load.
pub const DEADLINE: Duration = Duration::from_millis(50);
/// Redis decides again so soon after it answers again.
pub const RECOVERY: Duration = Duration::from_secs(1);
/// 200 requests a second.
const EVERY: Duration = Duration::from_millis(5);

/// Held by tests that judge how soon something happens, so that they don't judge each other's.
pub async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ALONE.lock().await
}

/// Counts and never denies, and no window ends while it does.
pub fn counter() -> Policy {
    Policy::fixed_window("counter", 1_000_000_000, 36_500 * DAY).unwrap()
}

/// Requests that are started when it is time, whether those before them are done or not.
pub struct Load {
    starting: JoinHandle<JoinSet<Record>>,
    is_over: Arc<Mutex<bool>>,
}

/// A request and its decision.
#[derive(Debug)]
pub struct Record {
    /// When it was due.
    pub at: Instant,
    /// How long after that it was decided.
    pub took: Duration,
    pub subject: String,
    pub decision: Decision,
}

impl Load {
    /// Every other request is for the subject `hot`, and each of the others for a subject of its own.
    pub fn on(limiter: &Limiter) -> Self {
        let subject = |number| if number % 2 == 0 { "hot".to_owned() } else { format!("user {number}") };
        Self::of(limiter, &counter(), subject)
    }

    /// The request with this number, counted from 0, is for this subject.
    pub fn of(limiter: &Limiter, policy: &Policy, subject: impl Fn(u64) -> String + Send + 'static) -> Self {
        let (limiter, policy, is_over) = (limiter.clone(), policy.clone(), Arc::new(Mutex::new(false)));
        let shared = Arc::clone(&is_over);
        let starting = tokio::spawn(async move {
            let mut requests = JoinSet::new();
            let mut due = interval(EVERY);
            due.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for number in 0.. {
                let at = due.tick().await;
                if *shared.lock().unwrap() {
                    break;
                }
                let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject(number));
                requests.spawn(async move {
                    let decision = limiter.check(&policy, &subject).await;
                    Record { at, took: at.elapsed(), subject, decision }
                });
            }
            requests
        });
        Self { starting, is_over }
    }

    /// Starts no more, waits for what is under way, and sees that nothing was decided late.
    pub async fn end(self) -> Report {
        *self.is_over.lock().unwrap() = true;
        let mut records = self.starting.await.unwrap().join_all().await;
        records.sort_by_key(|record| record.at);
        let report = Report(records);
        report.assert_on_time();
        report
    }
}

/// All requests of a load, in the order in which they were due.
pub struct Report(pub Vec<Record>);

impl Report {
    pub fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Record> {
        let records = self.0.iter().filter(move |record| from <= record.at && record.at < to);
        assert!(records.clone().next().is_some(), "there was no request");
        records
    }

    pub fn since(&self, from: Instant) -> impl Iterator<Item = &Record> {
        self.between(from, Instant::now())
    }

    fn assert_on_time(&self) {
        let mut times: Vec<Duration> = self.0.iter().map(|record| record.took).collect();
        times.sort_unstable();
        let at = |part: f64| times[((times.len() as f64 * part).ceil() as usize).clamp(1, times.len()) - 1];
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        let (median, most, last) = (at(0.5), at(0.999), at(1.0));
        eprintln!("{name}: {} decisions, p50 {median:.1?}, p99.9 {most:.1?}, max {last:.1?}", times.len());
        assert!(last <= 10 * DEADLINE, "decided after {last:?}, the deadline is {DEADLINE:?}");
    }

    /// Sees that Redis decided all that was due a second after it answered again, and tells how soon it did.
    pub fn assert_recovered(&self, answers_again: Instant) {
        for record in self.since(answers_again + RECOVERY) {
            assert_eq!(record.decision.source, Source::Redis, "{record:?}");
        }
        let last = self.0.iter().rfind(|record| record.decision.source != Source::Redis);
        let after = last.map_or(Duration::ZERO, |last| last.at.saturating_duration_since(answers_again));
        eprintln!("  recovered within {after:.0?}");
    }

    /// Sees that no call was charged twice; with `lossless` also that none which Redis decided is missing.
    pub async fn assert_charged_once(&self, limiter: &Limiter, lossless: bool) {
        let mut subjects: Vec<&str> = self.0.iter().map(|record| record.subject.as_str()).collect();
        subjects.sort_unstable();
        subjects.dedup();
        for subject in subjects {
            let of_it = || self.0.iter().filter(|record| record.subject == subject);
            let decided = of_it().filter(|record| record.decision.source == Source::Redis).count() as u64;
            let charged = charged(limiter, subject).await;
            assert!(
                charged <= of_it().count() as u64,
                "{subject} was charged {charged} for {} checks",
                of_it().count()
            );
            assert!(!lossless || decided <= charged, "{subject} was charged {charged}, Redis decided {decided}");
        }
    }
}

/// How many checks of a subject were counted.
pub async fn charged(limiter: &Limiter, subject: &str) -> u64 {
    let peeked = limiter.peek(&counter(), subject).await.unwrap();
    peeked.limit - peeked.remaining.unwrap()
}

/// Sees that Redis decides, and exactly: of many checks at once as many are allowed as the limit says.
pub async fn assert_exact(limiter: &Limiter, subject: &str) {
    let policy = Policy::fixed_window("exact", 10, 36_500 * DAY).unwrap();
    let mut checks = JoinSet::new();
    for _ in 0..30 {
        let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.to_owned());
        checks.spawn(async move { limiter.check(&policy, subject).await });
    }
    let decisions = checks.join_all().await;
    assert!(decisions.iter().all(|decision| !decision.is_degraded()), "{decisions:?}");
    assert_eq!(decisions.iter().filter(|decision| decision.allowed).count(), 10, "of 30 with a limit of 10");
}
