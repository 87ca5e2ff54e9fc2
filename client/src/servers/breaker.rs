//! The circuit breaker: a server that does not answer is left alone until it does.
//!
//! Source of the pattern: M. Nygard, "Release It!", 2007.

use std::time::Duration;

use tokio::time::Instant;

/// So many failures in a row open it, …
const IN_A_ROW: u32 = 5;
/// … or half of at least so many calls …
const AT_LEAST: u32 = 20;
/// … within this time.
const WINDOW: Duration = Duration::from_secs(1);
/// Failures that are closer together than this are one pause, as a server makes that forks, and no outage.
const SPREAD: Duration = Duration::from_millis(100);

/// Counts what becomes of calls. It is closed as long as calls may be made.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    is_open: bool,
    in_a_row: Failures,
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u32,
    first: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    calls: u32,
    failures: Failures,
}

impl Failures {
    fn add(&mut self, now: Instant) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert(now);
    }

    fn are_spread(&self, now: Instant) -> bool {
        self.first.is_some_and(|first| now.duration_since(first) >= SPREAD)
    }
}

impl Breaker {
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// A call was answered.
    pub fn succeeded(&mut self, now: Instant) {
        self.in_a_row = Failures::default();
        self.window(now).calls += 1;
    }

    /// A call was not answered. True if that opens it.
    pub fn failed(&mut self, now: Instant) -> bool {
        self.in_a_row.add(now);
        let in_a_row = self.in_a_row.count >= IN_A_ROW && self.in_a_row.are_spread(now);
        let window = self.window(now);
        window.calls += 1;
        window.failures.add(now);
        let half = window.calls >= AT_LEAST && window.failures.count * 2 >= window.calls;
        let half = half && window.failures.are_spread(now);
        let opens = !self.is_open && (in_a_row || half);
        self.is_open |= opens;
        opens
    }

    /// The server answers again.
    pub fn close(&mut self) {
        *self = Self::default();
    }

    /// The window of now: a new one, if the last is over.
    fn window(&mut self, now: Instant) -> &mut Window {
        let window = self.window.filter(|window| now.duration_since(window.began) < WINDOW);
        self.window.insert(window.unwrap_or(Window { began: now, calls: 0, failures: Failures::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::Breaker;
    use std::time::Duration;
    use tokio::time::Instant;

    /// Feeds calls, each so many milliseconds after the first, and tells at which of them the breaker opened.
    fn opened_at(calls: impl IntoIterator<Item = (u64, bool)>) -> Option<u64> {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        calls.into_iter().find_map(|(millis, answered)| {
            let now = start + Duration::from_millis(millis);
            if answered {
                breaker.succeeded(now);
                return None;
            }
            breaker.failed(now).then_some(millis)
        })
    }

    #[test]
    fn five_failures_in_a_row_open_it_if_they_are_spread() {
        assert_eq!(opened_at((0..5).map(|call| (call * 25, false))), Some(100));
        assert_eq!(opened_at((0..4).map(|call| (call * 1_000, false))), None);
        let interrupted = (0..9).map(|call| (call * 1_000, call % 5 == 4));
        assert_eq!(opened_at(interrupted), None);
    }

    #[test]
    fn a_pause_does_not_open_it() {
        let pause = (0..500).map(|call| (call / 10, false));
        assert_eq!(opened_at(pause.chain([(60, true)])), None);
        let pause_among_calls = (0..900).map(|call| (call, !(300..399).contains(&call)));
        assert_eq!(opened_at(pause_among_calls), None);
    }

    #[test]
    fn half_of_twenty_within_a_second_open_it() {
        let every_other = (0..20).map(|call| (call * 20, call % 2 == 0));
        assert_eq!(opened_at(every_other), Some(380));
        let one_of_three = (0..300).map(|call| (call * 3, call % 3 != 0));
        assert_eq!(opened_at(one_of_three), None);
        let too_slow = (0..100).map(|call| (call * 60, call % 2 == 0));
        assert_eq!(opened_at(too_slow), None);
    }

    #[test]
    fn it_opens_once_and_starts_anew_when_closed() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let opened: Vec<bool> = (0..10).map(|call| breaker.failed(at(call * 50))).collect();
        assert_eq!(opened.iter().filter(|opened| **opened).count(), 1);
        assert!(breaker.is_open());
        breaker.close();
        assert!(!breaker.is_open());
        assert!(!breaker.failed(at(1_000)));
    }
}
