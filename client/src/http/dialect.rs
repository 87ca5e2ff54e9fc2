//! How much is left, in header fields.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::rules::Checked;
use crate::decision::Decision;
use crate::policy::Policy;

const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Integers of structured fields have 15 digits.
const LARGEST: u64 = 999_999_999_999_999;

/// All response headers that the layer may set: a browser hides them from scripts of another origin unless
/// `Access-Control-Expose-Headers` lists them. With tower-http:
/// `CorsLayer::new().expose_headers(EXPOSED_HEADERS.to_vec())`.
pub static EXPOSED_HEADERS: &[HeaderName] = &EXPOSED;

static EXPOSED: [HeaderName; 9] =
    [http::header::RETRY_AFTER, X_LIMIT, X_REMAINING, X_RESET, LIMIT, REMAINING, RESET, RATE_LIMIT, RATE_LIMIT_POLICY];

/// A set of header fields that tell a caller how much is left.
///
/// Seconds are rounded up, what remains is rounded down. Those of one value speak, when there are several limits, of
/// the one that denied with the longest wait, or else of the one of which the smallest share is left. Shadow policies
/// and [untold](super::RateLimitLayer::limit_untold) limits appear in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, which says in how many seconds the limit
    /// is as good as unused.
    XRateLimit,
    /// The same, but `X-RateLimit-Reset` says when, in seconds since the Unix epoch. Callers need a clock that is
    /// right, and some take it for a wait.
    XRateLimitEpoch,
    /// `RateLimit` and `RateLimit-Policy` of the IETF's draft-ietf-httpapi-ratelimit-headers-10, with all policies that
    /// were asked: `"api";r=0;t=1` and `"api";q=100;w=60`.
    ///
    /// `q` is the limit, and `w` its window: of a bucket, the seconds that it takes to refill. `r` is what remains. `t`
    /// is the time until the limit is as good as unused, or, when nothing remains, until the next unit; it is left out
    /// where that is unknown, as for sliding windows and logs that have just given out their last unit.
    RateLimit,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` of that draft's versions up to 06, which are
    /// [`Dialect::XRateLimit`]'s under other names.
    RateLimitDraft06,
}

impl Dialect {
    /// Adds its fields. Where one of them is there already all are left as they are: who set it, the handler or a layer
    /// closer to it, spoke of a limit of its own, and numbers of two limits don't mix.
    pub(super) fn write(self, checked: &[Checked], now: SystemTime, headers: &mut HeaderMap) {
        let fields = match self {
            Self::RateLimit => draft_10(checked),
            Self::XRateLimit => one(checked, [X_LIMIT, X_REMAINING, X_RESET], seconds),
            Self::XRateLimitEpoch => one(checked, [X_LIMIT, X_REMAINING, X_RESET], |reset| {
                seconds(now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_add(reset))
            }),
            Self::RateLimitDraft06 => one(checked, [LIMIT, REMAINING, RESET], seconds),
        };
        if !fields.iter().any(|(name, _)| headers.contains_key(name)) {
            headers.extend(fields);
        }
    }
}

/// The numbers of a decision that has them, for who may know them.
struct Numbers<'a> {
    policy: &'a Policy,
    decision: &'a Decision,
    remaining: u64,
    reset_after: Duration,
}

impl<'a> Numbers<'a> {
    fn of(checked: &'a Checked) -> Option<Self> {
        let Checked { policy, decision, is_told } = checked;
        let (remaining, reset_after) = (decision.remaining?, decision.reset_after?);
        is_told.then_some(Self { policy, decision, remaining, reset_after })
    }

    /// Until there is more.
    fn more_after(&self) -> Option<Duration> {
        match (self.remaining, self.decision.allowed) {
            (0, true) => self.policy.rule().algorithm.next_unit_after(self.reset_after),
            (0, false) => self.decision.retry_after,
            _ => Some(self.reset_after),
        }
    }
}

/// The limit that one value speaks of. If one denied, only those that denied matter.
fn spoken_of(checked: &[Checked]) -> Option<Numbers<'_>> {
    let denies = |checked: &&Checked| !checked.decision.allowed;
    if checked.iter().any(|checked| denies(&checked)) {
        // "Never" is longer than any wait.
        let wait = |numbers: &Numbers<'_>| numbers.decision.retry_after.unwrap_or(Duration::MAX);
        let denied = checked.iter().filter(denies).filter_map(Numbers::of);
        return denied.reduce(|first, next| if wait(&next) > wait(&first) { next } else { first });
    }
    let known = checked.iter().filter_map(Numbers::of);
    known.reduce(|first, next| if next.decision.is_scarcer_than(first.decision) { next } else { first })
}

type Fields = Vec<(HeaderName, HeaderValue)>;

fn one(checked: &[Checked], names: [HeaderName; 3], reset: impl Fn(Duration) -> u64) -> Fields {
    let Some(numbers) = spoken_of(checked) else { return Vec::new() };
    let values = [numbers.decision.limit, numbers.remaining, reset(numbers.reset_after)];
    std::iter::zip(names, values.map(HeaderValue::from)).collect()
}

/// Lists of strings with parameters. A policy's name needs no escape.
fn draft_10(checked: &[Checked]) -> Fields {
    let (mut policies, mut limits) = (String::new(), String::new());
    for numbers in checked.iter().filter_map(Numbers::of) {
        let policy = numbers.policy;
        begin(&mut policies, policy, 'q', policy.limit());
        // Only a limit of 0 may have no window, and a window of 0 is not allowed.
        parameter(&mut policies, 'w', Some(seconds(policy.window())).filter(|&window| window > 0));
        begin(&mut limits, policy, 'r', numbers.remaining);
        parameter(&mut limits, 't', numbers.more_after().map(seconds));
    }
    let field =
        |name, list: String| (!list.is_empty()).then(|| Some((name, HeaderValue::try_from(list).ok()?))).flatten();
    [field(RATE_LIMIT_POLICY, policies), field(RATE_LIMIT, limits)].into_iter().flatten().collect()
}

fn begin(list: &mut String, policy: &Policy, name: char, value: u64) {
    if !list.is_empty() {
        list.push_str(", ");
    }
    list.push('"');
    list.push_str(policy.name());
    list.push('"');
    parameter(list, name, Some(value));
}

fn parameter(list: &mut String, name: char, value: Option<u64>) {
    if let Some(value) = value {
        // Writing to a string does not fail.
        let _ = write!(list, ";{name}={}", value.min(LARGEST));
    }
}

/// Rounded up.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}
