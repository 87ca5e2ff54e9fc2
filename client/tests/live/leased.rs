//! Leased buckets over real servers and processes: what all admit together, how much of it, and what that costs Redis.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis_rl_client::{Check, HOUR, Limiter, Outage, Policy, Rate, SECOND, Source};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::answers::{builder_for, limiter_of};
use crate::load::{DEADLINE, alone, patiently};
use crate::processes::{process, report, reported, task};
use crate::support::{Options, Proxy, Server, ask, calls, errors, wait_until};

const CAPACITY: u64 = 400;
const RATE: u64 = 2_000;

fn policy(capacity: u64, rate: u64) -> Policy {
    Policy::token_bucket("hot", capacity, Rate::per_second(rate)).unwrap().leased().unwrap()
}

/// Tokens in leases, and the nodes that have some.
fn leased(server: &Server) -> (i64, i64) {
    // Who wants nothing and has no row changes nothing.
    let told: Vec<i64> =
        ask(&mut server.connect(), &format!("RL.LEASE rl:{{all}}:hot {CAPACITY} {RATE} nobody 1 0 0 1"));
    (told[2], told[5])
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

/// What a node did.
#[derive(Clone, Default)]
struct Log {
    offered: u64,
    leased: u64,
    /// Admitted, by the time at which the caller knew, in units of 10 ms.
    admitted: BTreeMap<u64, u64>,
}

/// Asks `per_second(milliseconds since the start)` times a second, for so long, whether what was asked before is answered or not.
async fn load(limiter: &Limiter, policy: &Policy, time: Duration, per_second: impl Fn(u64) -> f64) -> Log {
    let log = Arc::new(Mutex::new(Log::default()));
    let (began, mut due, mut ticks) = (Instant::now(), 0.0, interval(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = began;
    while began.elapsed() < time {
        let at = ticks.tick().await;
        // What a machine that stood still did not ask is not asked at once.
        due += per_second((at - began).as_millis() as u64) * (at - last).min(Duration::from_millis(20)).as_secs_f64();
        last = at;
        while due >= 1.0 {
            due -= 1.0;
            log.lock().unwrap().offered += 1;
            let (limiter, policy, log) = (limiter.clone(), policy.clone(), Arc::clone(&log));
            let mut check = Box::pin(async move {
                let decision = limiter.check(&policy, "all").await;
                let mut log = log.lock().unwrap();
                if decision.allowed {
                    *log.admitted.entry(now() / 10_000).or_default() += 1;
                    log.leased += u64::from(decision.source == Source::Lease);
                }
            });
            // Most are decided at once.
            if poll_fn(|context| Poll::Ready(check.as_mut().poll(context))).await.is_pending() {
                tokio::spawn(check);
            }
        }
    }
    sleep(2 * DEADLINE).await;
    log.lock().unwrap().clone()
}

/// What a process of the fleet does, by its task: the port, its number, and for how many milliseconds.
fn be_a_node(task: &str) {
    let [port, number, millis] = task.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>()[..] else {
        panic!("{task}")
    };
    let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).deadline(DEADLINE).without_fleet();
    let limiter = builder.on_outage(Outage::Closed).connect_lazy().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Three times what the bucket allows, half of it at one node, which is another one each half second.
    let rates = |milli: u64| if (milli / 500) % 4 == number % 4 { 3_000.0 } else { 1_000.0 };
    let log = runtime.block_on(load(&limiter, &policy(CAPACITY, RATE), Duration::from_millis(millis), rates));
    let admitted: Vec<String> = log.admitted.iter().map(|(at, count)| format!("{at}:{count}")).collect();
    report(&format!("{} {} {}", log.offered, log.leased, admitted.join(" ")));
}

fn read(report: &str) -> Log {
    let mut words = report.split(' ');
    let mut number = || words.next().unwrap().parse().unwrap();
    let (offered, leased) = (number(), number());
    let pair = |word: &str| word.split_once(':').map(|(at, count)| (at.parse().unwrap(), count.parse().unwrap()));
    Log { offered, leased, admitted: words.filter_map(pair).collect() }
}

/// Sees that over no interval more was admitted than the bucket allows, as far as callers can tell. The part of it that was used.
fn judge(began: u64, logs: &[Log], what: &str) -> f64 {
    let mut all = BTreeMap::<u64, u64>::new();
    for (at, count) in logs.iter().flat_map(|log| &log.admitted) {
        *all.entry(*at).or_default() += count;
    }
    let (offered, leased): (u64, u64) = logs.iter().fold((0, 0), |sum, log| (sum.0 + log.offered, sum.1 + log.leased));
    let sum: u64 = all.values().sum();
    let (first, last) = (began, all.keys().max().copied().unwrap_or_default() * 10_000 + 10_000);
    let seconds = (last - first) as f64 / 1e6;
    let most = CAPACITY as f64 + RATE as f64 * seconds;
    let used = sum as f64 / most.min(offered as f64);
    eprintln!(
        "  {what}: {sum} of {offered} admitted in {seconds:.2} s, {leased} of them from leases, at most {most:.0}: {:.1} %",
        100.0 * used
    );
    assert!(sum as f64 <= most, "{sum} were admitted, at most {most} may be");
    // From any moment on, too; what a caller knows late it knows within the deadline, on a machine that runs.
    let late = RATE as f64 * 2.0 * DEADLINE.as_secs_f64();
    let (mut level, mut lowest, mut before) = (CAPACITY as f64, 0.0_f64, first / 10_000);
    for (&at, &count) in &all {
        level = (level + RATE as f64 * (at - before) as f64 / 100.0).min(CAPACITY as f64) - count as f64;
        (before, lowest) = (at, lowest.min(level));
    }
    assert!(lowest >= -late, "an interval had {} more than the bucket allows", -lowest);
    used
}

fn start(port: u16, millis: u64) -> Vec<std::process::Child> {
    (0..4).map(|number| process(&format!("{port} {number} {millis}"))).collect()
}

#[test]
fn four_processes_under_skewed_and_shifting_load_use_nearly_all_of_the_bucket_and_no_more() {
    if let Some(task) = task() {
        return be_a_node(&task);
    }
    // A machine that has other things to do lets nodes stand still, while which they use nothing.
    let mut most = 0.0_f64;
    for _ in 0..3 {
        let server = Server::new();
        let began = now();
        let logs: Vec<Log> = start(server.port(), 3_000).into_iter().map(|node| read(&reported(node))).collect();
        most = most.max(judge(began, &logs, "skewed and shifting"));
        let (requests, asked) = (logs.iter().map(|log| log.offered).sum::<u64>(), calls(&mut server.connect(), "rl."));
        eprintln!("  {asked} calls for {requests} requests");
        assert!(asked < requests / 4, "{asked} calls for {requests} requests");
        wait_until("what is left goes back, or its time passes", || leased(&server).0 == 0);
        if most >= 0.97 {
            return;
        }
    }
    panic!("{most} of the bucket was used");
}

#[test]
fn of_a_node_that_is_killed_no_more_is_admitted_than_it_had() {
    if let Some(task) = task() {
        return be_a_node(&task);
    }
    let server = Server::new();
    let began = now();
    let mut nodes = start(server.port(), 2_500);
    std::thread::sleep(Duration::from_millis(1_200));
    let mut killed = nodes.remove(1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let logs: Vec<Log> = nodes.into_iter().map(|node| read(&reported(node))).collect();
    judge(began, &logs, "with a crash");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_killed_and_comes_back_with_its_data_admits_nothing_in_excess() {
    let _alone = alone().await;
    let mut server = Options::new().set("appendonly", "yes").set("appendfsync", "always").start();
    let began = now();
    let nodes = (0..4).map(|_| {
        let limiter = builder_for(&server).deadline(DEADLINE).on_outage(Outage::Closed).connect_lazy().unwrap();
        tokio::spawn(
            async move { load(&limiter, &policy(CAPACITY, RATE), Duration::from_millis(2_500), |_| 1_500.0).await },
        )
    });
    let nodes: Vec<_> = nodes.collect();
    sleep(SECOND).await;
    server.kill();
    sleep(SECOND / 4).await;
    server.revive();
    let mut logs = Vec::new();
    for node in nodes {
        logs.push(node.await.unwrap());
    }
    judge(began, &logs, "with a Redis that was killed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_spends_what_it_has_and_no_more() {
    let _alone = alone().await;
    let server = Server::new();
    let proxy = Proxy::to(server.port());
    let began = now();
    let (mut logs, mut nodes) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let port = if number == 0 { proxy.port() } else { server.port() };
        let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).deadline(DEADLINE).without_fleet();
        let limiter = builder.on_outage(Outage::Closed).connect_lazy().unwrap();
        nodes.push(tokio::spawn(async move {
            load(&limiter, &policy(CAPACITY, RATE), Duration::from_millis(2_500), |_| 1_500.0).await
        }));
    }
    sleep(SECOND).await;
    proxy.forget();
    for node in nodes {
        logs.push(node.await.unwrap());
    }
    judge(began, &logs, "with a node that is cut off for a second");
}

/// What it says meanwhile arrives late, and so does what it is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_parted_for_three_seconds_spends_what_it_has_and_comes_back() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let proxy = Proxy::to(server.port());
        let began = now();
        let nodes = (0..4).map(|number| {
            let port = if number == 0 { proxy.port() } else { server.port() };
            let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).deadline(DEADLINE).without_fleet();
            let limiter = builder.on_outage(Outage::Closed).connect_lazy().unwrap();
            tokio::spawn(async move {
                load(&limiter, &policy(CAPACITY, RATE), Duration::from_millis(5_500), |_| 1_500.0).await
            })
        });
        let nodes: Vec<_> = nodes.collect();
        sleep(SECOND).await;
        let parted = now();
        proxy.part();
        sleep(3 * SECOND).await;
        proxy.heal();
        let healed = now();
        let mut logs = Vec::new();
        for node in nodes {
            logs.push(node.await.unwrap());
        }
        judge(began, &logs, "with a node that is parted for three seconds");
        let admitted =
            |from: u64, to: u64| logs[0].admitted.range(from / 10_000..to / 10_000).map(|(_, n)| n).sum::<u64>();
        let [before, parted, after] =
            [(began, parted), (parted + 1_000_000, healed), (healed, u64::MAX)].map(|(from, to)| admitted(from, to));
        eprintln!("  that node admitted {before} before, {parted} from a second after it was parted, {after} after");
        assert!(before > 0 && after > 0, "{before} before, {after} after");
        assert_eq!(parted, 0, "it spends what Redis has taken back");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute"]
async fn over_and_over_nodes_are_cut_off_and_redis_is_killed() {
    let _alone = alone().await;
    let mut server = Options::new().set("appendonly", "yes").set("appendfsync", "always").start();
    let proxy = Proxy::to(server.port());
    let began = now();
    let mut nodes = Vec::new();
    for number in 0..4 {
        let port = if number < 2 { proxy.port() } else { server.port() };
        let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).deadline(DEADLINE).without_fleet();
        let limiter = builder.on_outage(Outage::Closed).connect_lazy().unwrap();
        nodes.push(tokio::spawn(async move {
            let rates = |milli: u64| if (milli / 500) % 4 == number { 3_000.0 } else { 500.0 };
            load(&limiter, &policy(CAPACITY, RATE), Duration::from_secs(40), rates).await
        }));
    }
    for round in 0..9 {
        sleep(2 * SECOND).await;
        if round % 3 == 2 {
            server.kill();
            sleep(SECOND).await;
            server.revive();
        } else {
            proxy.forget();
            sleep(SECOND).await;
        }
    }
    let mut logs = Vec::new();
    for node in nodes {
        logs.push(node.await.unwrap());
    }
    judge(began, &logs, "40 seconds of trouble");
}

/// What so many times the traffic costs Redis, as calls a second.
async fn calls_at(times: f64, time: Duration) -> [f64; 4] {
    let server = Server::new();
    let policy = policy(4_000, 10_000);
    let nodes = (0..4).map(|_| {
        let (limiter, policy) = (limiter_of(&server), policy.clone());
        tokio::spawn(async move { load(&limiter, &policy, time, |_| 25.0 * times).await })
    });
    let mut logs = Vec::new();
    for node in nodes.collect::<Vec<_>>() {
        logs.push(node.await.unwrap());
    }
    let offered: u64 = logs.iter().map(|log| log.offered).sum();
    let admitted: u64 = logs.iter().flat_map(|log| log.admitted.values()).sum();
    let [leases, direct] = ["rl.lease", "rl.tokenbucket"].map(|command| calls(&mut server.connect(), command));
    let [offered, admitted, leases, direct] = [offered, admitted, leases, direct].map(|number| number as f64);
    [offered, leases, direct]
        .map(|number| number / time.as_secs_f64())
        .into_iter()
        .chain([admitted / offered])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

async fn table(time: Duration) {
    // A lease lasts 100 ms at 1 ×, and 50 ms beyond.
    let expected = 1.5 * 4.0 / 0.05;
    eprintln!("  4 nodes, 4 000 tokens at 10 000 a second; about {expected:.0} calls a second are to be expected");
    eprintln!(
        "  {:>12} {:>10} {:>10} {:>12} {:>10}",
        "requests / s", "leases / s", "direct / s", "a request", "admitted"
    );
    for times in [1.0, 10.0, 100.0] {
        let [offered, leases, direct, admitted] = calls_at(times, time).await;
        let asked = leases + direct;
        let part = asked / offered;
        eprintln!("  {offered:>12.0} {leases:>10.0} {direct:>10.0} {part:>12.5} {:>9.1}%", 100.0 * admitted);
        assert!(asked <= 3.0 * expected, "{asked} calls a second at {times} times the traffic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_do_not_grow_with_the_traffic() {
    let _alone = alone().await;
    table(SECOND).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute"]
async fn the_calls_do_not_grow_with_the_traffic_for_long() {
    let _alone = alone().await;
    table(10 * SECOND).await;
}

/// Checks until the answers come from a lease. So many units were taken.
async fn warm_up(limiter: &Limiter, policy: &Policy) -> u64 {
    let (began, mut taken) = (Instant::now(), 1);
    while limiter.check(policy, "all").await.source != Source::Lease {
        taken += 1;
        assert!(began.elapsed() < 5 * SECOND, "nothing is leased");
        sleep(Duration::from_millis(1)).await;
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_worth_a_lease_is_asked_of_redis() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let cold = policy(CAPACITY, RATE);
    for _ in 0..10 {
        assert_eq!(limiter.check(&cold, "cold").await.source, Source::Redis);
        sleep(Duration::from_millis(110)).await;
    }
    let tiny = Policy::token_bucket("tiny", 3, Rate::per_second(RATE)).unwrap().leased().unwrap();
    for _ in 0..200 {
        let source = limiter.check(&tiny, "all").await.source;
        assert!(matches!(source, Source::Redis | Source::DenyCache), "{source:?}");
    }
    assert_eq!(calls(&mut server.connect(), "rl.lease"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_idle_gives_back_and_so_does_who_is_dropped() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let policy = policy(4_000, 1);
    let mut taken = warm_up(&limiter, &policy).await;
    assert!(leased(&server).1 == 1, "{:?}", leased(&server));
    wait_until("the idle one has given back", || leased(&server) == (0, 0));
    let left = limiter.peek(&policy, "all").await.unwrap().remaining.unwrap();
    assert!(
        (4_000 - taken..=4_002 - taken).contains(&left),
        "{left} are left, {taken} were taken: some were forfeited"
    );
    taken += warm_up(&limiter, &policy).await;
    drop(limiter);
    let began = Instant::now();
    while leased(&server) != (0, 0) {
        assert!(began.elapsed() < 5 * SECOND, "the dropped one keeps {:?}", leased(&server));
        sleep(Duration::from_millis(2)).await;
    }
    let left = limiter_of(&server).peek(&policy, "all").await.unwrap().remaining.unwrap();
    assert!(
        (4_000 - taken..=4_004 - taken).contains(&left),
        "{left} are left, {taken} were taken: some were forfeited"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_leased_lasts_through_a_short_outage() {
    patiently(async || {
        let _alone = alone().await;
        let server = Server::new();
        let builder = builder_for(&server).deadline(DEADLINE).on_outage(Outage::Closed);
        let limiter = builder.connect().await.unwrap();
        let policy = policy(40_000, 100_000);
        let ends = Instant::now() + SECOND / 2;
        while Instant::now() < ends {
            let _ = limiter.check(&policy, "all").await;
            sleep(Duration::from_micros(500)).await;
        }
        server.stop();
        let (stopped, mut until) = (Instant::now(), Duration::ZERO);
        while stopped.elapsed() < 2 * SECOND {
            let decision = limiter.check(&policy, "all").await;
            match decision.source {
                Source::Lease => until = stopped.elapsed(),
                _ => assert!(decision.is_unavailable(), "{decision:?}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
        server.cont();
        eprintln!("  decided from the lease for {until:.0?} of the outage");
        assert!(until >= Duration::from_millis(100) && until <= SECOND, "{until:?}");
        warm_up(&limiter, &policy).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_denied_request_the_leased_token_goes_back_at_once() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let site = policy(4_000, 1);
    let quota = Policy::fixed_window("quota", 0, HOUR).unwrap();
    let ends = Instant::now() + SECOND / 2;
    let (mut taken, mut denied) = (0, 0);
    while Instant::now() < ends {
        taken += u64::from(limiter.check(&site, "all").await.allowed);
        let subject = format!("user {denied}");
        let verdict = limiter.check_all([Check::new(&site, "all"), Check::new(&quota, &subject)]).await;
        assert!(!verdict.allowed);
        denied += 1;
        sleep(Duration::from_millis(1)).await;
    }
    drop(limiter);
    let limiter = limiter_of(&server);
    wait_until("all is given back", || leased(&server).1 == 0);
    sleep(SECOND / 10).await;
    let left = limiter.peek(&site, "all").await.unwrap().remaining.unwrap();
    let refunds = calls(&mut server.connect(), "rl.refund");
    eprintln!("  {taken} taken, {denied} denied, {refunds} of these given back through Redis");
    assert!(refunds <= denied / 2, "{refunds} refunds of {denied}");
    assert!((4_000 - taken..=4_000 - taken + 1).contains(&left), "{left} are left of 4000, {taken} were taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_empty_is_denied_here_and_told_when_to_come_again() {
    let server = Server::new();
    let limiter = limiter_of(&server);
    let policy = policy(100, 100);
    let (began, mut here) = (Instant::now(), 0);
    while began.elapsed() < SECOND {
        let decision = limiter.check(&policy, "all").await;
        if !decision.allowed && decision.source == Source::Lease {
            here += 1;
            let wait = decision.retry_after.unwrap();
            assert!(Duration::ZERO < wait && wait <= SECOND, "{decision:?}");
            assert_eq!((decision.limit, decision.remaining), (100, Some(0)));
        }
        sleep(Duration::from_micros(300)).await;
    }
    let asked = calls(&mut server.connect(), "rl.");
    eprintln!("  {here} denials from here, {asked} calls");
    assert!(here > 100, "{here} denials were decided here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_leases_are_not_permitted_redis_decides_each_request() {
    let server = Server::new();
    ask::<()>(&mut server.connect(), "ACL SETUSER api on >secret +rl.tokenbucket +ping +client ~rl:*");
    let url = format!("redis://api:secret@127.0.0.1:{}", server.port());
    let limiter = Limiter::builder(url).deadline(5 * SECOND).without_fleet().connect_lazy().unwrap();
    let policy = policy(40_000, RATE);
    for _ in 0..500 {
        let decision = limiter.check(&policy, "all").await;
        assert!(decision.allowed && decision.source == Source::Redis, "{decision:?}");
    }
    assert_eq!(errors(&mut server.connect(), "NOPERM"), 1, "it asks again and again");
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_leased_bucket_is_a_bucket() {
    let limiter = Limiter::in_memory();
    let policy = policy(3, 1);
    for expected in [true, true, true, false] {
        let decision = limiter.check(&policy, "all").await;
        assert_eq!((decision.allowed, decision.source), (expected, Source::Memory));
    }
    timeout(SECOND, limiter.check(&policy.shadow(), "all"))
        .await
        .map(|decision| assert!(decision.shadow_denied))
        .unwrap();
}
