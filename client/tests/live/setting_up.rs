//! What a limiter may be set up with, and what it takes to connect.

use std::time::Duration;

use redis_rl_client::{Builder, ErrorKind, Limiter, Source};
use tokio::time::sleep;

use crate::load::counter;
use crate::support::{Options, Server, ask};

#[test]
fn times_that_no_clock_can_tell_are_refused() {
    let builder = || Limiter::builder("redis://127.0.0.1:1").nodes(1).without_fleet();
    let longest = Duration::from_secs(3_600);
    assert!(builder().deadline(longest).connect_timeout(longest).connect_lazy().is_ok());
    for time in [Duration::MAX, longest + Duration::from_nanos(1), Duration::ZERO] {
        for builder in [builder().deadline(time), builder().connect_timeout(time)] {
            let error = builder.connect_lazy().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{time:?}: {error}");
        }
    }
}

#[test]
fn no_password_is_shown() {
    let url = "redis://user:hunter2@127.0.0.1:1";
    let builders = [Limiter::builder(url), Limiter::cluster([url]), Limiter::sentinel([url], "main")];
    for builder in builders.map(|builder| builder.nodes(1).without_fleet().primary_login("user", "hunter3")) {
        let shown = format!("{builder:?} {:?}", builder.clone().connect_lazy().unwrap());
        assert!(!shown.contains("hunter"), "{shown}");
    }
    let error = Limiter::builder("redis://user:hunter2@127.0.0.1:1/hunter2?x").connect_lazy().unwrap_err();
    assert!(!error.to_string().contains("hunter"), "{error}");
}

#[tokio::test]
async fn who_may_do_nothing_but_check_can_connect() {
    let server = Server::new();
    ask::<()>(&mut server.connect(), "ACL SETUSER api on >secret ~rl:* -@all +rl.fixed");
    let builder = |login: &str| -> Builder {
        let url = format!("redis://{login}@127.0.0.1:{}", server.port());
        Limiter::builder(url).deadline(Duration::from_secs(5)).nodes(1).without_fleet()
    };
    let limiter = builder("api:secret").connect().await.unwrap();
    assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
    let error = builder("api:guess").connect().await.unwrap_err();
    assert_eq!((error.kind(), error.is_outage()), (ErrorKind::NotPermitted, false), "{error}");
}

#[tokio::test]
async fn connecting_to_a_cluster_waits_as_long_as_it_may() {
    let server = Options::new().set("cluster-enabled", "yes").start();
    ask::<()>(&mut server.connect(), "CLUSTER ADDSLOTSRANGE 0 16383");
    server.stop();
    let builder = Limiter::cluster([format!("redis://127.0.0.1:{}", server.port())]);
    let goes_on = async {
        sleep(Duration::from_millis(600)).await;
        server.cont();
    };
    let connects = builder.connect_timeout(Duration::from_secs(5)).nodes(1).without_fleet().connect();
    let (connected, ()) = tokio::join!(connects, goes_on);
    connected.unwrap();
}
