//! What each way to persist can lose, measured under load: calls that were admitted, and after a crash are admitted
//! again.
//!
//! The numbers are printed, for `docs/persistence.md`; they depend on the machine. Judged is only that what a way
//! promises to keep is kept.

use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Disk, Options, Server, ask, info, wait_until};
use crate::traffic::{Ledger, Traffic, hang_up, kill};

struct Loss {
    known: Ledger,
    forgotten: i64,
    seconds: f32,
}

/// Loads the server so many milliseconds, ends it and starts it again.
fn lose(traffic: &Traffic, server: &mut Server, load: u64, power_too: bool) -> Loss {
    let started = Instant::now();
    let known = traffic.run(server, || {
        thread::sleep(Duration::from_millis(load));
        kill(server);
    });
    let seconds = started.elapsed().as_secs_f32();
    server.kill();
    if power_too {
        Disk::lose_power(server.folder());
    }
    server.start_again(|options| options);
    let forgotten = traffic.forgotten(&mut server.connect(), &known);
    Loss { known, forgotten, seconds }
}

fn print(how: &str, loss: &Loss) {
    let Loss { known, forgotten, seconds } = loss;
    println!(
        "{how}: {} units admitted in {seconds:.1} s, {forgotten} forgotten, as many as in {:.2} s",
        known.admitted(),
        seconds * *forgotten as f32 / known.admitted() as f32
    );
}

fn appending(fsync: &str, disk: Disk) -> Server {
    Options::new().set("appendonly", "yes").set("appendfsync", fsync).with_disk(disk).start()
}

#[test]
#[ignore = "long: load for half a minute; it prints what docs/persistence.md tells"]
fn what_an_append_only_file_loses() {
    // So slow that the next sync is due as soon as one is done: then the server holds its writes back.
    let slow = || Disk::slow(Duration::from_millis(900));
    for (fsync, how, disk, power_too) in [
        ("always", "kill -9", Disk::new(), false),
        ("always", "a power failure", Disk::new(), true),
        ("everysec", "kill -9", Disk::new(), false),
        ("everysec", "kill -9, where a sync takes 0.9 s", slow(), false),
        ("everysec", "a power failure", Disk::new(), true),
        ("everysec", "a power failure, where a sync takes 0.9 s", slow(), true),
        ("no", "kill -9", Disk::new(), false),
        ("no", "a power failure", Disk::new(), true),
    ] {
        let mut server = appending(fsync, disk);
        let loss = lose(&Traffic::new(), &mut server, 2_500, power_too);
        print(&format!("appendfsync {fsync}, {how}"), &loss);
        assert!(fsync != "always" || loss.forgotten == 0);
    }
}

#[test]
fn a_snapshot_keeps_what_was_admitted_before_it_and_loses_the_rest() {
    let mut server = Options::new().with_disk(Disk::new()).start();
    let mut traffic = Traffic::new();
    let before = traffic.run(&server, || {
        thread::sleep(Duration::from_millis(300));
        hang_up(&server);
    });
    let mut redis = server.connect();
    traffic.assert_as_known(&mut redis, &before);
    ask::<()>(&mut redis, "BGSAVE");
    wait_until("the snapshot is saved", || {
        info(&mut redis, "persistence", "rdb_bgsave_in_progress").as_deref() == Some("0")
    });
    let loss = lose(&traffic, &mut server, 500, true);
    print("a snapshot just before the load", &loss);
    // All since the snapshot is gone, and nothing else.
    traffic.assert_unchanged(&mut server.connect());
}
