//! Cases of the casebook (`tests/casebook`) that ask for a client: mistakes of others, by the number that they have there. RC-213's
//! other half, a Redis that comes and goes, is in `local_share`.

use std::time::Duration;

use redis_rl_client::{Decision, ErrorKind, Limiter, MINUTE, Outage, Policy, Rate, Source};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::answers::limiter_of;
use crate::load::RECOVERY;
use crate::processes::{in_processes, report, task};
use crate::support::{Clock, HOUR, NOON, Server, Silent, ask};

fn one_a_minute(capacity: u64) -> Policy {
    Policy::token_bucket("p", capacity, Rate::per(1, MINUTE)).unwrap()
}

/// A fixed window that does not end within the test.
fn window(limit: u64) -> Policy {
    Policy::fixed_window("p", limit, 36_500 * 24 * 60 * MINUTE).unwrap()
}

fn limiter(port: u16, outage: Outage, nodes: u32) -> Limiter {
    let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).deadline(Duration::from_millis(250));
    builder.on_outage(outage).nodes(nodes).without_fleet().connect_lazy().unwrap()
}

#[tokio::test]
async fn rc_115_a_limit_of_nothing_is_no_outage_that_opens() {
    let server = Server::new();
    let limiter = limiter(server.port(), Outage::Open, 1);
    let decision = limiter.check(&one_a_minute(0), "alice").await;
    assert_eq!((decision.allowed, decision.source, decision.retry_after), (false, Source::Redis, None));
    // Nor is it one unit for each server while Redis is away.
    let share = self::limiter(Silent::new().port(), Outage::LocalShare, 4);
    assert!(!share.check(&one_a_minute(0), "alice").await.allowed);
}

#[test]
fn rc_126_clients_with_clocks_of_their_own_are_told_the_servers_time() {
    if let Some(port) = task() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limiter = limiter(port.parse().unwrap(), Outage::Closed, 1);
        let decision = runtime.block_on(limiter.check(&one_a_minute(10), "alice"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let wait = decision.retry_after.unwrap().as_secs();
        report(&format!("{} {:?} {wait} {}", decision.allowed, decision.source, now.as_secs()));
        return;
    }
    let server = Server::new();
    let redis = &mut server.connect();
    for _ in 0..10 {
        assert_eq!(crate::support::decide(redis, "RL.TOKENBUCKET rl:{alice}:p 10 1/60s")[0], 1);
    }
    for offset in [0, 60 * 1_000_000, -60 * 1_000_000, 1_000 * HOUR] {
        let folder = TempDir::new().unwrap();
        let mut clock = Clock::new(folder.path());
        clock.set(NOON + offset);
        let told = in_processes(1, &server.port().to_string(), |command| {
            command.envs(clock.environment());
        });
        let told: Vec<&str> = told[0].split(' ').collect();
        assert_eq!(told[3], ((NOON + offset) / 1_000_000).to_string(), "the clock of the client");
        assert_eq!(told[..2], ["false", "Redis"], "{offset} µs apart");
        assert!((50..=60).contains(&told[2].parse::<u64>().unwrap()), "a wait of {} s", told[2]);
    }
}

#[tokio::test]
async fn rc_153_nobodys_name_is_a_name_like_others_and_nobody_else_has_it() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    assert!(limiter.check(&one_a_minute(1), "").await.allowed);
    assert!(!limiter.check(&one_a_minute(1), "").await.allowed);
    for other in ["other", "%", "{}", " "] {
        assert_eq!(limiter.check(&one_a_minute(1), other).await.remaining, Some(0), "{other:?}");
    }
}

#[tokio::test]
async fn rc_175_a_check_whose_reply_is_lost_counts_once() {
    let server = Server::new();
    let limiter = limiter(server.port(), Outage::Closed, 1);
    assert_eq!(limiter.check(&window(10), "alice").await.remaining, Some(9));
    server.stop();
    assert_eq!(limiter.try_check(&window(10), "alice").await.unwrap_err().kind(), ErrorKind::Deadline);
    server.cont();
    assert_eq!(limiter.check(&window(10), "alice").await.remaining, Some(7));
    assert_eq!(crate::support::calls(&mut server.connect(), "rl."), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rc_184_ten_thousand_checks_at_once_get_each_its_own_reply() {
    let server = Server::new();
    let builder = Limiter::builder(format!("redis://127.0.0.1:{}", server.port())).nodes(1).without_fleet();
    let limiter = builder.deadline(Duration::from_secs(30)).connect().await.unwrap();
    let checks: Vec<_> = (0..10_000)
        .map(|number: u64| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let decision = limiter.check(&one_a_minute(1_000), "alice").await;
                // Between them calls whose replies look different: each must get its own.
                let other = limiter.check(&window(1_000_000 + number), &number.to_string()).await;
                assert_eq!((other.limit, other.remaining), (1_000_000 + number, Some(999_999 + number)));
                decision
            })
        })
        .collect();
    let mut remaining = Vec::new();
    for check in checks {
        let decision: Decision = check.await.unwrap();
        assert!(!decision.is_degraded(), "{decision:?}");
        remaining.extend(decision.allowed.then_some(decision.remaining.unwrap()));
    }
    remaining.sort_unstable();
    assert_eq!(remaining, (0..1_000).collect::<Vec<_>>());
    let denied = limiter.check(&one_a_minute(1_000), "alice").await;
    assert_eq!((denied.allowed, denied.remaining), (false, Some(0)));
}

#[tokio::test]
async fn rc_204_open_is_visible_closed_refuses_and_a_silent_server_delays_neither() {
    let mut dead = Server::new();
    dead.kill();
    let open = limiter(dead.port(), Outage::Open, 1).check(&window(10), "alice").await;
    assert_eq!((open.allowed, open.is_degraded(), open.remaining), (true, true, None));
    let closed = limiter(dead.port(), Outage::Closed, 1).check(&window(10), "alice").await;
    assert_eq!((closed.allowed, closed.is_degraded(), closed.is_unavailable()), (false, true, true));
    assert!(closed.retry_after >= Some(Duration::from_secs(1)), "{closed:?}");
    let silent = Silent::new();
    for outage in [Outage::Open, Outage::Closed] {
        let began = Instant::now();
        assert!(limiter(silent.port(), outage, 1).check(&window(10), "alice").await.is_degraded());
        let took = began.elapsed();
        eprintln!("  decided after {took:.1?} with a deadline of 250 ms");
        assert!(took < Duration::from_millis(2_500), "{took:?}");
    }
}

#[tokio::test]
async fn rc_205_no_number_is_made_up_where_the_server_answers_errors() {
    let server = Server::new();
    ask::<()>(&mut server.connect(), "RPUSH rl:{alice}:p x");
    let builder = Limiter::builder(format!("redis://127.0.0.1:{}", server.port())).nodes(1).without_fleet();
    let limiter = builder.on_outage(Outage::Open).on_fault(Outage::Open).connect_lazy().unwrap();
    for _ in 0..5 {
        let decision = limiter.check(&window(10), "alice").await;
        assert_eq!((decision.allowed, decision.source), (true, Source::Fallback(Outage::Open)));
        assert_eq!((decision.remaining, decision.reset_after), (None, None));
    }
}

#[tokio::test]
async fn rc_206_a_fleet_without_redis_does_not_multiply_the_limit() {
    let mut server = Server::new();
    server.kill();
    let fleet: Vec<Limiter> = (0..8).map(|_| limiter(server.port(), Outage::LocalShare, 8)).collect();
    let policy = window(80);
    let mut admitted = 0;
    for _ in 0..40 {
        for limiter in &fleet {
            admitted += u32::from(limiter.check(&policy, "alice").await.allowed);
        }
    }
    assert_eq!(admitted, 80);
    server.revive();
    sleep(RECOVERY).await;
    for number in 0..100 {
        admitted += u32::from(fleet[number % fleet.len()].check(&policy, "alice").await.allowed);
    }
    assert!(admitted <= 160, "{admitted}");
}

#[tokio::test]
async fn rc_211_one_unit_is_given_to_one_of_two_clients() {
    let server = Server::new();
    let clients = [limiter_of(&server), limiter_of(&server)];
    let policy = Policy::token_bucket("p", 1, Rate::per(1, Duration::from_secs(30))).unwrap();
    let mut admitted = 0;
    for number in 0..30 {
        admitted += u32::from(clients[number % 2].check(&policy, "alice").await.allowed);
    }
    assert_eq!(admitted, 1);
}

#[tokio::test]
async fn rc_213_the_server_decides_again_when_it_is_back() {
    let mut server = Server::new();
    let limiter = limiter(server.port(), Outage::Open, 1);
    assert_eq!(limiter.check(&window(10), "alice").await.source, Source::Redis);
    server.kill();
    assert_eq!(limiter.check(&window(10), "alice").await.source, Source::Fallback(Outage::Open));
    server.revive();
    sleep(RECOVERY).await;
    assert_eq!(limiter.check(&window(10), "alice").await.source, Source::Redis);
}
