//! Several limits of one request, over real servers: all or nothing.

use std::time::Duration;

use redis_rl_client::{Check, ErrorKind, HOUR, Limiter, MINUTE, Outage, Policy, Rate, Source, Verdict};
use tokio::task::JoinSet;

use crate::answers::{builder_for, limiter_of};
use crate::support::{Cluster, Server, ask, calls, free_port, wait_until};

fn fixed(name: &str, limit: u64) -> Policy {
    Policy::fixed_window(name, limit, HOUR).unwrap()
}

fn bucket(name: &str, capacity: u64) -> Policy {
    Policy::token_bucket(name, capacity, Rate::per(1, 1_000 * HOUR)).unwrap()
}

async fn left(limiter: &Limiter, policy: &Policy, subject: &str) -> u64 {
    limiter.peek(policy, subject).await.unwrap().remaining.unwrap()
}

/// What each limit said alone.
fn said(verdict: &Verdict) -> Vec<Option<bool>> {
    verdict.decisions.iter().map(|decision| decision.as_ref().map(|decision| decision.allowed)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_one_subject_cost_one_call_and_take_all_or_nothing() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let queue = Policy::leaky_bucket("queue", 10, Rate::per(1, HOUR)).unwrap();
    let log = Policy::sliding_log("log", 10, HOUR).unwrap();
    let window = Policy::sliding_window("window", 10, HOUR).unwrap();
    let (requests, tokens) = (fixed("requests", 10), bucket("tokens", 1_000));
    let check = || {
        let all = [&requests, &tokens, &log, &window, &queue].map(|policy| Check::new(policy, "alice"));
        let [requests, tokens, log, window, queue] = all;
        limiter.check_all([requests, tokens.cost(400), log, window, queue])
    };
    for taken in 1..=2 {
        let verdict = check().await;
        assert!(verdict.allowed, "{verdict:?}");
        assert_eq!(verdict.decisions[0].as_ref().unwrap().remaining, Some(10 - taken));
        assert_eq!(&*verdict.decisive().unwrap().policy, "tokens", "the least is left of it");
        assert_eq!(verdict.delay() > Duration::ZERO, taken > 1, "{verdict:?}");
    }
    let denied = check().await;
    assert_eq!(said(&denied), [Some(true), Some(false), Some(true), Some(true), Some(true)]);
    assert_eq!((denied.allowed, denied.is_unavailable()), (false, false));
    assert!(denied.retry_after() > Some(HOUR));
    assert_eq!(&*denied.decisive().unwrap().policy, "tokens");
    let redis = &mut server.connect();
    assert_eq!((calls(redis, "rl.multi"), calls(redis, "rl.")), (3, 3), "one call each");
    for policy in [&requests, &log, &window, &queue] {
        assert_eq!(left(&limiter, policy, "alice").await, 8, "{}", policy.name());
    }
    assert_eq!(left(&limiter, &tokens, "alice").await, 200);
    let again = check().await;
    assert_eq!(said(&again), [None, Some(false), None, None, None]);
    assert_eq!(again.decisive().unwrap().source, Source::DenyCache, "going on costs no calls");
    // What costs nothing denies nothing.
    let looks = limiter.check_all([Check::new(&requests, "alice"), Check::new(&fixed("zero", 0), "alice").cost(0)]);
    assert!(looks.await.allowed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_subjects_limit_gives_back_and_exactly_so_under_64_callers() {
    let server = Server::new();
    let (limiter, other) = (limiter_of(&server), limiter_of(&server));
    let (second, day, site) = (fixed("second", 1_000), bucket("day", 100), fixed("site", 60));
    let mut callers = JoinSet::new();
    for number in 0..64 {
        let limiter = if number % 2 == 0 { limiter.clone() } else { other.clone() };
        let (second, day, site) = (second.clone(), day.clone(), site.clone());
        callers.spawn(async move {
            let mut allowed = 0;
            for _ in 0..5 {
                let subject = format!("user {}", number % 4);
                let all = [Check::new(&second, &subject), Check::new(&day, &subject).cost(5), Check::new(&site, "all")];
                allowed += u64::from(limiter.check_all(all).await.allowed);
            }
            allowed
        });
    }
    let allowed: u64 = callers.join_all().await.into_iter().sum();
    // Of 320 requests 80 of each user; each user's bucket allows 20, all four 80, and the site 60. While a denied one holds the last of the
    // site's for a moment, another may be denied too.
    eprintln!("  {allowed} of 60 were allowed");
    assert!((40..=60).contains(&allowed), "{allowed}");
    let mut sums = (0, 0, 0);
    wait_until("what was taken elsewhere is given back", || {
        let redis = &mut server.connect();
        let used = |key: &str| -> i64 {
            let peeked: Option<Vec<i64>> = ask(redis, &format!("RL.PEEK {key}"));
            peeked.map_or(0, |five| five[1] - five[2])
        };
        let mut used = used;
        let users = ["user%200", "user%201", "user%202", "user%203"];
        let seconds: i64 = users.iter().map(|user| used(&format!("rl:{{{user}}}:second"))).sum();
        let days: i64 = users.iter().map(|user| used(&format!("rl:{{{user}}}:day"))).sum();
        sums = (seconds, days, used("rl:{all}:site"));
        let allowed = allowed as i64;
        sums == (allowed, 5 * allowed, allowed)
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_a_subjects_limits_are_one_call_to_one_slot_beside_a_limit_of_the_site() {
    let cluster = Cluster::of(3);
    let limiter = Limiter::cluster(cluster.addresses()).deadline(Duration::from_secs(10)).without_fleet();
    let limiter = limiter.connect().await.unwrap();
    let (second, day, site) = (fixed("second", 3), bucket("day", 100), fixed("site", 25));
    let mut allowed = 0;
    for number in 0..40 {
        let subject = format!("user {}", number % 10);
        let all = [Check::new(&site, "all"), Check::new(&second, &subject), Check::new(&day, &subject)];
        allowed += u32::from(limiter.check_all(all).await.allowed);
    }
    assert_eq!(allowed, 25, "of 40 requests the users' limits allow 30 and the site's 25");
    let of_all = |command: &str| -> u64 { cluster.connections().iter_mut().map(|node| calls(node, command)).sum() };
    assert_eq!(cluster.errors("CROSSSLOT"), 0);
    assert!(of_all("rl.multi") <= 40 && of_all("rl.multi") >= 25, "{} calls", of_all("rl.multi"));
    assert_eq!(left(&limiter, &site, "all").await, 0);
}

#[tokio::test]
async fn in_an_outage_each_limit_is_decided_by_its_own_policy_and_what_the_others_took_comes_back() {
    let builder = Limiter::builder(format!("redis://127.0.0.1:{}", free_port())).nodes(1).without_fleet();
    let limiter = builder.on_outage(Outage::LocalShare).connect_lazy().unwrap();
    let (ten, three) = (fixed("ten", 10), fixed("three", 3));
    let closed = fixed("closed", 10).on_outage(Outage::Closed);
    let mut allowed = 0;
    for _ in 0..9 {
        allowed += u32::from(limiter.check_all([Check::new(&ten, "a"), Check::new(&three, "a")]).await.allowed);
    }
    assert_eq!(allowed, 3);
    let verdict = limiter.check_all([Check::new(&ten, "a"), Check::new(&closed, "a")]).await;
    assert!(!verdict.allowed && verdict.is_unavailable(), "{verdict:?}");
    for _ in 0..7 {
        assert!(limiter.check_all([Check::new(&ten, "a"), Check::new(&ten, "b")]).await.allowed);
    }
    assert!(!limiter.check_all([Check::new(&ten, "a")]).await.allowed, "3 and 7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_of_one_limit_is_not_one_of_the_others() {
    let server = Server::new();
    let limiter = builder_for(&server).on_fault(Outage::Open).connect_lazy().unwrap();
    ask::<()>(&mut server.connect(), "SET rl:{alice}:broken x");
    let (fine, broken) = (fixed("fine", 2), fixed("broken", 2));
    let check = async || limiter.check_all([Check::new(&fine, "alice"), Check::new(&broken, "alice")]).await;
    assert!(check().await.allowed && check().await.allowed);
    let denied = check().await;
    assert_eq!(said(&denied), [Some(false), Some(true)], "the fault opened a limit that works");
    assert_eq!(limiter.try_check(&broken, "alice").await.unwrap_err().kind(), ErrorKind::WrongType);
}

#[tokio::test(start_paused = true)]
async fn in_memory_it_is_all_or_nothing_too() {
    let limiter = Limiter::in_memory();
    let (ten, three) = (fixed("ten", 10), fixed("three", 3));
    let queue = Policy::leaky_bucket("queue", 5, Rate::per(1, MINUTE)).unwrap();
    let log = Policy::sliding_log("log", 10, HOUR).unwrap();
    let all = [&ten, &queue, &log, &three];
    for round in 1..=5 {
        let verdict = limiter.check_all(all.map(|policy| Check::new(policy, "a"))).await;
        assert_eq!(verdict.allowed, round <= 3);
        if round > 3 {
            assert_eq!(said(&verdict), [Some(true), Some(true), Some(true), Some(false)]);
            assert_eq!(verdict.decisions[0].as_ref().unwrap().remaining, Some(7), "nothing is taken");
        }
    }
    assert_eq!((left(&limiter, &queue, "a").await, left(&limiter, &log, "a").await), (2, 7));
}
