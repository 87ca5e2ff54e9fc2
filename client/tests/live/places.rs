//! Places for what goes on at the same time: given, kept, lost and given back, over real servers and processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis_rl_client::{ConcurrencyPolicy, Limiter, Outage, Policy, Source};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::answers::{builder_for, limiter_of};
use crate::load::patiently;
use crate::processes::{process, task};
use crate::support::{Server, ask, calls, wait_until};

const TTL: Duration = Duration::from_millis(600);

fn policy(limit: u64) -> ConcurrencyPolicy {
    Policy::concurrent("p", limit, TTL).unwrap()
}

/// So many units are held by what Redis knows.
fn held(server: &Server, subject: &str) -> i64 {
    let peeked: Option<Vec<i64>> = ask(&mut server.connect(), &format!("RL.PEEK rl:{{{subject}}}:p"));
    peeked.map_or(0, |five| five[1] - five[2])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_than_the_limit_go_on_at_once_and_all_have_their_turn() {
    let server = Server::new();
    let limiters = [limiter_of(&server), limiter_of(&server)];
    let (at_once, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let limiter = limiters[number % 2].clone();
        let (at_once, most) = (Arc::clone(&at_once), Arc::clone(&most));
        tasks.spawn(async move {
            loop {
                let Ok(place) = limiter.acquire(&policy(5), "alice").await else {
                    sleep(Duration::from_millis(1)).await;
                    continue;
                };
                assert_eq!(place.decision().source, Source::Redis);
                most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(2)).await;
                at_once.fetch_sub(1, Ordering::SeqCst);
                return place.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let most = most.load(Ordering::SeqCst);
    assert!((2..=5).contains(&most), "{most} at once");
    assert_eq!(held(&server, "alice"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_says_when_and_is_not_remembered() {
    let server = Server::new();
    let (limiter, other) = (limiter_of(&server), limiter_of(&server));
    let place = limiter.acquire_n(&policy(3), "alice", 2).await.unwrap();
    assert_eq!((place.decision().limit, place.decision().remaining), (3, Some(1)));
    let denied = other.acquire_n(&policy(3), "alice", 2).await.unwrap_err();
    assert_eq!((denied.allowed, denied.remaining, denied.source), (false, Some(1), Source::Redis));
    let wait = denied.retry_after.unwrap();
    assert!(Duration::ZERO < wait && wait <= TTL, "{wait:?}");
    place.release().await.unwrap();
    assert!(other.acquire_n(&policy(3), "alice", 2).await.is_ok(), "what was denied a moment ago is asked again");
    assert_eq!(other.acquire_n(&policy(3), "bob", 4).await.unwrap_err().retry_after, None, "never");
    for nothing in [0, 1 << 53] {
        let denied = other.acquire_n(&policy(3), "bob", nothing).await.unwrap_err();
        assert!(denied.is_unavailable(), "{denied:?}");
    }
    let shadow = policy(0).shadow();
    let tried = limiter.acquire(&shadow, "carol").await.unwrap();
    assert!(tried.decision().shadow_denied && tried.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_is_kept_beyond_the_ttl_and_given_back_when_its_guard_is_dropped() {
    patiently(async || {
        let server = Server::new();
        let (limiter, other) = (limiter_of(&server), limiter_of(&server));
        let place = limiter.acquire(&policy(1), "alice").await.unwrap();
        let began = Instant::now();
        while began.elapsed() < 3 * TTL {
            assert!(other.acquire(&policy(1), "alice").await.is_err(), "after {:?}", began.elapsed());
            assert!(place.is_held());
            sleep(TTL / 10).await;
        }
        let asked = calls(&mut server.connect(), "rl.concurrent") - 30;
        eprintln!("  about {asked} renewals in three ttls");
        drop(place);
        wait_until("it is given back", || held(&server, "alice") == 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_place_of_who_crashes_is_free_after_the_ttl_and_not_sooner() {
    if let Some(task) = task() {
        let limiter = Limiter::builder(format!("redis://127.0.0.1:{task}")).without_fleet().connect_lazy().unwrap();
        let _place = limiter.acquire(&policy(1), "alice").await.unwrap();
        crate::processes::report("held");
        sleep(Duration::from_secs(60)).await;
    }
    let server = Server::new();
    let limiter = limiter_of(&server);
    let mut holder = process(&server.port().to_string());
    wait_until("it holds the place", || held(&server, "alice") == 1);
    sleep(2 * TTL).await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    let killed = Instant::now();
    while limiter.acquire(&policy(1), "alice").await.is_err() {
        assert!(killed.elapsed() < TTL + Duration::from_secs(2), "it is not given back");
        sleep(Duration::from_millis(5)).await;
    }
    let after = killed.elapsed();
    eprintln!("  free again after {after:.0?}, the ttl is {TTL:?}");
    // It was renewed a third of the ttl ago at most, and another third is for a machine that has other things to do.
    assert!(after >= TTL / 3, "{after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_loses_a_place_is_told() {
    patiently(async || {
        let server = Server::new();
        let limiter = limiter_of(&server);
        let place = limiter.acquire(&policy(1), "alice").await.unwrap();
        timeout(TTL, place.lost()).await.expect_err("it is there");
        ask::<()>(&mut server.connect(), "DEL rl:{alice}:p");
        let deleted = Instant::now();
        timeout(TTL, place.lost()).await.expect("the next renewal finds out");
        eprintln!("  told after {:.0?}", deleted.elapsed());
        assert!(!place.is_held());
        assert_eq!(held(&server, "alice"), 0, "a renewal takes no new place");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_can_not_be_renewed_for_a_ttl_is_lost_and_one_that_can_in_time_is_not() {
    patiently(async || {
        let server = Server::new();
        let builder = builder_for(&server).deadline(Duration::from_millis(50));
        let limiter = builder.connect().await.unwrap();
        let place = limiter.acquire(&policy(1), "alice").await.unwrap();
        server.stop();
        sleep(TTL / 2).await;
        server.cont();
        timeout(2 * TTL, place.lost()).await.expect_err("it was renewed in time");
        server.stop();
        let stopped = Instant::now();
        timeout(2 * TTL, place.lost()).await.expect("nobody renews it");
        let after = stopped.elapsed();
        server.cont();
        assert!(!place.is_held());
        assert!((TTL / 2..=TTL + Duration::from_millis(100)).contains(&after), "told after {after:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_outage_the_policy_decides_and_redis_learns_of_it_later() {
    let mut server = Server::new();
    let builder = || builder_for(&server).deadline(Duration::from_millis(50)).nodes(2);
    let limiter = builder().on_outage(Outage::LocalShare).connect().await.unwrap();
    let first = limiter.acquire(&policy(6), "alice").await.unwrap();
    server.kill();
    let more = [limiter.acquire(&policy(6), "alice").await, limiter.acquire(&policy(6), "alice").await];
    let [second, third] = more.map(Result::unwrap);
    assert_eq!(second.decision().source, Source::Fallback(Outage::LocalShare));
    assert_eq!(second.decision().remaining, None);
    let denied = limiter.acquire(&policy(6), "alice").await.unwrap_err();
    assert_eq!(denied.source, Source::Fallback(Outage::LocalShare), "3 of 6 are this server's");
    assert!(denied.retry_after.is_some());
    drop(third);
    let third = limiter.acquire(&policy(6), "alice").await.expect("what is given back is free");
    let closed = policy(6).on_outage(Outage::Closed);
    assert!(limiter.acquire(&closed, "bob").await.unwrap_err().is_unavailable());
    let open = policy(0).on_outage(Outage::Open);
    assert!(limiter.acquire(&open, "bob").await.unwrap().is_held());
    server.revive();
    wait_until("Redis knows of those that it did not give", || held(&server, "alice") >= 2);
    assert!(second.is_held() && third.is_held());
    drop((first, second, third));
    wait_until("all is given back", || held(&server, "alice") == 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_up_before_the_reply_holds_nothing() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    drop(limiter.acquire(&policy(3), "alice").await.unwrap());
    wait_until("it is given back", || held(&server, "alice") == 0);
    server.stop();
    timeout(Duration::from_millis(50), limiter.acquire(&policy(3), "alice")).await.expect_err("the server is stopped");
    server.cont();
    wait_until("it was taken", || calls(&mut server.connect(), "rl.concurrent") == 2);
    wait_until("it is given back", || held(&server, "alice") == 0);
}

#[tokio::test]
async fn in_memory_the_guards_of_this_process_count() {
    let limiter = Limiter::in_memory();
    let first = limiter.acquire(&policy(2), "alice").await.unwrap();
    let second = limiter.acquire(&policy(2), "alice").await.unwrap();
    assert_eq!((second.decision().source, second.decision().remaining), (Source::Memory, Some(0)));
    assert!(limiter.acquire(&policy(2), "alice").await.is_err());
    assert!(limiter.acquire(&policy(2), "bob").await.is_ok());
    drop(first);
    let again = limiter.acquire(&policy(2), "alice").await.unwrap();
    again.release().await.unwrap();
    assert!(second.is_held());
    assert!(limiter.acquire_n(&policy(2), "alice", 3).await.unwrap_err().retry_after.is_none());
}
