//! The nodes and sentinels that a limiter is set up with: some are silent, gone, or wrong.

use std::time::Duration;

use redis_rl_client::{Builder, ErrorKind, Limiter, Outage, Source};
use tokio::time::{Instant, sleep};

use crate::fake::FakeSentinel;
use crate::load::{DEADLINE, Load, alone, counter, patiently};
use crate::support::{Cluster, Options, Server, Silent, ask, free_port, wait_until};

/// What is judged here is who is asked, so a server may be slow for once.
const PATIENCE: Duration = Duration::from_secs(1);

async fn silent_seeds_hold_nobody_up(set_up: impl FnOnce(Vec<String>) -> Builder) {
    // To ask all of them takes longer than a failure is believed.
    let silents: [Silent; 5] = std::array::from_fn(|_| Silent::new());
    let urls = silents.iter().map(|silent| format!("redis://127.0.0.1:{}", silent.port())).collect();
    let limiter =
        set_up(urls).deadline(DEADLINE).on_outage(Outage::Closed).nodes(1).without_fleet().connect_lazy().unwrap();
    // Until all of them have been asked once nobody knows that it is in vain.
    let began = Instant::now();
    while limiter.try_check(&counter(), "alice").await.unwrap_err().to_string().contains("before it was known") {
        assert!(began.elapsed() < Duration::from_secs(5), "every call waits until its deadline");
    }
    let load = Load::on(&limiter);
    sleep(Duration::from_millis(2_500)).await;
    let report = load.end().await;
    let took: Vec<_> = report.since(report.began()).map(|record| record.took).collect();
    let waited = took.iter().filter(|took| **took >= DEADLINE - Duration::from_millis(5)).count();
    eprintln!("  {waited} of {} waited until the deadline", took.len());
    assert!(waited * 20 < took.len(), "{waited} of {} waited until the deadline", took.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_nodes_and_silent_sentinels_hold_nobody_up() {
    patiently(async || {
        let _alone = alone().await;
        let of_sentinel = |urls| Limiter::sentinel::<String>(urls, "main");
        tokio::join!(silent_seeds_hold_nobody_up(Limiter::cluster), silent_seeds_hold_nobody_up(of_sentinel));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_whose_name_nobody_knows_does_not_take_out_the_others() {
    patiently(async || {
        let cluster = Cluster::of(3);
        let nameless = 1;
        let mut connections = cluster.connections();
        for (index, connection) in connections.iter_mut().enumerate() {
            ask::<()>(connection, "CONFIG SET cluster-preferred-endpoint-type hostname");
            if index != nameless {
                ask::<()>(connection, "CONFIG SET cluster-announce-hostname 127.0.0.1");
            }
        }
        for connection in &mut connections {
            wait_until("all are known by their names, but for one", || {
                let told = format!("{:?}", ask::<redis::Value>(connection, "CLUSTER SLOTS"));
                told.matches("'?'").count() == 1 || told.matches("\"?\"").count() == 1
            });
        }
        let builder = Limiter::cluster(cluster.addresses()).deadline(PATIENCE).on_outage(Outage::Closed);
        let limiter = builder.nodes(1).without_fleet().connect().await.unwrap();
        let mut seen = [0; 3];
        for subject in (0..30).map(|number| number.to_string()) {
            let primary = cluster.primary_of(&format!("rl:{{{subject}}}:counter"));
            seen[primary] += 1;
            match limiter.try_check(&counter(), &subject).await {
                Ok(decision) => assert_eq!((decision.source, primary == nameless), (Source::Redis, false)),
                Err(error) => assert!(error.is_outage() && primary == nameless, "{error}"),
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    })
    .await;
}

/// Sees that it is a fault, whoever of the seeds is asked last.
async fn assert_always_a_fault(builder: Builder, kind: ErrorKind) {
    let limiter = builder.deadline(PATIENCE).on_outage(Outage::Open).nodes(1).without_fleet().connect_lazy().unwrap();
    for number in 0..40 {
        let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
        assert_eq!((error.kind(), error.is_outage()), (kind, false), "{number}: {error}");
        let decision = limiter.check(&counter(), "alice").await;
        assert!(decision.is_unavailable(), "{number}: {decision:?}");
        sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_a_fault_though_another_node_is_gone() {
    patiently(async || {
        let server = Options::new().set("cluster-enabled", "yes").start();
        let redis = &mut server.connect();
        ask::<()>(redis, "CLUSTER ADDSLOTSRANGE 0 16383");
        ask::<()>(redis, "CONFIG SET requirepass hidden");
        let url = |port| format!("redis://:guess@127.0.0.1:{port}");
        assert_always_a_fault(Limiter::cluster([url(server.port()), url(free_port())]), ErrorKind::NotPermitted).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_no_sentinel_knows_is_a_fault_though_another_sentinel_is_gone() {
    patiently(async || {
        let primary = Server::new();
        let sentinel = Options::sentinel(&format!("sentinel monitor main 127.0.0.1 {} 1\n", primary.port())).start();
        let urls = [sentinel.port(), free_port()].map(|port| format!("redis://127.0.0.1:{port}"));
        assert_always_a_fault(Limiter::sentinel(&urls, "mian"), ErrorKind::Rejected).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_disagree_do_not_make_calls_go_to_and_fro() {
    patiently(async || {
        let (old, new) = (Server::new(), Server::new());
        // What is left of the limit tells who decided.
        ask::<()>(&mut new.connect(), "RL.FIXED rl:{alice}:counter 1000000000 36500d 500000000");
        let sentinels = [new.port(), old.port(), new.port()].map(FakeSentinel::that_says);
        let urls: Vec<String> = sentinels.iter().map(FakeSentinel::url).collect();
        let builder = || Limiter::sentinel(&urls, "main").deadline(PATIENCE).nodes(1).without_fleet();
        // Each begins with any of the three.
        let limiters: Vec<Limiter> = (0..16).map(|_| builder().connect_lazy().unwrap()).collect();
        let mut asked = vec![Vec::new(); limiters.len()];
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            for (limiter, asked) in limiters.iter().zip(&mut asked) {
                let decision = limiter.try_check(&counter(), "alice").await.unwrap();
                asked.push(decision.remaining > Some(500_000_000));
            }
            sleep(Duration::from_millis(20)).await;
        }
        for asked in asked {
            let changes = asked.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 1, "{changes} changes of the primary within three seconds");
        }
    })
    .await;
}
