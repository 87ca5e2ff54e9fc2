//! A primary with a replica, watched by sentinels: who is asked when they change places.

use std::time::Duration;

use redis_rl_client::{Limiter, Outage, Source};
use tokio::time::{Instant, sleep};

use crate::load::{DEADLINE, Load, RECOVERY, alone, assert_exact, counter, patiently};
use crate::support::{Options, Sentinels, Server, ask, calls, errors, replica_of, wait_until};

/// What is judged here is who is asked, so a server may be slow for once.
const PATIENCE: Duration = DEADLINE.saturating_mul(4);
const A_WHILE: Duration = Duration::from_millis(500);

fn options() -> Options {
    Options::new().set("repl-diskless-sync-delay", "0")
}

fn limiter_of(sentinels: &Sentinels) -> Limiter {
    let builder = Limiter::sentinel(sentinels.urls(), sentinels.name());
    builder.deadline(PATIENCE).on_outage(Outage::Closed).nodes(1).without_fleet().connect_lazy().unwrap()
}

fn is_primary(server: &Server) -> bool {
    server.role().is_some_and(|role| role == "master")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_replica_that_sentinels_promote_is_asked_and_the_old_primary_is_not_believed_when_it_comes_back() {
    patiently(async || {
        let mut primary = options().start();
        let replica = replica_of(&primary, options());
        let mut sentinels = Sentinels::of(&primary);
        let limiter = limiter_of(&sentinels);
        let _alone = alone().await;
        let load = Load::on(&limiter);
        sleep(A_WHILE).await;
        // One of three is a majority less than all: the client must get along with what is left, too.
        sentinels.kill_one();
        primary.kill();
        let began = Instant::now();
        wait_until("the replica is promoted", || is_primary(&replica));
        let promoted = Instant::now();
        sentinels.wait_for_primary(replica.port());
        let known = Instant::now();
        sleep(RECOVERY).await;
        // It believes that it is a primary for the ten seconds that sentinels take to change that.
        primary.revive();
        let revived = Instant::now();
        sleep(RECOVERY + A_WHILE).await;
        assert!(is_primary(&primary));
        let report = load.end().await;
        for record in report.between(began + PATIENCE, promoted - PATIENCE) {
            assert!(record.decision.is_unavailable(), "{record:?}");
        }
        report.assert_recovered(known);
        for record in report.since(revived) {
            assert_eq!(record.decision.source, Source::Redis, "{record:?}");
        }
        assert_eq!(calls(&mut primary.connect(), "rl."), 0, "calls that the old primary got");
        assert_exact(&limiter).await;
        report.assert_charged_once(&limiter, false).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_by_hand_is_followed_within_a_second() {
    patiently(async || {
        let primary = options().start();
        let replica = replica_of(&primary, options());
        let sentinels = Sentinels::of(&primary);
        let limiter = limiter_of(&sentinels);
        let _alone = alone().await;
        let load = Load::on(&limiter);
        sleep(A_WHILE).await;
        sentinels.fail_over();
        wait_until("the replica is promoted", || is_primary(&replica));
        sentinels.wait_for_primary(replica.port());
        sleep(RECOVERY).await;
        // The old primary goes on answering for ten seconds: what it counts from now on is lost.
        let (at_primary, at_replica) = (&mut primary.connect(), &mut replica.connect());
        let before = [calls(at_primary, "rl."), calls(at_replica, "rl.")];
        assert!(is_primary(&primary));
        sleep(A_WHILE).await;
        let after = [calls(at_primary, "rl."), calls(at_replica, "rl.")];
        assert_eq!(after[0], before[0], "calls of the old primary");
        assert!(after[1] > before[1] + 50, "the new primary is asked");
        let report = load.end().await;
        for record in report.since(report.began() + A_WHILE / 2) {
            assert_eq!(record.decision.source, Source::Redis, "{record:?}");
        }
        assert_exact(&limiter).await;
        report.assert_charged_once(&limiter, false).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_became_a_replica_costs_no_decision() {
    patiently(async || {
        let (old, new) = (options().start(), options().start());
        let (at_old, at_new) = (&mut old.connect(), &mut new.connect());
        let sentinel = Options::sentinel(&format!("sentinel monitor main 127.0.0.1 {} 1\n", old.port())).start();
        let at_sentinel = &mut sentinel.connect();
        let url = format!("redis://127.0.0.1:{}", sentinel.port());
        let limiter = Limiter::sentinel([url], "main")
            .deadline(Duration::from_secs(5))
            .nodes(1)
            .without_fleet()
            .connect()
            .await
            .unwrap();
        assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
        ask::<()>(at_sentinel, "SENTINEL REMOVE main");
        ask::<()>(at_sentinel, &format!("SENTINEL MONITOR main 127.0.0.1 {} 1", new.port()));
        ask::<()>(at_old, &format!("REPLICAOF 127.0.0.1 {}", new.port()));
        // What was learned a moment ago is not looked at again at once.
        sleep(Duration::from_millis(150)).await;
        let refused = errors(at_old, "READONLY");
        let decision = limiter.try_check(&counter(), "alice").await.unwrap();
        assert_eq!(decision.source, Source::Redis);
        assert_eq!(errors(at_old, "READONLY") - refused, 1, "the old primary was asked once more, and refused");
        assert_eq!(calls(at_new, "rl."), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_are_all_gone_do_not_matter_while_the_primary_answers() {
    patiently(async || {
        let primary = options().start();
        let sentinel = Options::sentinel(&format!("sentinel monitor main 127.0.0.1 {} 1\n", primary.port())).start();
        let url = format!("redis://127.0.0.1:{}", sentinel.port());
        let limiter = Limiter::sentinel([url], "main")
            .deadline(Duration::from_secs(5))
            .nodes(1)
            .without_fleet()
            .connect()
            .await
            .unwrap();
        assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
        drop(sentinel);
        for _ in 0..10 {
            assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
        }
    })
    .await;
}
