//! Many callers at once, of limiters of all kinds, and the books about what they were told.
//!
//! Nothing comes back by itself while a test runs. So what is used is what was taken and not given back, to the unit, as long as a
//! server forgets nothing; and where one does, what callers had more than the server knows is what it forgot.

mod books;
mod caller;
mod limiter;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use redis::{Connection, ConnectionLike, RedisResult};

use self::books::Books;
pub use self::caller::{Caller, LIBRARY, Report, Way};
use self::limiter::Limiter;
use crate::support::{ask, wait_until};

/// At least so many callers there are.
pub const CALLERS: usize = 8;

pub struct Fleet {
    limiters: Vec<Limiter>,
    books: Books,
    answers: AtomicU64,
    is_over: AtomicBool,
}

/// What is known to be kept of each limiter: taken, given back.
pub type Kept = Vec<[i64; 2]>;

/// What a server has forgotten.
pub struct Forgotten {
    pub units: i64,
    /// What it may have forgotten at the most.
    pub most: i64,
}

impl Fleet {
    /// A limiter under each of these keys.
    pub fn of(keys: impl IntoIterator<Item = String>) -> Self {
        let limiters: Vec<_> = keys.into_iter().enumerate().map(|(index, key)| Limiter::new(index, key)).collect();
        let books = Books::new(limiters.len());
        Self { limiters, books, answers: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.limiters.iter().map(|limiter| limiter.key.as_str())
    }

    pub fn all(&self) -> Range<usize> {
        0..self.limiters.len()
    }

    /// As many callers as there must be, who find their server by `connect`.
    pub fn callers<'a, C>(&self, connect: impl Fn() -> RedisResult<C> + Clone + Send + 'a) -> Vec<Caller<'a, C>> {
        let caller =
            |_| Caller { connect: Box::new(connect.clone()), limiters: self.all(), ways: &[Way::Plain], noise: &[] };
        (0..CALLERS).map(caller).collect()
    }

    /// Lets the callers loose until `during` ends.
    pub fn run<C: ConnectionLike, T>(
        &self,
        callers: Vec<Caller<'_, C>>,
        during: impl FnOnce() -> T,
    ) -> (Vec<Report>, T) {
        /// Should `during` fail, the callers must end all the same, or the test never does.
        struct Ended<'a>(&'a AtomicBool);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        self.is_over.store(false, Ordering::SeqCst);
        thread::scope(|scope| {
            let ended = Ended(&self.is_over);
            let seeds = (1..).map(|seed: u64| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let callers = callers.into_iter().zip(seeds);
            let callers: Vec<_> = callers.map(|(caller, seed)| scope.spawn(move || caller.work(self, seed))).collect();
            let told = during();
            drop(ended);
            (callers.into_iter().map(|caller| caller.join().unwrap()).collect(), told)
        })
    }

    /// Takes one unit of each limiter, so that all keys are there.
    pub fn begin<C: ConnectionLike>(&self, redis: &mut C) {
        for (index, limiter) in self.limiters.iter().enumerate() {
            limiter.take_one(redis);
            self.books.took(index, 1);
        }
    }

    /// How many calls were answered.
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::SeqCst)
    }

    /// Waits until so many more are.
    pub fn wait_for_answers(&self, count: u64) {
        let end = self.answers() + count;
        wait_until("calls are answered", || self.answers() >= end);
    }

    /// What replicas are known to have, by `WAIT`, once so many more calls are answered: little less than all, if a replica can be
    /// made to confirm soon.
    pub fn kept_by_replicas(&self, primary: &mut Connection, answers: u64) -> Kept {
        let end = self.answers() + answers;
        let mut tries = 0;
        loop {
            let (before, told) = (self.answers(), self.so_far());
            ask::<()>(primary, "SET witness 1");
            assert_eq!(ask::<i64>(primary, "WAIT 1 20000"), 1);
            let answers = self.answers();
            tries += u64::from(answers >= end);
            if answers >= end && (answers - before < 50 || tries == 20) {
                return told;
            }
        }
    }

    /// What callers were told until now.
    pub fn so_far(&self) -> Kept {
        self.books.so_far()
    }

    /// What is used is what callers were given, to the unit.
    pub fn assert_exact<C: ConnectionLike>(&self, redis: &mut C) {
        for (index, limiter) in self.limiters.iter().enumerate() {
            assert_eq!(limiter.used(redis), self.books.net(index), "{}", limiter.key);
        }
    }

    /// Takes the rest of these limiters: then callers were given the limit in all, not a unit more or less.
    pub fn assert_limits_are_had_exactly<C: ConnectionLike>(&self, redis: &mut C, limiters: Range<usize>) {
        for index in limiters {
            let limiter = &self.limiters[index];
            self.books.took(index, limiter.exhaust(redis));
            assert_eq!(self.books.net(index), limiter.limit, "{}", limiter.key);
        }
    }

    /// What a server has forgotten: of each limiter no more than what was told since `kept`.
    pub fn forgotten<C: ConnectionLike>(&self, redis: &mut C, limiters: Range<usize>, kept: &Kept) -> Forgotten {
        let mut forgotten = Forgotten { units: 0, most: 0 };
        for index in limiters {
            let limiter = &self.limiters[index];
            let bounds = self.books.bounds(index, kept);
            let units = self.books.net(index) - limiter.used(redis);
            assert!(
                (bounds.least..=bounds.most).contains(&units),
                "{}: {units} units are forgotten, where {} to {} can be",
                limiter.key,
                bounds.least,
                bounds.most
            );
            // What is forgotten is granted again, and no more than that.
            self.books.took(index, limiter.exhaust(redis));
            assert_eq!(self.books.net(index), limiter.limit + units, "{}", limiter.key);
            forgotten.units += units.max(0);
            forgotten.most += bounds.most;
        }
        forgotten
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::SeqCst);
    }
}

/// Fails if any of these callers met an error.
pub fn assert_no_failures<'a>(reports: impl IntoIterator<Item = &'a Report>) {
    for report in reports {
        assert!(report.answers > 0, "a caller got no answer");
        assert!(report.failures.is_empty(), "{} failures, first {}", report.failures.len(), report.failures[0]);
    }
}

/// A connection to the server on this port, if there is one.
pub fn connect_to(port: u16) -> RedisResult<Connection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let connection = client.get_connection_with_timeout(Duration::from_secs(5))?;
    connection.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(connection)
}
