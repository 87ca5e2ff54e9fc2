//! Runtimes that run only now and then, or never again, and callers who never let go of theirs.

use std::time::{Duration, Instant};

use redis_rl_client::{Builder, Limiter, Outage, Source};
use tokio::runtime::Runtime;

use crate::lifecycle::{open_the_breaker, runtime};
use crate::load::{DEADLINE, RECOVERY, alone, counter};
use crate::support::{Options, Server, ask};

const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
/// Begun anew after two seconds at the latest; as much again is for a machine that has other things to do.
const ANEW: Duration = CONNECT_TIMEOUT.saturating_add(Duration::from_secs(4));

fn set_up(builder: Builder) -> Limiter {
    let builder = builder.deadline(DEADLINE).connect_timeout(CONNECT_TIMEOUT);
    builder.on_outage(Outage::Closed).nodes(1).without_fleet().connect_lazy().unwrap()
}

fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

/// Checks again and again until Redis decides.
async fn assert_decided_within(longest: Duration, limiter: &Limiter, what: &str) {
    let began = Instant::now();
    while limiter.check(&counter(), "alice").await.source != Source::Redis {
        assert!(began.elapsed() < longest, "{what}: not decided by Redis again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server that has just come back, and a limiter that leaves it alone.
fn back_after_an_outage(runtime: &Runtime) -> (Server, Limiter) {
    let mut server = Server::new();
    let limiter = set_up(Limiter::builder(url(&server)));
    server.kill();
    runtime.block_on(open_the_breaker(&limiter));
    server.revive();
    (server, limiter)
}

#[test]
fn a_server_that_is_back_is_seen_where_the_runtime_runs_only_for_each_call() {
    let runtime = runtime();
    let _alone = runtime.block_on(alone());
    let (_server, limiter) = back_after_an_outage(&runtime);
    let began = Instant::now();
    while runtime.block_on(limiter.check(&counter(), "alice")).source != Source::Redis {
        assert!(began.elapsed() < RECOVERY, "nobody looks whether the server answers again");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_is_back_is_seen_where_a_caller_never_pauses() {
    let runtime = runtime();
    let _alone = runtime.block_on(alone());
    let (_server, limiter) = back_after_an_outage(&runtime);
    let checks = async move {
        let began = Instant::now();
        while limiter.check(&counter(), "alice").await.source != Source::Redis {
            assert!(began.elapsed() < RECOVERY, "nobody looks whether the server answers again");
        }
    };
    runtime.block_on(async { tokio::spawn(checks).await.unwrap() });
}

/// Begins something in a runtime that does not run afterwards, and sees that Redis decides in another one.
fn assert_begun_anew(limiter: &Limiter, server: &Server, what: &str, begin: impl FnOnce(&Runtime)) {
    let (first, second) = (runtime(), runtime());
    server.stop();
    begin(&first);
    server.cont();
    second.block_on(assert_decided_within(ANEW, limiter, what));
}

#[test]
fn what_was_begun_in_a_runtime_that_does_not_run_is_begun_anew_in_another() {
    let _alone = runtime().block_on(alone());
    let server = Server::new();
    let node = Options::new().set("cluster-enabled", "yes").start();
    ask::<()>(&mut node.connect(), "CLUSTER ADDSLOTSRANGE 0 16383");
    let sentinel = Options::sentinel(&format!("sentinel monitor main 127.0.0.1 {} 1\n", server.port())).start();
    let single = set_up(Limiter::builder(url(&server)));
    let of_cluster = set_up(Limiter::cluster([url(&node)]));
    let of_sentinel = set_up(Limiter::sentinel([url(&sentinel)], "main"));
    for (limiter, asked, what) in [
        (&single, &server, "an attempt to connect"),
        (&of_cluster, &node, "a look at a cluster"),
        (&of_sentinel, &sentinel, "a look at sentinels"),
    ] {
        assert_begun_anew(limiter, asked, what, |first| {
            first.block_on(limiter.try_check(&counter(), "alice")).unwrap_err();
        });
    }
    let limiter = set_up(Limiter::builder(url(&server)));
    assert_begun_anew(&limiter, &server, "a probe", |first| first.block_on(open_the_breaker(&limiter)));
}

#[test]
fn a_connection_that_was_made_in_a_runtime_that_does_not_run_is_made_anew_in_another() {
    let (first, second) = (runtime(), runtime());
    let _alone = second.block_on(alone());
    let server = Server::new();
    let limiter = set_up(Limiter::builder(url(&server)));
    first.block_on(assert_decided_within(ANEW, &limiter, "at first"));
    second.block_on(assert_decided_within(ANEW, &limiter, "a connection"));
}
