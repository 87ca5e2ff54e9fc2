//! Work that several wait for, and that is done once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant, timeout_at};

/// Work that runs at most once at a time, in a task of its own: it goes on when those who wait for it give up, and ends when this is
/// dropped.
pub(crate) struct Flight<T> {
    last: Mutex<Option<Last<T>>>,
    /// The least time between the end of one with this result and the start of the next.
    pause: fn(&T) -> Duration,
    /// What makes no step for longer is in a runtime that does not run: it is given up and started again.
    longest_step: Duration,
}

struct Last<T> {
    result: watch::Receiver<Option<(T, Instant)>>,
    task: AbortHandle,
    /// When it made its last step.
    stepped: Arc<Mutex<Instant>>,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoResult {
    /// It takes longer than was waited.
    Late,
    /// The work ended without one: it panicked, or its runtime ended.
    Ended,
}

impl<T> Last<T> {
    fn idle(&self) -> Duration {
        self.stepped.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    pub fn new(pause: fn(&T) -> Duration, longest_step: Duration) -> Self {
        Self { last: Mutex::default(), pause, longest_step }
    }

    /// Waits for the result of the work until some moment: of that under way, or of the last if it ended a moment ago, else it is started.
    pub async fn wait<W>(&self, until: Instant, work: impl FnOnce() -> W) -> Result<T, NoResult>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut result = self.start(work);
        let result = timeout_at(until, result.wait_for(Option::is_some)).await.map_err(|_| NoResult::Late)?;
        let result = result.map_err(|_| NoResult::Ended)?;
        result.as_ref().map(|(result, _)| result.clone()).ok_or(NoResult::Ended)
    }

    /// Starts the work, unless it is under way or ended a moment ago.
    pub fn start<W>(&self, work: impl FnOnce() -> W) -> watch::Receiver<Option<(T, Instant)>>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last {
            let is_fresh = match &*last.result.borrow() {
                Some((result, ended)) => ended.elapsed() < (self.pause)(result),
                // Its task may have been ended by the end of its runtime.
                None => !last.task.is_finished() && last.idle() < self.longest_step,
            };
            if is_fresh {
                return last.result.clone();
            }
        }
        let (sender, result) = watch::channel(None);
        let work = work();
        let stepped = Arc::new(Mutex::new(Instant::now()));
        let steps = Arc::clone(&stepped);
        let task = tokio::spawn(async move {
            let mut work = pin!(work);
            let result = poll_fn(|context| {
                *steps.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                work.as_mut().poll(context)
            });
            let result = result.await;
            sender.send_replace(Some((result, Instant::now())));
        });
        let this = Last { result: result.clone(), task: task.abort_handle(), stepped };
        if let Some(former) = last.replace(this) {
            former.task.abort();
        }
        result
    }
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last {
            last.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Flight, NoResult};
    use tokio::time::{Duration, Instant, advance, sleep};

    const PAUSE: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(3);

    /// Work that takes a second and counts how often it is done.
    fn work(done: &Arc<AtomicU32>) -> impl Future<Output = u32> + use<> {
        let done = Arc::clone(done);
        async move {
            sleep(Duration::from_secs(1)).await;
            done.fetch_add(1, Ordering::Relaxed) + 1
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_share_one_result() {
        let (flight, done) = (Flight::new(|_| PAUSE, LONGEST), Arc::default());
        let until = Instant::now() + Duration::from_secs(2);
        let results = tokio::join!(flight.wait(until, || work(&done)), flight.wait(until, || work(&done)));
        assert_eq!(results, (Ok(1), Ok(1)));
        assert_eq!(flight.wait(until, || work(&done)).await, Ok(1), "it ended a moment ago");
        advance(PAUSE).await;
        assert_eq!(flight.wait(until + 2 * PAUSE, || work(&done)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_when_nobody_waits_any_more() {
        let (flight, done) = (Flight::new(|_| PAUSE, LONGEST), Arc::default());
        let soon = Instant::now() + Duration::from_millis(10);
        assert_eq!(flight.wait(soon, || work(&done)).await, Err(NoResult::Late));
        sleep(Duration::from_millis(1_050)).await;
        assert_eq!(flight.wait(Instant::now(), || work(&done)).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_it_is_dropped() {
        let (flight, done) = (Flight::new(|_| PAUSE, LONGEST), Arc::default());
        drop(flight.start(|| work(&done)));
        drop(flight);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(done.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn it_starts_again_when_its_runtime_ended() {
        let (flight, done) = (Flight::new(|_| PAUSE, LONGEST), Arc::default());
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let soon = Duration::from_millis(10);
        let first = runtime().block_on(async { flight.wait(Instant::now() + soon, || work(&done)).await });
        assert_eq!(first, Err(NoResult::Late));
        let later = Duration::from_secs(10);
        assert_eq!(runtime().block_on(async { flight.wait(Instant::now() + later, || work(&done)).await }), Ok(1));
    }

    #[test]
    fn who_waits_is_told_at_once_when_it_ends_without_a_result() {
        let (flight, done) = (Flight::new(|_| PAUSE, LONGEST), Arc::default());
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (first, second) = (runtime(), runtime());
        {
            let _inside = first.enter();
            drop(flight.start(|| work(&done)));
        }
        second.block_on(async {
            let until = Instant::now() + Duration::from_secs(10);
            let ends = async { first.shutdown_background() };
            let (result, ()) = tokio::join!(flight.wait(until, || work(&done)), ends);
            assert_eq!(result, Err(NoResult::Ended), "its runtime ended");
            let panics = flight.wait(until, || async { panic!("a fault of the work") });
            assert_eq!(panics.await, Err(NoResult::Ended), "it panicked");
            assert_eq!(flight.wait(until, || work(&done)).await, Ok(1), "it is started again");
        });
    }

    #[tokio::test(start_paused = true)]
    async fn it_may_take_long_while_it_makes_steps() {
        let (flight, begun) = (Flight::new(|_| PAUSE, LONGEST), Arc::<AtomicU32>::default());
        let until = Instant::now() + 20 * LONGEST;
        let steps = || {
            let begun = Arc::clone(&begun);
            async move {
                let number = begun.fetch_add(1, Ordering::Relaxed) + 1;
                for _ in 0..4 {
                    sleep(LONGEST / 2).await;
                }
                number
            }
        };
        drop(flight.start(steps));
        sleep(LONGEST + LONGEST / 3).await;
        assert_eq!(flight.wait(until, steps).await, Ok(1), "it was begun anew");
    }

    #[tokio::test]
    async fn it_starts_again_where_its_runtime_does_not_run() {
        let longest = Duration::from_millis(50);
        let flight = Flight::new(|_| PAUSE, longest);
        let idle = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        {
            let _inside = idle.enter();
            drop(flight.start(|| async { 1 }));
        }
        assert_eq!(flight.wait(Instant::now() + longest / 5, || async { 2 }).await, Err(NoResult::Late));
        sleep(longest).await;
        assert_eq!(flight.wait(Instant::now() + 10 * PAUSE, || async { 3 }).await, Ok(3));
        idle.shutdown_background();
    }
}
