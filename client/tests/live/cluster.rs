//! A cluster whose slots move and whose primaries fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis_rl_client::{DAY, Limiter, Outage, Policy, Source};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::load::{DEADLINE, Load, alone, assert_exact, counter, patiently};
use crate::support::{Cluster, ask};

/// What is judged here is who is asked, so a server may be slow for once.
const PATIENCE: Duration = DEADLINE.saturating_mul(4);
const A_WHILE: Duration = Duration::from_millis(500);

/// All that the client needs in a cluster, and `CLIENT`, by which the driver says its name from Redis 7.2 on: it may be missing, but is counted.
const PERMISSIONS: &str = "ACL SETUSER api on >secret ~rl:* -@all +rl.fixed +cluster|slots +asking +ping +client";

fn limiter_of(cluster: &Cluster) -> Limiter {
    let builder = Limiter::cluster(cluster.addresses());
    builder.deadline(PATIENCE).on_outage(Outage::Closed).nodes(1).without_fleet().connect_lazy().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_under_load_costs_no_decision_and_no_call_is_counted_twice() {
    patiently(async || {
        let cluster = Cluster::of(3);
        let _alone = alone().await;
        for redis in &mut cluster.connections() {
            ask::<()>(redis, PERMISSIONS);
        }
        let addresses = cluster.addresses().into_iter().map(|url| url.replace("redis://", "redis://api:secret@"));
        let builder = Limiter::cluster(addresses);
        let limiter = builder.deadline(Duration::from_secs(5)).nodes(1).without_fleet().connect().await.unwrap();
        // Several keys of one subject: they share the slot, and move one by one.
        let policies: Vec<Policy> =
            (0..5).map(|number| Policy::fixed_window(&format!("p{number}"), 100, 36_500 * DAY).unwrap()).collect();
        let key = "rl:{alice}:p0";
        let (slot, from) = (cluster.slot_of(key), cluster.primary_of(key));
        let to = (from + 1) % 3;
        assert_eq!((cluster.errors("MOVED"), cluster.errors("ASK")), (0, 0));
        let load = tokio::spawn({
            let (limiter, policies) = (limiter.clone(), policies.clone());
            async move {
                let (mut checks, mut due) = (JoinSet::new(), interval(Duration::from_millis(5)));
                for number in 0..800 {
                    due.tick().await;
                    let (limiter, policy) = (limiter.clone(), policies[number % policies.len()].clone());
                    checks.spawn(async move { limiter.try_check(&policy, "alice").await });
                }
                checks.join_all().await
            }
        });
        sleep(A_WHILE).await;
        cluster.move_slot(slot, from, to, Duration::from_millis(100));
        let decisions = load.await.unwrap();
        let mut admitted = [0; 5];
        for decision in decisions {
            let decision = decision.unwrap_or_else(|error| panic!("an error reached the caller: {error}"));
            assert!(matches!(decision.source, Source::Redis | Source::DenyCache), "{decision:?}");
            let policy = policies.iter().position(|policy| *policy.name() == *decision.policy).unwrap();
            admitted[policy] += u32::from(decision.allowed);
        }
        assert_eq!(admitted, [100; 5]);
        let (moved, asked) = (cluster.errors("MOVED"), cluster.errors("ASK"));
        eprintln!("  {moved} times MOVED, {asked} times ASK");
        assert!(moved > 0 && asked > 0, "{moved} times MOVED, {asked} times ASK");
        assert_eq!(cluster.errors("NOPERM"), 0, "the user lacks nothing");
        // What was learned is remembered.
        for _ in 0..20 {
            limiter.try_check(&counter(), "alice").await.unwrap();
        }
        assert_eq!(cluster.errors("MOVED"), moved);
    })
    .await;
}

/// How a primary goes.
#[derive(Clone, Copy)]
enum End {
    Killed,
    Stopped,
}

async fn a_shard_fails_over(end: End) {
    let mut cluster = Cluster::with_replicas(3);
    let _alone = alone().await;
    let limiter = limiter_of(&cluster);
    let shards: Vec<usize> = (0..30).map(|number| cluster.primary_of(&format!("rl:{{{number}}}:counter"))).collect();
    let of = move |subject: &str| shards[subject.parse::<usize>().unwrap()];
    let failing = 1;
    let load = Load::of(&limiter, &counter(), |number| (number % 30).to_string());
    let errors = Arc::new(Mutex::new(Vec::new()));
    let asking = tokio::spawn({
        let (limiter, errors) = (limiter.clone(), Arc::clone(&errors));
        async move {
            for number in 0.. {
                let checked = limiter.try_check(&counter(), format!("another {}", number % 30)).await;
                errors.lock().unwrap().extend(checked.err());
                sleep(Duration::from_millis(5)).await;
            }
        }
    });
    sleep(A_WHILE).await;
    match end {
        End::Killed => cluster.node(failing).kill(),
        End::Stopped => cluster.node(failing).stop(),
    }
    let began = Instant::now();
    cluster.wait_for_failover_of(failing);
    let promoted = Instant::now();
    eprintln!("  the replica took over after {:.0?}", promoted - began);
    sleep(2 * A_WHILE + Duration::from_millis(500)).await;
    // For the old primary, too, is asked who serves what.
    match end {
        End::Killed => cluster.node(failing).revive(),
        End::Stopped => cluster.node(failing).cont(),
    }
    let old_is_back = Instant::now();
    sleep(A_WHILE).await;
    let report = load.end().await;
    asking.abort();
    for error in errors.lock().unwrap().iter() {
        assert!(error.is_outage() && !error.to_string().contains("MOVED"), "{error}");
    }
    for record in report.since(report.began() + A_WHILE / 2) {
        let is_of_others = of(&record.subject) != failing;
        assert!(!is_of_others || record.decision.source == Source::Redis, "another shard noticed: {record:?}");
    }
    let of_it = report.between(began + PATIENCE, promoted - PATIENCE).filter(|record| of(&record.subject) == failing);
    for record in of_it {
        assert!(record.decision.is_unavailable(), "{record:?}");
    }
    report.assert_recovered(promoted);
    for record in report.since(old_is_back) {
        assert_eq!(record.decision.source, Source::Redis, "{record:?}");
    }
    assert_exact(&limiter).await;
    report.assert_charged_once(&limiter, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_killed_is_followed_by_its_replica_and_other_shards_do_not_notice() {
    patiently(async || {
        a_shard_fails_over(End::Killed).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_hangs_is_followed_by_its_replica_and_other_shards_do_not_notice() {
    patiently(async || {
        a_shard_fails_over(End::Stopped).await;
    })
    .await;
}
