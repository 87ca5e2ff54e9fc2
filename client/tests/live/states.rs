//! Servers that are there and do not decide: which of it is an outage, which is a fault, and what the caller is told.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use redis_rl_client::{DAY, Decision, ErrorKind, Limiter, Outage, Policy, Source};
use tokio::time::{Instant, sleep};

use crate::load::{RECOVERY, counter};
use crate::support::{Cluster, Options, Server, ask, free_port, info, replica_of, send, wait_until};

/// All is allowed in an outage, so that a fault that is taken for one shows.
fn limiter_at(url: impl Into<String>) -> Limiter {
    let builder = Limiter::builder(url).deadline(Duration::from_secs(1));
    builder.on_outage(Outage::Open).nodes(1).without_fleet().connect_lazy().unwrap()
}

fn limiter_of(server: &Server) -> Limiter {
    limiter_at(format!("redis://127.0.0.1:{}", server.port()))
}

/// The outage policy decides, and who asks why is told in the server's words.
async fn assert_outage(limiter: &Limiter, subject: &str, words: &str) {
    let error = limiter.try_check(&counter(), subject).await.unwrap_err();
    assert_eq!((error.kind(), error.is_outage()), (ErrorKind::Unavailable, true), "{error}");
    assert!(error.to_string().starts_with(words), "{error}");
    let decision = limiter.check(&counter(), subject).await;
    assert_eq!((decision.allowed, decision.source), (true, Source::Fallback(Outage::Open)), "{words}: {decision:?}");
}

/// It is decided closed, and who asks why is told in the server's words.
async fn assert_fault(limiter: &Limiter, subject: &str, kind: ErrorKind, words: &str) {
    let error = limiter.try_check(&counter(), subject).await.unwrap_err();
    assert_eq!((error.kind(), error.is_outage()), (kind, false), "{error}");
    assert!(error.to_string().starts_with(words), "{error}");
    let decision = limiter.check(&counter(), subject).await;
    assert!(decision.is_unavailable(), "{words}: {decision:?}");
}

async fn decided(limiter: &Limiter, subject: &str) -> Decision {
    let decision = limiter.check(&counter(), subject).await;
    assert_eq!(decision.source, Source::Redis, "{decision:?}");
    decision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loads_its_data_is_out_until_it_has() {
    let options = Options::new().set("key-load-delay", "1000").set("loading-process-events-interval-bytes", "1024");
    let mut server = options.start();
    let limiter = limiter_of(&server);
    decided(&limiter, "alice").await;
    let redis = &mut server.connect();
    ask::<()>(redis, "DEBUG POPULATE 1000 key 100");
    ask::<()>(redis, "SAVE");
    server.kill();
    server.revive_without_waiting();
    let mut seen = false;
    let give_up = Instant::now() + Duration::from_secs(20);
    while !seen {
        assert!(Instant::now() < give_up, "no LOADING was seen");
        let answer = limiter.try_check(&counter(), "alice").await;
        seen = answer.is_err_and(|error| error.is_outage() && error.to_string().starts_with("LOADING"));
    }
    assert_outage(&limiter, "alice", "LOADING").await;
    wait_until("the data are loaded", || send::<String>(&mut server.connect(), "PING").is_ok());
    assert_eq!(decided(&limiter, "alice").await.remaining, Some(1_000_000_000 - 2), "the first check was kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_memory_goes_on_with_the_keys_that_it_has() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    decided(&limiter, "alice").await;
    let redis = &mut server.connect();
    ask::<()>(redis, "DEBUG POPULATE 1000 data 1000");
    ask::<()>(redis, "CONFIG SET maxmemory 1mb");
    for _ in 0..30 {
        decided(&limiter, "alice").await;
        assert_outage(&limiter, "bob", "OOM").await;
        // 60 refusals in all, spread over more than a pause: the breaker minds only what is not answered.
        sleep(Duration::from_millis(5)).await;
    }
    ask::<()>(redis, "CONFIG SET maxmemory 0");
    decided(&limiter, "bob").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_can_not_save_is_out() {
    let server = Options::new().set("save", "3600 1").start();
    let limiter = limiter_of(&server);
    decided(&limiter, "alice").await;
    let redis = &mut server.connect();
    std::fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    ask::<()>(redis, "BGSAVE");
    wait_until("the save has failed", || info(redis, "persistence", "rdb_last_bgsave_status") == Some("err".into()));
    assert_outage(&limiter, "alice", "MISCONF").await;
    ask::<()>(redis, "CONFIG SET stop-writes-on-bgsave-error no");
    decided(&limiter, "alice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_lost_its_replicas_is_out() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    decided(&limiter, "alice").await;
    let redis = &mut server.connect();
    ask::<()>(redis, "CONFIG SET min-replicas-to-write 1");
    assert_outage(&limiter, "alice", "NOREPLICAS").await;
    ask::<()>(redis, "CONFIG SET min-replicas-to-write 0");
    decided(&limiter, "alice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_out_until_it_is_a_primary() {
    let primary = Server::new();
    let replica = replica_of(&primary, Options::new());
    let limiter = limiter_of(&replica);
    assert_outage(&limiter, "alice", "READONLY").await;
    let redis = &mut replica.connect();
    ask::<()>(redis, "CONFIG SET replica-serve-stale-data no");
    drop(primary);
    wait_until("the link is down", || info(redis, "replication", "master_link_status") == Some("down".into()));
    let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    ask::<()>(redis, "REPLICAOF NO ONE");
    decided(&limiter, "alice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_runs_a_script_without_end_is_out() {
    let server = Options::new().set("lua-time-limit", "20").start();
    let limiter = limiter_of(&server);
    decided(&limiter, "alice").await;
    let mut busy = server.connect();
    let script = std::thread::spawn(move || {
        redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut busy).unwrap_err();
    });
    let redis = &mut server.connect();
    wait_until("the server is busy", || send::<()>(redis, "GET x").is_err());
    assert_outage(&limiter, "alice", "BUSY").await;
    ask::<()>(redis, "SCRIPT KILL");
    script.join().unwrap();
    decided(&limiter, "alice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_more_connections_is_out() {
    let server = Options::new().set("requirepass", "").start();
    let redis = &mut server.connect();
    ask::<()>(redis, "CONFIG SET maxclients 1");
    ask::<()>(redis, "ACL SETUSER guard on >secret ~* +@all");
    // With a password too: an error to the login is no reason to believe that the password is wrong.
    for login in ["", "guard:secret@"] {
        let limiter = limiter_at(format!("redis://{login}127.0.0.1:{}", server.port()));
        let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
        assert!(error.is_outage(), "{login:?}: {error}");
        let decision = limiter.check(&counter(), "alice").await;
        assert_eq!(decision.source, Source::Fallback(Outage::Open), "{login:?}");
        ask::<()>(redis, "CONFIG SET maxclients 100");
        let asked_again = Instant::now();
        wait_until("connections are taken again", || info(redis, "clients", "maxclients") == Some("100".into()));
        while limiter.check(&counter(), "alice").await.source != Source::Redis {
            assert!(asked_again.elapsed() < RECOVERY, "not asked again");
            sleep(Duration::from_millis(10)).await;
        }
        drop(limiter);
        wait_until("its connection is closed", || info(redis, "clients", "connected_clients") == Some("1".into()));
        ask::<()>(redis, "CONFIG SET maxclients 1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_a_cluster_without_slots_is_out() {
    let server = Options::new().set("cluster-enabled", "yes").start();
    let url = format!("redis://127.0.0.1:{}", server.port());
    assert_outage(&limiter_at(&url), "alice", "CLUSTERDOWN").await;
    let cluster =
        Limiter::cluster([url]).deadline(Duration::from_secs(1)).on_outage(Outage::Open).nodes(1).without_fleet();
    let limiter = cluster.connect_lazy().unwrap();
    assert_outage(&limiter, "alice", "127.0.0.1").await;
    ask::<()>(&mut server.connect(), "CLUSTER ADDSLOTSRANGE 0 16383");
    wait_until("the cluster is up", || send::<()>(&mut server.connect(), "SET x y").is_ok());
    // The next call starts a look, and does not wait for it.
    drop(limiter.check(&counter(), "alice").await);
    sleep(Duration::from_millis(150)).await;
    decided(&limiter, "alice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_another_type_is_a_fault_of_that_key() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let redis = &mut server.connect();
    ask::<()>(redis, "RPUSH rl:{alice}:counter x");
    assert_fault(&limiter, "alice", ErrorKind::WrongType, "WRONGTYPE").await;
    decided(&limiter, "bob").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_right_server_refuses_is_no_reason_to_ask_who_serves_it() {
    let cluster = Cluster::of(1);
    let redis = &mut cluster.connections()[0];
    let builder = Limiter::cluster(cluster.addresses()).deadline(Duration::from_secs(5));
    let limiter = builder.nodes(1).without_fleet().connect().await.unwrap();
    for (kind, change) in [
        (ErrorKind::WrongType, "RPUSH rl:{alice}:counter x"),
        (ErrorKind::Unavailable, "CONFIG SET maxmemory 1"),
        (ErrorKind::NotPermitted, "ACL SETUSER default -rl.fixed"),
    ] {
        ask::<()>(redis, change);
        let subject = if kind == ErrorKind::WrongType { "alice" } else { "bob" };
        let before = crate::support::calls(redis, "cluster|slots");
        for _ in 0..30 {
            let error = limiter.try_check(&counter(), subject).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(crate::support::calls(redis, "cluster|slots"), before, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_is_a_fault() {
    let server = Server::new();
    let redis = &mut server.connect();
    ask::<()>(redis, "ACL SETUSER limited on >secret ~* +ping");
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port());
    assert_fault(&limiter_at(url("limited:secret@")), "alice", ErrorKind::NotPermitted, "NOPERM").await;
    let wrong = limiter_at(url("limited:guess@"));
    assert_fault(&wrong, "alice", ErrorKind::NotPermitted, "WRONGPASS invalid username-password pair").await;
    ask::<()>(redis, "CONFIG SET requirepass hidden");
    assert_fault(&limiter_at(url("")), "alice", ErrorKind::NotPermitted, "NOAUTH").await;
    decided(&limiter_at(url(":hidden@")), "alice").await;
    decided(&limiter_at(url("default:hidden@")), "alice").await;

    let connections =
        |redis: &mut _| -> u64 { info(redis, "stats", "total_connections_received").unwrap().parse().unwrap() };
    let before = connections(redis);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) {
        limiter_assert_denied(&wrong).await;
    }
    let attempts = connections(redis) - before;
    assert!((1..=4).contains(&attempts), "{attempts} attempts to log in within half a second");
    ask::<()>(redis, "ACL SETUSER limited >guess +@all");
    let mended = Instant::now();
    while wrong.check(&counter(), "alice").await.source != Source::Redis {
        assert!(mended.elapsed() < RECOVERY + Duration::from_millis(500), "no further attempt");
        sleep(Duration::from_millis(10)).await;
    }
}

async fn limiter_assert_denied(limiter: &Limiter) {
    let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPermitted, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_does_not_exist_is_a_fault() {
    let server = Server::new();
    let limiter = limiter_at(format!("redis://127.0.0.1:{}/99", server.port()));
    assert_fault(&limiter, "alice", ErrorKind::Rejected, "ERR").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_the_module_is_a_fault() {
    let server = Options::new().module(None).start();
    let limiter = limiter_of(&server);
    assert_fault(&limiter, "alice", ErrorKind::NoModule, "ERR unknown command").await;
    let module = crate::support::module("redis_rl");
    ask::<()>(&mut server.connect(), &format!("MODULE LOAD {}", module.display()));
    decided(&limiter, "alice").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_a_cluster_given_as_the_only_server_is_a_fault() {
    let cluster = Cluster::of(2);
    let subject = (0..).map(|number| number.to_string());
    let of = |index| {
        subject.clone().find(|subject| cluster.primary_of(&format!("rl:{{{subject}}}:counter")) == index).unwrap()
    };
    let limiter = limiter_at(cluster.addresses()[0].as_str());
    decided(&limiter, &of(0)).await;
    assert_fault(&limiter, &of(1), ErrorKind::Rejected, "MOVED").await;
    let error = limiter.try_check(&counter(), &of(1)).await.unwrap_err();
    assert!(error.to_string().contains("Limiter::cluster"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_server_given_as_a_cluster_or_a_sentinel_is_a_fault() {
    let server = Server::new();
    let url = format!("redis://127.0.0.1:{}", server.port());
    let set_up = |builder: redis_rl_client::Builder| {
        builder
            .deadline(Duration::from_secs(1))
            .on_outage(Outage::Open)
            .nodes(1)
            .without_fleet()
            .connect_lazy()
            .unwrap()
    };
    let cluster = set_up(Limiter::cluster([&url]));
    assert_fault(&cluster, "alice", ErrorKind::Rejected, "ERR This instance has cluster support disabled").await;
    let sentinel = set_up(Limiter::sentinel([&url], "main"));
    assert_fault(&sentinel, "alice", ErrorKind::Rejected, "ERR unknown command 'SENTINEL'").await;
}

/// Answers whatever is said with the same words, and hangs up.
fn stranger(greeting: &'static [u8], answer: &'static [u8]) -> u16 {
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let Ok(mut stream) = stream else { return };
                let _ = stream.write_all(greeting);
                let _ = stream.read(&mut [0; 1_024]);
                let _ = stream.write_all(answer);
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_no_redis_is_a_fault() {
    let http = stranger(b"", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let mail = stranger(b"220 mail.example ESMTP\r\n", b"502 Error: command not recognized\r\n");
    for port in [http, mail] {
        let limiter = limiter_at(format!("redis://127.0.0.1:{port}"));
        // All at once: none is decided open because another found out first.
        let checks = (0..50).map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.check(&counter(), "alice").await })
        });
        for check in checks.collect::<Vec<_>>() {
            let decision = check.await.unwrap();
            assert!(decision.is_unavailable(), "{decision:?}");
        }
        let error = limiter.try_check(&counter(), "alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rejected, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_is_decided_as_it_was_set_up_to_be() {
    let server = Options::new().module(None).start();
    let builder = Limiter::builder(format!("redis://127.0.0.1:{}", server.port()));
    let limiter = builder.on_outage(Outage::Closed).on_fault(Outage::Open).connect_lazy().unwrap();
    let decision = limiter.check(&Policy::fixed_window("p", 1, DAY).unwrap(), "alice").await;
    assert_eq!((decision.allowed, decision.source), (true, Source::Fallback(Outage::Open)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_the_server_closed_while_it_was_idle_costs_no_decision() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let redis = &mut server.connect();
    decided(&limiter, "alice").await;
    for _ in 0..5 {
        let closed: u64 = ask(redis, "CLIENT KILL TYPE normal SKIPME yes");
        assert_eq!(closed, 1);
        sleep(Duration::from_millis(100)).await;
        decided(&limiter, "alice").await;
    }
}
