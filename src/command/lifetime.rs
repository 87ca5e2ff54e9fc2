//! When a key expires.
//!
//! Expiry is garbage collection: the state itself says when it is unused. So the expiry never comes before that moment, and is
//! moved only when it must be, with some slack for the calls to come: a key that expires and is made anew costs more
//! than one that is kept.

use rl_limiter::Micros;

/// The least slack in milliseconds.
const LEAST_SLACK: i64 = 1_000;

/// The expiry, in milliseconds since the Unix epoch, for a state that will be unused at `unused_at`; `None` if the one
/// that the key has is right: not before that moment, and past it by at most a quarter of the time until then, or by a second.
#[inline]
pub fn moved_expiry(present: Option<i64>, unused_at: Micros, now: Micros) -> Option<i64> {
    if is_right(present, (unused_at, unused_at), now) {
        return None;
    }
    let earliest = millis_rounded_up(unused_at);
    let left = (earliest - millis_rounded_up(now)).max(0);
    // Half of what is allowed, so that neither a little more use nor a little refill moves it at once.
    Some(earliest + LEAST_SLACK.max(left / 8))
}

/// Whether the expiry that a key has is right for a state that will be unused between two moments, at whichever of them.
#[inline]
pub fn is_right(present: Option<i64>, (earliest, latest): (Micros, Micros), now: Micros) -> bool {
    let earliest = millis_rounded_up(earliest);
    let left = (earliest - millis_rounded_up(now)).max(0);
    present.is_some_and(|expiry| millis_rounded_up(latest) <= expiry && expiry - earliest <= LEAST_SLACK.max(left / 4))
}

/// Below 2^62 microseconds, so below 2^53 milliseconds.
#[inline]
fn millis_rounded_up(moment: Micros) -> i64 {
    i64::try_from(moment.get().div_ceil(1_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{is_right, moved_expiry};
    use rl_limiter::Micros;

    const NOW: u64 = 1_800_000_000_000_001;

    fn moved(present: Option<i64>, micros_left: u64) -> Option<i64> {
        let now = Micros::new(NOW).unwrap();
        moved_expiry(present, Micros::new(NOW + micros_left).unwrap(), now)
    }

    #[test]
    fn a_new_expiry_is_never_early_and_at_most_a_quarter_or_a_second_late() {
        for micros_left in (0..40).map(|power| 3_u64.pow(power)).filter(|&left| left < 1 << 60) {
            let unused_at = i64::try_from(NOW + micros_left).unwrap();
            let expiry = moved(None, micros_left).unwrap();
            let late = expiry * 1_000 - unused_at;
            let most = 1_000_999.max(i64::try_from(micros_left / 4).unwrap() + 999);
            assert!((0..=most).contains(&late), "{micros_left} µs left: {late} µs late");
            assert_eq!(moved(Some(expiry), micros_left), None, "what was set is right");
        }
    }

    #[test]
    fn an_expiry_that_is_right_stays() {
        let unused_at = 1_800_000_060_001;
        for present in [unused_at, unused_at + 15_000] {
            assert_eq!(moved(Some(present), 60_000_000), None);
        }
    }

    #[test]
    fn an_expiry_is_right_for_a_stretch_of_time_if_it_is_for_both_ends() {
        let moment = |left: u64| Micros::new(NOW + left).unwrap();
        for latest in [60_000_000, 60_000_001, 75_000_000, 200_000_000] {
            for present in (1_800_000_059_000..1_800_000_090_000).step_by(499) {
                let both = [60_000_000, latest].iter().all(|&left| moved(Some(present), left).is_none());
                let told = is_right(Some(present), (moment(60_000_000), moment(latest)), moment(0));
                assert_eq!(told, both, "{present}, {latest}");
            }
        }
        assert!(!is_right(None, (moment(0), moment(0)), moment(0)));
    }

    #[test]
    fn an_expiry_that_is_early_or_far_too_late_moves() {
        let unused_at = 1_800_000_060_001;
        for present in [0, unused_at - 1, unused_at + 15_001, i64::MAX] {
            assert_eq!(moved(Some(present), 60_000_000), Some(unused_at + 7_500));
        }
    }
}
