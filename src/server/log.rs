//! Lines in the server's log, for those who run it.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use redis_module::raw::RedisModuleCtx;

use super::api::{self, Log};
use super::counter::Counter;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Good to know.
    Notice,
    /// Somebody should look into it.
    Warning,
}

/// Writes a line. The context may be null.
///
/// The text goes through `%s`: it may hold what a client sent, and a format must not.
pub fn write(log: Log, ctx: *mut RedisModuleCtx, level: Level, text: &str) {
    let level: &CStr = match level {
        Level::Notice => c"notice",
        Level::Warning => c"warning",
    };
    let line = CString::new(text.replace(['\0', '\n'], " ")).unwrap_or_default();
    // SAFETY: the server takes a null context; all three texts end with a NUL.
    unsafe { log(ctx, level.as_ptr(), c"%s".as_ptr(), line.as_ptr()) };
}

/// A kind of line that a server may be made to write at every call, and so writes at most once a minute.
#[derive(Debug, Default)]
pub struct RareLine {
    /// When it may be written again, in milliseconds by [`uptime`].
    next: AtomicU64,
    left_out: Counter,
}

/// The least time from one such line to the next.
const PAUSE_MILLIS: u64 = 60_000;

impl RareLine {
    /// Never written yet.
    pub const fn new() -> Self {
        Self { next: AtomicU64::new(0), left_out: Counter::new() }
    }

    /// Writes the line, if it may be, and behind it how many were left out before. Only then is the text put together.
    pub fn warn(&self, text: impl FnOnce() -> String) {
        let (Some(api), Some(left_out)) = (api::get(), self.due(uptime())) else { return };
        let rest =
            if left_out > 0 { format!(" (and {left_out} times more since this was last told)") } else { String::new() };
        write(api.log, ptr::null_mut(), Level::Warning, &format!("redis-rl: {}{rest}", text()));
    }

    /// Whether it may be written now, and how many were left out.
    fn due(&self, now: u64) -> Option<u64> {
        if now < self.next.load(Ordering::Relaxed) {
            self.left_out.add_one();
            return None;
        }
        self.next.store(now.saturating_add(PAUSE_MILLIS), Ordering::Relaxed);
        Some(self.left_out.take())
    }
}

/// Milliseconds since this was first asked, by a clock that does not step: some lines are about one that does.
fn uptime() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::RareLine;

    #[test]
    fn a_line_is_written_once_a_minute_and_tells_how_many_were_left_out() {
        let line = RareLine::new();
        assert_eq!(line.due(5), Some(0));
        assert_eq!([line.due(5), line.due(60_004)], [None, None]);
        assert_eq!(line.due(60_005), Some(2));
        assert_eq!(line.due(60_006), None);
        assert_eq!(line.due(600_000), Some(1));
        assert_eq!(line.due(700_000), Some(0));
    }

    #[test]
    fn each_kind_has_a_time_of_its_own() {
        let (one, other) = (RareLine::new(), RareLine::new());
        assert_eq!(one.due(5), Some(0));
        assert_eq!(other.due(6), Some(0));
        assert_eq!(one.due(7), None);
    }
}
