//! How a limiter begins and ends, and what it does to the runtime that it lives in.

use std::time::Duration;

use redis_rl_client::{DAY, Limiter, Outage, Policy, Source};
use tokio::runtime::{Handle, Runtime};
use tokio::time::{Instant, sleep};

use crate::load::{alone, counter, patiently};
use crate::support::{Options, Sentinels, Server, Silent, ask, free_port, info, replica_of, wait_until};

fn limiter_at(port: u16) -> Limiter {
    let builder = Limiter::builder(format!("redis://127.0.0.1:{port}"));
    builder
        .deadline(Duration::from_millis(250))
        .on_outage(Outage::Closed)
        .nodes(1)
        .without_fleet()
        .connect_lazy()
        .unwrap()
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Waits until no more tasks live than did.
async fn assert_no_task_outlives(before: usize) {
    let began = Instant::now();
    let alive = || Handle::current().metrics().num_alive_tasks();
    while alive() > before {
        assert!(began.elapsed() < Duration::from_secs(1), "{} tasks live on", alive() - before);
        sleep(Duration::from_millis(5)).await;
    }
}

/// Checks until the breaker is open.
pub async fn open_the_breaker(limiter: &Limiter) {
    let began = Instant::now();
    loop {
        let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
        if error.kind() == redis_rl_client::ErrorKind::BreakerOpen {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "the breaker does not open: {error}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn it_is_set_up_outside_a_runtime_and_with_redis_down() {
    let mut server = Server::new();
    server.kill();
    let limiter = limiter_at(server.port());
    server.revive();
    assert_eq!(runtime().block_on(limiter.check(&counter(), "alice")).source, Source::Redis);
}

#[tokio::test]
async fn connecting_fails_in_time() {
    patiently(async || {
        let silent = Silent::new();
        for (port, longest) in [(free_port(), Duration::from_millis(500)), (silent.port(), Duration::from_secs(3))] {
            let began = Instant::now();
            let url = format!("redis://127.0.0.1:{port}");
            let builders = [Limiter::builder(&url), Limiter::cluster([&url]), Limiter::sentinel([&url], "main")];
            for builder in builders {
                let error = builder
                    .connect_timeout(Duration::from_millis(300))
                    .nodes(1)
                    .without_fleet()
                    .connect()
                    .await
                    .unwrap_err();
                assert!(error.is_outage(), "{error}");
            }
            assert!(began.elapsed() < longest, "three times to connect took {:?}", began.elapsed());
        }
        let server = Server::new();
        let url = format!("redis://127.0.0.1:{}", server.port());
        let limiter =
            Limiter::builder(url).deadline(Duration::from_secs(5)).nodes(1).without_fleet().connect().await.unwrap();
        assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
    })
    .await;
}

#[tokio::test]
async fn no_task_outlives_the_last_clone_and_the_connections_are_closed() {
    let server = Server::new();
    let redis = &mut server.connect();
    let before = Handle::current().metrics().num_alive_tasks();
    let limiter = limiter_at(server.port());
    let clone = limiter.clone();
    let _ = limiter.check(&counter(), "alice").await;
    drop(limiter);
    assert_eq!(clone.check(&counter(), "alice").await.source, Source::Redis);
    drop(clone);
    assert_no_task_outlives(before).await;
    wait_until("the connection is closed", || info(redis, "clients", "connected_clients") == Some("1".into()));
}

#[tokio::test]
async fn no_probe_outlives_it() {
    let silent = Silent::new();
    // One that refuses and one that is silent.
    for port in [free_port(), silent.port()] {
        for wait in [0, 60, 130] {
            let before = Handle::current().metrics().num_alive_tasks();
            let limiter = limiter_at(port);
            open_the_breaker(&limiter).await;
            assert!(Handle::current().metrics().num_alive_tasks() > before);
            // In between probes, and within one.
            sleep(Duration::from_millis(wait)).await;
            drop(limiter);
            assert_no_task_outlives(before).await;
        }
    }
}

#[tokio::test]
async fn no_attempt_to_connect_outlives_it() {
    let silent = Silent::new();
    let url = format!("redis://127.0.0.1:{}", silent.port());
    let builders = [Limiter::builder(&url), Limiter::cluster([&url]), Limiter::sentinel([&url], "main")];
    for builder in builders {
        let before = Handle::current().metrics().num_alive_tasks();
        let builder = builder.deadline(Duration::from_millis(20)).connect_timeout(Duration::from_secs(60));
        let limiter = builder.nodes(1).without_fleet().connect_lazy().unwrap();
        limiter.try_check(&counter(), "alice").await.unwrap_err();
        assert!(Handle::current().metrics().num_alive_tasks() > before, "it does not go on");
        drop(limiter);
        assert_no_task_outlives(before).await;
    }
}

#[tokio::test]
async fn no_link_to_a_server_that_is_not_needed_any_more_outlives_it() {
    patiently(async || {
        let primary = Options::new().set("repl-diskless-sync-delay", "0").start();
        let replica = replica_of(&primary, Options::new());
        let sentinels = Sentinels::of(&primary);
        let before = Handle::current().metrics().num_alive_tasks();
        let builder = Limiter::sentinel(sentinels.urls(), sentinels.name()).deadline(Duration::from_secs(5));
        let limiter = builder.nodes(1).without_fleet().connect().await.unwrap();
        assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
        let clients = |server: &Server| -> Vec<String> {
            let list: String = ask(&mut server.connect(), "CLIENT LIST TYPE normal");
            // The test itself speaks version 2.
            list.lines().filter(|line| line.contains(" resp=3")).map(str::to_owned).collect()
        };
        assert_eq!(clients(&primary).len(), 1, "{:?}", clients(&primary));
        sentinels.fail_over();
        wait_until("the replica is promoted", || replica.role().is_some_and(|role| role == "master"));
        sentinels.wait_for_primary(replica.port());
        let began = Instant::now();
        while clients(&replica).is_empty() || !clients(&primary).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(3), "{:?}", clients(&primary));
            let _ = limiter.check(&counter(), "alice").await;
            sleep(Duration::from_millis(20)).await;
        }
        drop(limiter);
        assert_no_task_outlives(before).await;
    })
    .await;
}

#[tokio::test]
async fn an_outage_blocks_no_thread_of_the_runtime() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let silent = Silent::new();
        let limiters = [limiter_at(server.port()), limiter_at(silent.port()), limiter_at(free_port())];
        // One thread for all: what blocks it shows between the ticks.
        let ticks = tokio::spawn(async {
            let mut ticks = Vec::new();
            for _ in 0..250 {
                let before = Instant::now();
                sleep(Duration::from_millis(5)).await;
                ticks.push(before.elapsed());
            }
            ticks
        });
        for _ in 0..10 {
            for limiter in &limiters {
                let _ = limiter.check(&counter(), "alice").await;
            }
        }
        server.stop();
        while !ticks.is_finished() {
            for limiter in &limiters {
                let _ = limiter.check(&counter(), "alice").await;
            }
            sleep(Duration::from_millis(2)).await;
        }
        let ticks = ticks.await.unwrap();
        eprintln!("  the longest of 250 ticks of 5 ms was {:.1?}", ticks.iter().max().unwrap());
        // Whatever blocks does so each time, ten times a second at least; a machine that has other things to do, now and then.
        let long = ticks.iter().filter(|tick| **tick > Duration::from_millis(50)).count();
        assert!(long <= 5, "{long} of 250 ticks of 5 ms took more than 50 ms");
    })
    .await;
}

#[test]
fn it_goes_on_in_another_runtime() {
    let mut server = Server::new();
    let limiter = limiter_at(server.port());
    for _ in 0..3 {
        let runtime = runtime();
        assert_eq!(runtime.block_on(limiter.check(&counter(), "alice")).source, Source::Redis);
    }
    // With the runtime ends what looks whether the server answers again.
    server.kill();
    runtime().block_on(open_the_breaker(&limiter));
    server.revive();
    runtime().block_on(async {
        let began = Instant::now();
        while limiter.check(&counter(), "alice").await.source != Source::Redis {
            assert!(began.elapsed() < Duration::from_secs(1), "nobody looks whether the server answers again");
            sleep(Duration::from_millis(10)).await;
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_give_up_leave_the_others_their_own_replies() {
    let server = Server::new();
    let limiter = crate::answers::limiter_of(&server);
    for number in 0..500_u64 {
        let policy = Policy::fixed_window("p", 1_000 + number, 36_500 * DAY).unwrap();
        let gives_up = tokio::spawn({
            let (limiter, policy) = (limiter.clone(), counter());
            async move { limiter.check(&policy, "nobody").await }
        });
        if number % 2 == 0 {
            tokio::task::yield_now().await;
        }
        gives_up.abort();
        let decision = limiter.check(&policy, number.to_string()).await;
        assert_eq!((decision.limit, decision.remaining), (1_000 + number, Some(999 + number)));
    }
    let counted = crate::load::charged(&limiter, "nobody").await;
    eprintln!("  of 500 that gave up {counted} were counted");
    assert!(counted <= 500);
}
