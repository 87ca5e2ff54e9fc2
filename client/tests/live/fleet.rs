//! How many servers there are, as they learn it from Redis: those that come, those that go, and what they admit together without it.

use std::time::Duration;

use redis_rl_client::{ErrorKind, Limiter, Outage, Policy, Rate, SECOND, Source};
use tokio::time::{Instant, sleep};

use crate::answers::{builder_for, limiter_of};
use crate::load::{DEADLINE, counter, patiently};
use crate::processes::{process, report, reported, task};
use crate::support::{Server, ask, calls, wait_until};

/// No multiple of the number of nodes.
const LIMIT: u64 = 1_003;
const RATE: u64 = 20;
/// So soon the others know who has gone.
const KNOWN: Duration = Duration::from_secs(3);

/// So many are there, by what Redis knows.
fn nodes(server: &Server, fleet: &str) -> i64 {
    let told: Vec<i64> = ask(&mut server.connect(), &format!("RL.LEASE rl:{{fleet:{fleet}}} 1024 1 nobody 1 0 0 1"));
    told[5]
}

/// What a process of the fleet does: is there, and once Redis is not, admits what it may for a second.
fn be_a_node(port: &str) {
    let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).deadline(DEADLINE);
    let limiter = builder.on_outage(Outage::LocalShare).connect_lazy().unwrap();
    let policy = Policy::token_bucket("bucket", LIMIT, Rate::per_second(RATE)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut was_there = false;
        loop {
            match limiter.try_check(&counter(), "alice").await {
                Ok(_) => was_there = true,
                Err(error) if was_there && error.kind() == ErrorKind::BreakerOpen => break,
                Err(_) => {}
            }
            sleep(Duration::from_millis(20)).await;
        }
        let (began, mut last_asked, mut admitted) = (Instant::now(), Duration::ZERO, 0);
        while last_asked < SECOND {
            last_asked = began.elapsed();
            for _ in 0..20 {
                let decision = limiter.check(&policy, "alice").await;
                assert_eq!(decision.source, Source::Fallback(Outage::LocalShare), "{decision:?}");
                admitted += u64::from(decision.allowed);
            }
            sleep(Duration::from_millis(5)).await;
        }
        report(&format!("{admitted} {}", last_asked.as_millis()));
    });
}

#[test]
fn four_processes_of_five_admit_the_limit_together_three_seconds_after_one_was_killed() {
    if let Some(task) = task() {
        return be_a_node(&task);
    }
    let mut server = Server::new();
    let mut processes: Vec<_> = (0..5).map(|_| process(&server.port().to_string())).collect();
    wait_until("five are there", || nodes(&server, "default") == 5);
    // Each says so once a second.
    std::thread::sleep(SECOND);
    let mut killed = processes.remove(2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::thread::sleep(KNOWN);
    assert_eq!(nodes(&server, "default"), 4);
    server.kill();
    let (mut sum, mut flowed) = (0.0, 0.0);
    for process in processes {
        let line = reported(process);
        let (admitted, millis) = line.split_once(' ').unwrap();
        sum += admitted.parse::<f64>().unwrap();
        flowed += millis.parse::<f64>().unwrap() / 1_000.0 * RATE as f64 / 4.0;
    }
    let expected = LIMIT as f64 + flowed;
    eprintln!("  four that know to be four admitted {sum} where {expected:.0} were to be");
    assert!((sum / expected - 1.0).abs() <= 0.1, "{sum} were admitted where {expected:.0} were to be");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_is_counted_and_who_leaves_is_not_and_fleets_are_apart() {
    patiently(async || {
        let server = Server::new();
        let of = |fleet: &str| builder_for(&server).fleet(fleet).connect_lazy().unwrap();
        let (one, two, other) = (of("a"), of("a"), of("b"));
        assert_eq!(nodes(&server, "a"), 0, "nobody has asked for anything");
        for limiter in [&one, &two, &other] {
            let _ = limiter.check(&counter(), "alice").await;
        }
        wait_until("all are there", || nodes(&server, "a") == 2 && nodes(&server, "b") == 1);
        sleep(3 * SECOND).await;
        assert_eq!((nodes(&server, "a"), nodes(&server, "b")), (2, 1), "they go on saying so");
        let asked = calls(&mut server.connect(), "rl.lease");
        drop(two);
        let began = Instant::now();
        wait_until("one has left", || nodes(&server, "a") == 1);
        assert!(began.elapsed() < SECOND, "only its ttl told");
        eprintln!("  {asked} calls by three in three seconds, ours included");
        drop((one, other));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limiter_without_a_fleet_says_nothing() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let _ = limiter.check(&counter(), "alice").await;
    sleep(SECOND / 2).await;
    assert_eq!(calls(&mut server.connect(), "rl.lease"), 0);
    let odd = builder_for(&server).fleet("no braces {}").connect_lazy().unwrap_err();
    assert!(odd.to_string().contains("a fleet's name"), "{odd}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_say_that_it_is_there_decides_all_the_same() {
    let server = Server::new();
    ask::<()>(&mut server.connect(), "ACL SETUSER api on >secret +rl.fixed +ping ~rl:*");
    let url = format!("redis://api:secret@127.0.0.1:{}", server.port());
    let limiter = Limiter::builder(url).deadline(5 * SECOND).connect_lazy().unwrap();
    for _ in 0..10 {
        assert_eq!(limiter.check(&counter(), "alice").await.source, Source::Redis);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(nodes(&server, "default"), 0);
}
