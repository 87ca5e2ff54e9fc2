//! What operators see: metrics and log lines.
#![allow(clippy::unwrap_used)]

mod recorded;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::recorded::{Log, recorded};
use http::{Request, Response};
use metrics_util::debugging::{DebugValue, Snapshotter};
use redis_rl_client::http::{KeyBy, RateLimitLayer};
use redis_rl_client::{DAY, Limiter, Outage, Policy};
use tokio::time::advance;
use tower::{Layer as _, ServiceExt as _, service_fn};

/// A port on which nobody listens.
const NOBODY: &str = "redis://127.0.0.1:1";

/// All that was counted, by name and labels.
fn counted(metrics: &Snapshotter) -> BTreeMap<String, String> {
    let shown = |value: DebugValue| match value {
        DebugValue::Counter(count) => count.to_string(),
        DebugValue::Gauge(level) => level.to_string(),
        DebugValue::Histogram(values) => format!("{} values", values.len()),
    };
    let entries = metrics.snapshot().into_vec().into_iter().map(|(key, _, _, value)| {
        let labels: Vec<_> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        (format!("{}{{{}}}", key.key().name(), labels.join(",")), shown(value))
    });
    entries.collect()
}

/// In paused time.
fn observed(test: impl AsyncFnOnce(Log, Snapshotter)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    recorded(&runtime, test);
}

/// A window whose edge no test meets.
const EVER: Duration = Duration::from_secs(36_500 * DAY.as_secs());

fn lines(log: &Log) -> Vec<String> {
    log.text().lines().map(str::to_owned).collect()
}

#[test]
fn decisions_are_counted_by_policy_outcome_and_source() {
    observed(async |_, metrics| {
        let limiter = Limiter::in_memory();
        let api = Policy::fixed_window("api", 2, EVER).unwrap();
        let tried = Policy::fixed_window("tried", 0, EVER).unwrap().shadow();
        for _ in 0..3 {
            let _ = limiter.check(&api, "alice").await;
        }
        let _ = limiter.check(&tried, "alice").await;
        let counted = counted(&metrics);
        let of = |labels: &str| counted.get(&format!("ratelimit_decisions_total{{{labels}}}")).map(String::as_str);
        assert_eq!(of("policy=api,outcome=allowed,source=memory"), Some("2"), "{counted:?}");
        assert_eq!(of("policy=api,outcome=denied,source=memory"), Some("1"), "{counted:?}");
        assert_eq!(of("policy=tried,outcome=shadow_denied,source=memory"), Some("1"), "{counted:?}");
        assert!(!format!("{counted:?}").contains("alice"), "{counted:?}");
    });
}

#[test]
fn an_outage_shows_in_metrics_and_log() {
    observed(async |log, metrics| {
        let limiter = Limiter::builder(NOBODY).on_outage(Outage::Open).without_fleet().connect_lazy().unwrap();
        let api = Policy::fixed_window("api", 2, EVER).unwrap();
        for _ in 0..10 {
            assert!(limiter.check(&api, "alice").await.allowed);
            advance(Duration::from_millis(30)).await;
        }
        let counted = counted(&metrics);
        let is =
            |name: &str, value: &str| assert_eq!(counted.get(name).map(String::as_str), Some(value), "{counted:?}");
        is("ratelimit_decisions_total{policy=api,outcome=allowed,source=fallback_open}", "10");
        is("ratelimit_redis_errors_total{kind=unreachable}", "5");
        is("ratelimit_redis_errors_total{kind=breaker_open}", "5");
        is("ratelimit_breaker_state{server=127.0.0.1:1}", "1");
        is("ratelimit_redis_seconds{}", "10 values");

        let lines = lines(&log);
        assert_eq!(lines.iter().filter(|line| line.contains("the outage policy decides")).count(), 2, "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains("is not asked until it does")).count(), 1, "{lines:#?}");
        assert!(
            lines.iter().all(|line| line.trim_start().starts_with("WARN") && !line.contains("alice")),
            "{lines:#?}"
        );
    });
}

#[test]
fn a_fault_of_configuration_is_logged_once_a_minute_and_counted_each_time() {
    observed(async |log, metrics| {
        let limiter = Limiter::in_memory();
        let fixed = Policy::fixed_window("api", 2, EVER).unwrap();
        let log_of_same_name = Policy::sliding_log("api", 2, EVER).unwrap();
        let _ = limiter.check(&fixed, "alice").await;
        for _ in 0..5 {
            assert!(!limiter.check(&log_of_same_name, "alice").await.allowed);
            advance(Duration::from_secs(29)).await;
        }
        let counted = counted(&metrics);
        assert_eq!(
            counted.get("ratelimit_redis_errors_total{kind=wrong_type}").map(String::as_str),
            Some("5"),
            "{counted:?}"
        );
        let lines = lines(&log);
        let reported: Vec<_> = lines.iter().filter(|line| line.trim_start().starts_with("ERROR")).collect();
        assert_eq!(reported.len(), 2, "at 0 s and 87 s: {lines:#?}");
        assert!(reported[0].contains("WRONGTYPE the key holds a fixed window limiter"), "{lines:#?}");
    });
}

#[test]
fn a_limit_that_can_count_nobody_is_logged_once_a_minute() {
    observed(async |log, _| {
        let api = Policy::fixed_window("api", 2, EVER).unwrap();
        let layer = RateLimitLayer::new(Limiter::in_memory()).limit(api, KeyBy::header("x api key").optional());
        let serve = service_fn(async |_| Ok::<_, std::convert::Infallible>(Response::new(bytes::Bytes::new())));
        for _ in 0..5 {
            let response = layer.layer(serve).oneshot(Request::new(())).await.unwrap();
            assert_eq!(response.status(), 503);
        }
        let lines = lines(&log);
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].trim_start().starts_with("ERROR"), "{lines:#?}");
        assert!(lines[0].contains("no header can have the name \"x api key\""), "{lines:#?}");
    });
}

#[test]
fn an_unknown_number_of_nodes_is_warned_of() {
    observed(async |log, _| {
        let builder = || Limiter::builder(NOBODY).without_fleet();
        let fleet = builder().fleet("api");
        for known in [fleet, builder().nodes(4), builder().on_outage(Outage::Open), builder().on_outage(Outage::Closed)]
        {
            known.connect_lazy().unwrap();
        }
        assert_eq!(lines(&log).len(), 0, "{:?}", lines(&log));
        builder().connect_lazy().unwrap();
        assert_eq!(lines(&log).len(), 1, "{:?}", lines(&log));
        assert!(lines(&log)[0].contains("the number of nodes is not known"), "{:?}", lines(&log));
    });
}
