//! What a test's limiters log and count.

use std::io::Write;
use std::sync::{Arc, Mutex};

use metrics_util::debugging::{DebuggingRecorder, Snapshotter};
use tokio::runtime::Runtime;

/// All that was logged.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs with a log and metrics of its own.
pub fn recorded(runtime: &Runtime, test: impl AsyncFnOnce(Log, Snapshotter)) {
    let recorder = DebuggingRecorder::new();
    let (log, metrics) = (Log::default(), recorder.snapshotter());
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        metrics::with_local_recorder(&recorder, || runtime.block_on(test(log, metrics)));
    });
}
