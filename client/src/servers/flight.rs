//! Work that several wait for, and that is done once.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant, timeout_at};

/// Work that runs at most once at a time, in a task of its own: it goes on when those who wait for it give up, and ends when this is
/// dropped.
pub(crate) struct Flight<T> {
    last: Mutex<Option<Last<T>>>,
    /// The least time between the end of one with this result and the start of the next.
    pause: fn(&T) -> Duration,
}

struct Last<T> {
    result: watch::Receiver<Option<(T, Instant)>>,
    task: AbortHandle,
}

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    pub fn new(pause: fn(&T) -> Duration) -> Self {
        Self { last: Mutex::default(), pause }
    }

    /// Waits for the result of the work until some moment: of that under way, or of the last if it ended a moment ago, else it is started.
    /// `None` if it takes longer.
    pub async fn wait<W>(&self, until: Instant, work: impl FnOnce() -> W) -> Option<T>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut result = self.start(work);
        let result = timeout_at(until, result.wait_for(Option::is_some)).await.ok()?.ok()?;
        result.as_ref().map(|(result, _)| result.clone())
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
                None => !last.task.is_finished(),
            };
            if is_fresh {
                return last.result.clone();
            }
        }
        let (sender, result) = watch::channel(None);
        let work = work();
        let task = tokio::spawn(async move {
            let result = work.await;
            sender.send_replace(Some((result, Instant::now())));
        });
        *last = Some(Last { result: result.clone(), task: task.abort_handle() });
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
