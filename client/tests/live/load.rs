//! A steady load, and what became of it.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis_rl_client::{DAY, Decision, Limiter, Policy, Source};
use tokio::runtime::Handle;
use tokio::sync::MutexGuard;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

/// The deadline of limiters under load.
pub const DEADLINE: Duration = Duration::from_millis(50);
/// Redis decides again so soon after it answers again.
pub const RECOVERY: Duration = Duration::from_secs(1);
/// A request that is started so late shows that this machine did not run us meanwhile.
const STALL: Duration = Duration::from_millis(20);
/// 200 requests a second.
const EVERY: Duration = Duration::from_millis(5);

/// Held by tests that judge how soon something happens, so that they don't judge each other's.
pub async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ALONE.lock().await
}

/// Runs a test that judges times, and again where it fails, twice at most: what a busy machine spoils it hardly spoils three times, and what
/// is wrong with the client is so each time. On a thread of its own, since tests wait for servers without letting others run.
pub async fn patiently(test: impl AsyncFn() + Send + Sync + 'static) {
    let (test, runtime) = (Arc::new(test), Handle::current());
    for attempts_left in [2, 1, 0] {
        let (test, runtime) = (Arc::clone(&test), runtime.clone());
        let ended = spawn_blocking(move || runtime.block_on(test())).await;
        match ended {
            Ok(()) => return,
            Err(failure) if attempts_left == 0 => resume_unwind(failure.into_panic()),
            Err(_) => eprintln!("  failed, and is tried again"),
        }
    }
}

/// Counts and never denies, and no window ends while it does.
pub fn counter() -> Policy {
    Policy::fixed_window("counter", 1_000_000_000, 36_500 * DAY).unwrap()
}

/// Requests that are started when it is time, whether those before them are done or not.
pub struct Load {
    starting: JoinHandle<(JoinSet<Record>, Vec<Stall>)>,
    is_over: Arc<Mutex<bool>>,
}

/// From when to when this machine did not run us.
type Stall = (Instant, Instant);

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
            let (mut requests, mut stalls) = (JoinSet::new(), Vec::new());
            let mut due = interval(EVERY);
            due.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for number in 0.. {
                let at = due.tick().await;
                if at.elapsed() > STALL {
                    stalls.push((at - EVERY, Instant::now()));
                }
                if *shared.lock().unwrap() {
                    break;
                }
                let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject(number));
                requests.spawn(async move {
                    let decision = limiter.check(&policy, &subject).await;
                    Record { at, took: at.elapsed(), subject, decision }
                });
            }
            (requests, stalls)
        });
        Self { starting, is_over }
    }

    /// Starts no more, waits for what is under way, and sees that nothing was decided late.
    pub async fn end(self) -> Report {
        *self.is_over.lock().unwrap() = true;
        let (requests, stalls) = self.starting.await.unwrap();
        let mut all = requests.join_all().await;
        all.sort_by_key(|record| record.at);
        let report = Report { all, stalls };
        report.assert_on_time();
        report
    }
}

/// All requests of a load, in the order in which they were due.
pub struct Report {
    pub all: Vec<Record>,
    stalls: Vec<Stall>,
}

impl Report {
    pub fn began(&self) -> Instant {
        self.all[0].at
    }

    /// Those that say something about the client: what was under way while this machine did not run us was late for that.
    fn fair(&self) -> impl DoubleEndedIterator<Item = &Record> + Clone {
        let is_stalled =
            |record: &Record| self.stalls.iter().any(|&(from, to)| record.at < to && record.at + record.took > from);
        self.all.iter().filter(move |record| !is_stalled(record))
    }

    pub fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Record> {
        let is_between = move |record: &&Record| from <= record.at && record.at < to;
        assert!(self.all.iter().any(|record| is_between(&record)), "there was no request");
        let records = self.fair().filter(is_between);
        if records.clone().next().is_none() {
            eprintln!("  the machine stood still all the while: nothing is judged");
        }
        records
    }

    pub fn since(&self, from: Instant) -> impl Iterator<Item = &Record> {
        self.between(from, Instant::now())
    }

    fn assert_on_time(&self) {
        let mut times: Vec<Duration> = self.fair().map(|record| record.took).collect();
        times.sort_unstable();
        let at = |part: f64| {
            let rank = (times.len() as f64 * part).ceil() as usize;
            times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        let (median, most, last) = (at(0.5), at(0.999), at(1.0));
        let stalled = self.all.len() - times.len();
        eprintln!("  {} decisions, p50 {median:.1?}, p99.9 {most:.1?}, max {last:.1?}", times.len());
        eprintln!("  and {stalled} while the machine stood still");
        if stalled > times.len() {
            eprintln!("  the machine stood still most of the time: nothing is judged");
            return;
        }
        assert!(last <= 10 * DEADLINE, "decided after {last:?}, the deadline is {DEADLINE:?}");
    }

    /// Sees that Redis decided all that was due a second after it answered again, and tells how soon it did.
    pub fn assert_recovered(&self, answers_again: Instant) {
        for record in self.since(answers_again + RECOVERY) {
            assert_eq!(record.decision.source, Source::Redis, "{record:?}");
        }
        let last = self.fair().rfind(|record| record.decision.source != Source::Redis);
        let after = last.map_or(Duration::ZERO, |last| last.at.saturating_duration_since(answers_again));
        eprintln!("  recovered within {after:.0?}");
    }

    /// Sees that no call was charged twice; with `lossless` also that none which Redis decided is missing.
    pub async fn assert_charged_once(&self, limiter: &Limiter, lossless: bool) {
        let mut subjects: Vec<&str> = self.all.iter().map(|record| record.subject.as_str()).collect();
        subjects.sort_unstable();
        subjects.dedup();
        for subject in subjects {
            let of_it = || self.all.iter().filter(|record| record.subject == subject);
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

/// How many checks of a subject were counted. To look does no harm, so what runs into the deadline is done again.
pub async fn charged(limiter: &Limiter, subject: &str) -> u64 {
    let began = Instant::now();
    loop {
        match limiter.peek(&counter(), subject).await {
            Ok(peeked) => return peeked.limit - peeked.remaining.unwrap(),
            Err(error) => assert!(began.elapsed() < Duration::from_secs(5), "{error}"),
        }
        sleep(DEADLINE).await;
    }
}

/// Sees that Redis decides, and exactly: of many checks at once as many are allowed as the limit says.
pub async fn assert_exact(limiter: &Limiter) {
    let policy = Policy::fixed_window("exact", 10, 36_500 * DAY).unwrap();
    let mut last = None;
    // A machine that stands still for a moment is no fault of the client.
    for attempt in 0..5 {
        let mut checks = JoinSet::new();
        for _ in 0..30 {
            let (limiter, policy) = (limiter.clone(), policy.clone());
            checks.spawn(async move { limiter.check(&policy, format!("fresh {attempt}")).await });
        }
        let decisions = checks.join_all().await;
        if let Some(degraded) = decisions.iter().find(|decision| decision.is_degraded()) {
            last = Some(degraded.clone());
            continue;
        }
        assert_eq!(decisions.iter().filter(|decision| decision.allowed).count(), 10, "of 30 with a limit of 10");
        return;
    }
    panic!("Redis does not decide: {last:?}");
}
