//! What operators see of real servers.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, Snapshotter};
use redis_rl_client::{Limiter, Outage, Policy, Rate, Source};
use tokio::time::{Instant, sleep};

use crate::answers::policies;
use crate::fake::FakeSentinel;
use crate::lifecycle::{open_the_breaker, runtime};
use crate::load::counter;
use crate::recorded::{Log, recorded};
use crate::support::{Options, Server, ask, free_port, wait_until};

fn observed(test: impl AsyncFnOnce(Log, Snapshotter)) {
    recorded(&runtime(), test);
}

#[test]
fn no_subject_is_told_where_the_module_is_missing() {
    observed(async |log, _| {
        let server = Options::new().module(None).start();
        let node = Options::new().module(None).set("cluster-enabled", "yes").start();
        let redis = &mut node.connect();
        ask::<()>(redis, "CLUSTER ADDSLOTSRANGE 0 16383");
        wait_until("the cluster is up", || crate::support::send::<()>(redis, "SET x y").is_ok());
        let url = |server: &Server| format!("redis://127.0.0.1:{}", server.port());
        let secret = "sk_live_4242";
        for builder in [Limiter::builder(url(&server)), Limiter::cluster([url(&node)])] {
            let limiter = builder.deadline(Duration::from_secs(5)).nodes(1).without_fleet().connect_lazy().unwrap();
            for policy in policies() {
                assert!(limiter.check(&policy, secret).await.is_unavailable());
                let errors = [
                    limiter.try_check(&policy, secret).await.err(),
                    limiter.peek(&policy, secret).await.err(),
                    limiter.refund(&policy, secret, 1, None).await.err(),
                    limiter.debit(&policy, secret, 1).await.err(),
                ];
                for error in errors {
                    let error = error.expect("there is no module");
                    assert!(!format!("{error} {error:?}").contains("4242"), "{error:?}");
                }
            }
        }
        let text = log.text();
        assert_eq!(text.matches("ERR unknown command 'RL.").count(), 2, "once for each limiter: {text}");
        assert!(!text.contains("4242"), "{text}");
    });
}

#[test]
fn what_is_leased_shows_and_no_key_does() {
    observed(async |_, metrics| {
        let server = Server::new();
        let limiter = crate::answers::limiter_of(&server);
        let policy = Policy::token_bucket("hot", 40_000, Rate::per_second(100_000)).unwrap().leased().unwrap();
        let (mut held, mut calls) = (0.0_f64, 0);
        let mut look = || {
            for (key, _, _, value) in metrics.snapshot().into_vec() {
                let (name, labels) =
                    (key.key().name().to_owned(), format!("{:?}", key.key().labels().collect::<Vec<_>>()));
                assert!(!labels.contains("secret"), "{name} {labels}");
                match value {
                    DebugValue::Gauge(level) if name == "ratelimit_lease_tokens_held" => held = level.into_inner(),
                    DebugValue::Counter(count) if name == "ratelimit_lease_requests_total" => calls += count,
                    _ => {}
                }
            }
            (held, calls)
        };
        let began = Instant::now();
        while look().0 == 0.0 {
            assert!(began.elapsed() < Duration::from_secs(5), "no token is shown");
            for _ in 0..20 {
                let _ = limiter.check(&policy, "secret").await;
            }
            sleep(Duration::from_millis(1)).await;
        }
        assert!(look().1 > 0);
        sleep(Duration::from_secs(1)).await;
        // A snapshot resets what it shows of a gauge, which is added to.
        look();
        eprintln!("  held {held}, {calls} calls");
    });
}

/// What the gauge of a server's breaker says. To look sets it to 0.
fn breaker(metrics: &Snapshotter, port: u16) -> Option<f64> {
    let server = format!("127.0.0.1:{port}");
    metrics.snapshot().into_vec().into_iter().find_map(|(key, _, _, value)| {
        let is_it = key.key().name() == "ratelimit_breaker_state" && key.key().labels().any(|l| l.value() == server);
        match value {
            DebugValue::Gauge(level) if is_it => Some(level.into_inner()),
            _ => None,
        }
    })
}

#[test]
fn a_server_that_was_replaced_is_no_longer_told_to_be_left_alone() {
    observed(async |_, metrics| {
        let gone = free_port();
        let server = Server::new();
        let sentinel = FakeSentinel::that_says(gone);
        let builder = Limiter::sentinel([sentinel.url()], "main").deadline(Duration::from_millis(250));
        let limiter = builder.on_outage(Outage::Closed).nodes(1).without_fleet().connect_lazy().unwrap();
        open_the_breaker(&limiter).await;
        sentinel.says(server.port());
        let began = Instant::now();
        while limiter.check(&counter(), "alice").await.source != Source::Redis {
            assert!(began.elapsed() < Duration::from_secs(5), "the new primary is not found");
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(breaker(&metrics, gone), Some(0.0));
    });
}
