//! What a failover forgets: what was not yet replicated, and no more. That much is granted again.

use std::thread;
use std::time::Instant;

use redis::Connection;
use redis::sentinel::{SentinelClient, SentinelServerType};

use crate::fleet::{Fleet, Forgotten, Kept, assert_no_failures, connect_to};
use crate::support::{
    HOUR, Options, Proxy, Sentinels, Server, ask, decide, error, info, replica_by, replica_of, send, wait_for_replicas,
    wait_until,
};

fn fleet() -> Fleet {
    Fleet::of((0..60).map(|index| format!("key:{index}")))
}

fn is_primary(server: &Server) -> bool {
    server.role().is_some_and(|role| role == "master")
}

fn report(how: &str, forgotten: &Forgotten) {
    println!(
        "{how}: {} units were granted again, of {} that may not have been replicated",
        forgotten.units, forgotten.most
    );
}

/// Takes one unit after another until a replica no longer says that it has it. Returns how many replicas had.
fn take_one_by_one_with_wait(redis: &mut Connection) -> i64 {
    for taken in 0..100_000 {
        assert_eq!(decide(redis, "RL.FIXED careful 1000000 36500d")[0], 1);
        if ask::<i64>(redis, "WAIT 1 300") == 0 {
            return taken;
        }
    }
    panic!("the link was never silent")
}

/// The link is silent from one moment on, as when a network breaks; so what was not replicated is known.
#[test]
fn a_promoted_replica_grants_again_what_it_never_got_and_not_a_unit_more() {
    let mut primary = Server::new();
    let proxy = Proxy::to(primary.port());
    let replica = replica_by(&primary, proxy.port(), Options::new());
    let fleet = fleet();
    let mut redis = primary.connect();
    let mut careful = primary.connect();
    let port = primary.port();
    let (reports, (kept, confirmed)) = thread::scope(|scope| {
        let careful = scope.spawn(|| take_one_by_one_with_wait(&mut careful));
        fleet.run(fleet.callers(|| connect_to(port)), || {
            let kept = fleet.kept_by_replicas(&mut redis, 1_000);
            proxy.forget();
            let confirmed = careful.join().unwrap();
            fleet.wait_for_answers(1_000);
            (kept, confirmed)
        })
    });
    assert_no_failures(&reports);
    fleet.assert_exact(&mut redis);
    primary.kill();

    let mut promoted = replica.connect();
    ask::<()>(&mut promoted, "REPLICAOF NO ONE");
    let forgotten = fleet.forgotten(&mut promoted, fleet.all(), &kept);
    report("A link that was silent for a while before the primary was killed", &forgotten);
    assert!(forgotten.units > 0, "calls went on after the link broke");
    let used = 1_000_000 - decide(&mut promoted, "RL.PEEK careful")[2];
    // The last one's WAIT said 0, though its bytes may have come.
    assert!((confirmed..=confirmed + 1).contains(&used), "{used} are used, {confirmed} were confirmed");
}

/// A replica that is promoted sooner forgets what it has got and not yet read.
fn wait_until_all_is_read(replica: &mut Connection) {
    let link = |redis: &mut Connection| info(redis, "replication", "master_link_status");
    wait_until("the replica has read all that was sent", || link(replica).as_deref() == Some("down"));
}

/// What a primary has sent outlives it, in the socket of its replica.
#[test]
fn a_replica_that_was_behind_forgets_nothing_if_it_may_read_before_it_is_promoted() {
    for may_read in [false, true] {
        let mut primary = Server::new();
        let replica = replica_of(&primary, Options::new());
        let fleet = fleet();
        let (port, mut redis, mut operator) = (primary.port(), primary.connect(), replica.connect());
        let (reports, kept) = fleet.run(fleet.callers(|| connect_to(port)), || {
            let kept = fleet.kept_by_replicas(&mut redis, 500);
            replica.stop();
            fleet.wait_for_answers(1_000);
            kept
        });
        assert_no_failures(&reports);
        primary.kill();
        if may_read {
            replica.cont();
            wait_until_all_is_read(&mut operator);
            ask::<()>(&mut operator, "REPLICAOF NO ONE");
        } else {
            operator.send_packed_command(&redis::cmd("REPLICAOF").arg("NO").arg("ONE").get_packed_command()).unwrap();
            replica.cont();
            operator.recv_response().unwrap();
        }
        let forgotten = fleet.forgotten(&mut operator, fleet.all(), &kept);
        report(if may_read { "A replica that was behind" } else { "The same, promoted at once" }, &forgotten);
        assert!(!may_read || forgotten.units == 0, "all of it had been sent");
    }
}

/// Kills the primary under load, has `promote` make the replica one, and lets the callers go on. Returns what was kept for certain.
fn kill_under_load(
    fleet: &Fleet,
    primary: &mut Server,
    connect: impl Fn() -> redis::RedisResult<Connection> + Clone + Send,
    promote: impl FnOnce(),
) -> Kept {
    let mut redis = primary.connect();
    let (reports, (kept, outage)) = fleet.run(fleet.callers(connect), || {
        let kept = fleet.kept_by_replicas(&mut redis, 2_000);
        primary.kill();
        let began = Instant::now();
        promote();
        fleet.wait_for_answers(1);
        let outage = began.elapsed();
        fleet.wait_for_answers(1_000);
        (kept, outage)
    });
    println!("no answer for {outage:?}");
    let lost: usize = reports.iter().map(|report| report.failures.len().min(1)).sum();
    assert_eq!(lost, reports.len(), "every caller lost its server");
    kept
}

#[test]
fn a_primary_that_is_killed_under_load_takes_no_more_along_than_what_was_on_its_way() {
    let mut primary = Server::new();
    let replica = replica_of(&primary, Options::new());
    let fleet = fleet();
    let ports = [primary.port(), replica.port()];
    let connect = move || connect_to(ports[0]).or_else(|_| connect_to(ports[1]));
    let kept = kill_under_load(&fleet, &mut primary, connect, || {
        let mut operator = replica.connect();
        wait_until_all_is_read(&mut operator);
        ask::<()>(&mut operator, "REPLICAOF NO ONE");
    });
    report(
        "A primary killed, its replica promoted by hand",
        &fleet.forgotten(&mut replica.connect(), fleet.all(), &kept),
    );
}

#[test]
fn clients_that_ask_sentinels_go_on_where_the_killed_primary_was() {
    let mut primary = Options::new().set("repl-diskless-sync-delay", "0").start();
    let replica = replica_of(&primary, Options::new());
    let sentinels = Sentinels::of(&primary);
    let fleet = fleet();
    let (urls, name) = (sentinels.urls(), sentinels.name().to_owned());
    let connect =
        move || SentinelClient::build(urls.clone(), name.clone(), None, SentinelServerType::Master)?.get_connection();
    let kept = kill_under_load(&fleet, &mut primary, connect, || {
        wait_until("the replica is promoted", || is_primary(&replica));
    });
    report(
        "A primary killed, its replica promoted by sentinels",
        &fleet.forgotten(&mut replica.connect(), fleet.all(), &kept),
    );
}

/// A replica takes results, so its clock matters from its promotion on, and then as a step of the primary's would.
#[test]
fn a_promoted_replica_whose_clock_is_behind_grants_nothing_again_and_one_ahead_lets_the_time_pass() {
    let calls = [
        "RL.FIXED f 5 1h",
        "RL.SLIDING s 5 1h",
        "RL.SLIDINGLOG log 5 1h",
        "RL.TOKENBUCKET b 5 5/h",
        "RL.LEAKY l 5 5/h",
    ];
    for (hours, allowed) in [(-1, 0), (3, 1)] {
        let mut primary = Options::new().with_clock().start();
        let mut redis = primary.connect();
        let mut replica = replica_of(&primary, Options::new().with_clock());
        replica.clock().advance(hours * HOUR);
        for call in calls {
            assert_eq!(decide(&mut redis, &format!("{call} 5"))[0], 1, "{call}");
        }
        wait_for_replicas(&mut redis, 1);
        primary.kill();
        let mut promoted = replica.connect();
        ask::<()>(&mut promoted, "REPLICAOF NO ONE");
        for call in calls {
            let [now, _, _, retry_after, _] = decide(&mut promoted, call);
            assert_eq!(now, allowed, "{call}, {hours} hours later");
            assert!(retry_after <= 2 * 3_600_000, "{call}: {retry_after} ms are more than two windows");
        }
    }
}

/// What keeps a primary that is cut off from granting what its successor grants as well.
#[test]
fn a_primary_without_its_replicas_can_be_told_to_decide_nothing() {
    let primary = Options::new().set("min-replicas-to-write", "1").set("min-replicas-max-lag", "2").start();
    let mut redis = primary.connect();
    assert!(error(&mut redis, "RL.FIXED f 5 36500d").starts_with("NOREPLICAS"));
    let mut replica = replica_of(&primary, Options::new());
    wait_until("the replica counts", || send::<Vec<i64>>(&mut redis, "RL.FIXED f 5 36500d").is_ok());
    wait_for_replicas(&mut redis, 1);
    replica.kill();
    wait_until("the replica is missed", || send::<Vec<i64>>(&mut redis, "RL.FIXED f 1000 36500d 0").is_err());
    for line in ["RL.FIXED f 5 36500d", "RL.REFUND f 1", "RL.DEBIT d 5 1 1"] {
        assert!(error(&mut redis, line).starts_with("NOREPLICAS"), "{line}");
    }
    assert_eq!(decide(&mut redis, "RL.PEEK f")[..3], [1, 5, 4], "a look needs no replica");
}
