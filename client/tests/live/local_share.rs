//! A fleet without Redis: what all of it admits together.

use std::time::Duration;

use redis_rl_client::{HOUR, Limiter, Outage, Policy, Rate, SECOND, Source};
use tokio::time::{Instant, sleep};

use crate::load::{DEADLINE, Load, alone, patiently};
use crate::processes::{in_processes, report, task};
use crate::support::{Server, free_port};

/// No multiple of the number of nodes.
const LIMIT: u64 = 103;
/// So many units flow back to a bucket in a second.
const RATE: u64 = 20;

/// The bucket, the window and the log of which the nodes have their shares.
fn policies() -> [Policy; 3] {
    [
        Policy::token_bucket("bucket", LIMIT, Rate::per_second(RATE)).unwrap(),
        Policy::fixed_window("window", LIMIT, 36_500 * 24 * HOUR).unwrap(),
        Policy::sliding_log("log", LIMIT, HOUR).unwrap(),
    ]
}

/// What a process of the fleet does: checks as fast as it can for a second, and reports what was admitted by each policy, and
/// in how many milliseconds.
fn be_a_node(task: &str) {
    let (port, nodes) = task.split_once(' ').unwrap();
    let builder = Limiter::builder(format!("redis://127.0.0.1:{port}")).nodes(nodes.parse().unwrap()).without_fleet();
    let limiter = builder.deadline(DEADLINE).on_outage(Outage::LocalShare).connect_lazy().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut admitted = [0; 3];
        // What flows back later is not asked for, however late this ends on a busy machine.
        let (began, mut last_asked) = (Instant::now(), Duration::ZERO);
        while last_asked < SECOND {
            last_asked = began.elapsed();
            for (policy, admitted) in policies().iter().zip(&mut admitted) {
                for _ in 0..10 {
                    let decision = limiter.check(policy, "alice").await;
                    assert_eq!(decision.source, Source::Fallback(Outage::LocalShare));
                    *admitted += u32::from(decision.allowed);
                }
            }
            sleep(Duration::from_millis(5)).await;
        }
        let [bucket, window, log] = admitted;
        report(&format!("{bucket} {window} {log} {}", last_asked.as_millis()));
    });
}

/// What so many processes admit in all without Redis, if each believes to be one of so many: by the bucket, the window and the
/// log; and what flowed back to the bucket meanwhile.
fn admitted_by(processes: usize, believed: usize) -> ([f64; 3], f64) {
    let reports = in_processes(processes, &format!("{} {believed}", free_port()), |_| {});
    let (mut sums, mut flowed) = ([0.0; 3], 0.0);
    for line in reports {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        for (sum, number) in sums.iter_mut().zip(&numbers) {
            *sum += number;
        }
        flowed += numbers[3] / 1_000.0 * RATE as f64 / believed as f64;
    }
    eprintln!("  {processes} processes as {believed}: {sums:?} of {LIMIT}, {flowed:.1} flowed back to the bucket");
    (sums, flowed)
}

/// Sees that the sums are within a tenth of so many limits.
fn assert_near(limits: f64, (sums, flowed): ([f64; 3], f64)) {
    let limit = limits * LIMIT as f64;
    for (sum, expected) in sums.into_iter().zip([limit + flowed, limit, limit]) {
        assert!((sum / expected - 1.0).abs() <= 0.1, "{sum} were admitted where {expected:.1} were to be");
        assert!(sum <= expected + 1.0, "{sum} were admitted, more than {expected:.1}");
    }
}

#[test]
fn four_processes_of_four_admit_the_limit_together() {
    match task() {
        Some(task) => be_a_node(&task),
        None => assert_near(1.0, admitted_by(4, 4)),
    }
}

#[test]
fn eight_processes_that_believe_to_be_four_admit_twice_the_limit_and_two_a_half() {
    match task() {
        Some(task) => be_a_node(&task),
        None => {
            assert_near(2.0, admitted_by(8, 4));
            assert_near(0.5, admitted_by(2, 4));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rc_213_a_redis_that_comes_and_goes_hands_out_no_fresh_shares() {
    patiently(async || {
        let mut server = Server::new();
        let builder = Limiter::builder(format!("redis://127.0.0.1:{}", server.port())).nodes(4).without_fleet();
        let limiter = builder.deadline(DEADLINE).on_outage(Outage::LocalShare).connect_lazy().unwrap();
        let policy = Policy::token_bucket("p", 40, Rate::per_second(4)).unwrap();
        let _alone = alone().await;
        let load = Load::of(&limiter, &policy, |_| "alice".to_owned());
        let began = Instant::now();
        for round in 0..12 {
            sleep(Duration::from_millis(150)).await;
            // Half of the outages are refusals, and half are silences; after a refusal the server is empty, too.
            if round % 2 == 0 {
                server.kill();
                sleep(Duration::from_millis(200)).await;
                server.revive();
            } else {
                server.stop();
                sleep(Duration::from_millis(200)).await;
                server.cont();
            }
        }
        sleep(Duration::from_millis(500)).await;
        let report = load.end().await;
        let by = |source| move |record: &&crate::load::Record| record.decision.source == source;
        let local = Source::Fallback(Outage::LocalShare);
        let known = [Source::Redis, Source::DenyCache, local];
        for record in &report.all {
            assert!(known.contains(&record.decision.source), "an error to the caller: {record:?}");
        }
        let outages =
            report.all.windows(2).filter(|two| two[0].decision.source != local && two[1].decision.source == local);
        let outages = outages.count();
        let admitted = report.all.iter().filter(by(local)).filter(|record| record.decision.allowed).count() as u64;
        let most = 10 + began.elapsed().as_secs();
        eprintln!("  {outages} outages, {admitted} admitted without Redis, at most {most}");
        assert!(outages >= 5, "{outages} outages");
        assert!((5..=most).contains(&admitted), "{admitted} were admitted by a share of 10 and 1 a second");
        assert_eq!(report.all.last().map(|last| last.decision.is_degraded()), Some(false), "it is back");
    })
    .await;
}
