//! A server that dies, hangs, or is replaced by one that is silent, under load: who decides, how soon, and for how long.

use std::time::Duration;

use redis_rl_client::{Decision, ErrorKind, Limiter, Outage, Source};
use tokio::time::{Instant, sleep, timeout};

use crate::load::{DEADLINE, Load, Report, alone, assert_exact, counter, patiently};
use crate::support::{Options, Proxy, Server, Silent, calls, info};

/// Enough to see a steady state.
const A_WHILE: Duration = Duration::from_millis(500);

fn limiter_at(port: u16, outage: Outage) -> Limiter {
    let builder = Limiter::builder(format!("redis://127.0.0.1:{port}"));
    builder.deadline(DEADLINE).on_outage(outage).nodes(1).without_fleet().connect_lazy().unwrap()
}

/// Whether a decision is what an outage leads to.
fn is_by(outage: Outage, decision: &Decision) -> bool {
    let is_right = match outage {
        Outage::Open => decision.allowed,
        Outage::Closed => decision.is_unavailable() && decision.retry_after >= Some(Duration::from_secs(1)),
        Outage::LocalShare => decision.allowed,
    };
    is_right && decision.source == Source::Fallback(outage) && decision.remaining.is_none()
}

/// Sees that Redis decided before the outage, and the policy while it lasted.
fn assert_decided(report: &Report, outage: Outage, began: Instant, ended: Instant) {
    let first = report.began();
    // The first requests wait for the connection.
    for record in report.between(first + A_WHILE / 2, began - DEADLINE) {
        assert_eq!(record.decision.source, Source::Redis, "before: {record:?}");
    }
    for record in report.between(began + Duration::from_millis(5), ended - DEADLINE) {
        assert!(is_by(outage, &record.decision), "{outage:?}: {record:?}");
    }
}

async fn lives_through_a_kill(outage: Outage, options: Options, lossless: bool) {
    let _alone = alone().await;
    let mut server = options.start();
    let limiter = limiter_at(server.port(), outage);
    let load = Load::on(&limiter);
    sleep(A_WHILE).await;
    let before = calls(&mut server.connect(), "rl.");
    server.kill();
    let began = Instant::now();
    sleep(Duration::from_secs(1)).await;
    let ended = Instant::now();
    server.revive();
    let answers_again = Instant::now();
    sleep(2 * A_WHILE + Duration::from_millis(300)).await;
    let report = load.end().await;
    assert_decided(&report, outage, began, ended);
    report.assert_recovered(answers_again);
    let executed = before + calls(&mut server.connect(), "rl.");
    assert!(executed <= report.all.len() as u64, "{executed} calls for {} checks", report.all.len());
    assert_exact(&limiter).await;
    report.assert_charged_once(&limiter, lossless).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back_empty_leaves_all_open_meanwhile() {
    patiently(async || {
        lives_through_a_kill(Outage::Open, Options::new(), false).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back_with_its_data_has_counted_each_call_once() {
    patiently(async || {
        let options = Options::new().set("appendonly", "yes").set("appendfsync", "always");
        lives_through_a_kill(Outage::Closed, options, true).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_for_three_seconds_runs_no_call_twice_when_it_goes_on() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let limiter = limiter_at(server.port(), Outage::LocalShare);
        let load = Load::on(&limiter);
        sleep(A_WHILE).await;
        server.stop();
        let began = Instant::now();
        sleep(Duration::from_secs(3)).await;
        let ended = Instant::now();
        server.cont();
        sleep(2 * A_WHILE + Duration::from_millis(300)).await;
        let report = load.end().await;
        assert_decided(&report, Outage::LocalShare, began, ended);
        report.assert_recovered(ended);
        let executed = calls(&mut server.connect(), "rl.");
        let checks = report.all.len() as u64;
        // While the breaker is open nothing is sent: of 600 checks all but those of the first moments.
        let by_redis = report.all.iter().filter(|record| record.decision.source == Source::Redis).count() as u64;
        assert!(
            (by_redis..=by_redis + 100).contains(&executed),
            "{executed} calls, {by_redis} decisions, {checks} checks"
        );
        assert_exact(&limiter).await;
        report.assert_charged_once(&limiter, true).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_that_is_no_outage_does_not_open_the_breaker() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let limiter = limiter_at(server.port(), Outage::Closed);
        let load = Load::on(&limiter);
        sleep(A_WHILE).await;
        server.stop();
        sleep(Duration::from_millis(80)).await;
        server.cont();
        let ended = Instant::now();
        sleep(A_WHILE).await;
        let report = load.end().await;
        // Had it opened, the next moments would be without Redis.
        for record in report.since(ended + Duration::from_millis(20)) {
            assert_eq!(record.decision.source, Source::Redis, "{record:?}");
        }
        report.assert_charged_once(&limiter, true).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_accepts_and_never_answers_holds_nobody_up() {
    patiently(async || {
        let _alone = alone().await;
        let silent = Silent::new();
        let limiter = limiter_at(silent.port(), Outage::Closed);
        let load = Load::on(&limiter);
        sleep(Duration::from_millis(2_500)).await;
        let report = load.end().await;
        for record in report.since(report.began()) {
            assert!(is_by(Outage::Closed, &record.decision), "{record:?}");
        }
        assert!(silent.accepted() <= 5, "{} connections in two seconds", silent.accepted());
        drop(silent);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_replaced_by_a_silent_port_and_comes_back_decides_again() {
    patiently(async || {
        let _alone = alone().await;
        let mut server = Server::new();
        let limiter = limiter_at(server.port(), Outage::Open);
        let load = Load::on(&limiter);
        sleep(A_WHILE).await;
        server.kill();
        let silent = Silent::on(server.port());
        let began = Instant::now();
        sleep(Duration::from_millis(1_500)).await;
        let ended = Instant::now();
        drop(silent);
        server.revive();
        let answers_again = Instant::now();
        sleep(2 * A_WHILE + Duration::from_millis(300)).await;
        let report = load.end().await;
        assert_decided(&report, Outage::Open, began, ended);
        report.assert_recovered(answers_again);
        assert_exact(&limiter).await;
        report.assert_charged_once(&limiter, false).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_leads_nowhere_any_more_is_given_up_after_a_second() {
    patiently(async || {
        let server = Server::new();
        let proxy = Proxy::to(server.port());
        let limiter = limiter_at(proxy.port(), Outage::Closed);
        let _alone = alone().await;
        let load = Load::on(&limiter);
        sleep(A_WHILE).await;
        proxy.forget();
        let began = Instant::now();
        sleep(Duration::from_millis(3_000)).await;
        let report = load.end().await;
        // A second in which nothing is heard, then the next probe connects anew.
        assert_decided(&report, Outage::Closed, began, began + Duration::from_millis(900));
        report.assert_recovered(began + Duration::from_millis(1_500));
        report.assert_charged_once(&limiter, true).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_whose_own_deadline_is_shorter_open_the_breaker_all_the_same() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let builder = Limiter::builder(format!("redis://127.0.0.1:{}", server.port())).on_outage(Outage::Closed);
        let limiter = builder.deadline(Duration::from_millis(500)).nodes(1).without_fleet().connect().await.unwrap();
        server.stop();
        let began = Instant::now();
        loop {
            match timeout(Duration::from_millis(150), limiter.try_check(&counter(), "alice")).await {
                Ok(answer) => {
                    assert_eq!(answer.unwrap_err().kind(), ErrorKind::BreakerOpen);
                    break;
                }
                Err(_) => assert!(began.elapsed() < Duration::from_secs(3), "each caller waits as long as he can"),
            }
        }
        server.cont();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_late_answer_after_a_quiet_second_is_no_reason_to_connect_anew() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let limiter = limiter_at(server.port(), Outage::Closed);
        let redis = &mut server.connect();
        let connections = |redis: &mut _| info(redis, "stats", "total_connections_received");
        while limiter.check(&counter(), "alice").await.source != Source::Redis {}
        let before = connections(redis);
        for _ in 0..2 {
            sleep(Duration::from_millis(1_050)).await;
            server.stop();
            let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Deadline, "{error}");
            sleep(Duration::from_millis(50)).await;
            server.cont();
            sleep(Duration::from_millis(50)).await;
            let _ = limiter.check(&counter(), "alice").await;
        }
        assert_eq!(connections(redis), before, "connections that were made");
    })
    .await;
}
