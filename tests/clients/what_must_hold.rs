//! What every client must do with the snippets of the page.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use redis::Connection;

use crate::caller::{Answer, Call, Caller, Client, Topology};
use crate::lossy::Wire;
use crate::support::{Cluster, Options, Server, ask, decide, info, wait_until};

const USERS: u64 = 100;
/// Each user is denied once, by a limit of 3.
pub const CALLS_IN_A_CLUSTER: u64 = USERS * 4;

/// The longest that a client may take for a check, by the page, and as much again for a machine that is busy.
const PATIENCE: Duration = Duration::from_millis(250 + 1_500);

/// One of 3 a day.
fn one(user: &str) -> Call<'_> {
    Call { user, capacity: 3, rate: "3/d", cost: 1 }
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

/// A client that has connected to every server, so that no check of a test takes longer for that.
fn connected(client: &Client, topology: Topology, url: &str) -> Box<dyn Caller> {
    let mut caller = (client.start)(topology, url);
    warm_up(&mut *caller);
    caller
}

/// Asks about keys of all nodes. Cost 0 takes nothing and leaves no key.
pub fn warm_up(caller: &mut dyn Caller) {
    for user in 0..20 {
        let user = format!("unseen-{user}");
        wait_until("the client is connected", || caller.check(&Call { cost: 0, ..one(&user) }) == Answer::Allowed);
    }
}

pub fn a_single_server_answers(client: &Client) {
    // The clock stands still, so that all waits are exact.
    let server = Options::new().with_clock().start();
    let mut caller = connected(client, Topology::Single, &url(server.port()));
    let mut check = |call: &Call<'_>| caller.check(call);

    for _ in 0..3 {
        assert_eq!(check(&one("1")), Answer::Allowed);
    }
    assert_eq!(check(&one("1")), Answer::Denied(Some(8 * 60 * 60)), "a third of a day");

    let slow = Call { user: "2", capacity: 3, rate: "3/4s", cost: 3 };
    assert_eq!(check(&slow), Answer::Allowed);
    assert_eq!(check(&Call { cost: 1, ..slow }), Answer::Denied(Some(2)), "1334 ms, in whole seconds");
    let fast = Call { user: "3", capacity: 3, rate: "1000", cost: 3 };
    assert_eq!(check(&fast), Answer::Allowed);
    assert_eq!(check(&Call { cost: 1, ..fast }), Answer::Denied(Some(1)), "1 ms, in whole seconds");
    assert_eq!(check(&Call { cost: 4, ..fast }), Answer::Denied(None), "4 of 3: never");

    let mistaken = check(&Call { rate: "often", ..one("4") });
    assert!(matches!(&mistaken, Answer::Failed(why) if why.contains("rate")), "{mistaken:?}");
    assert_eq!(check(&one("4")), Answer::Allowed, "an error is the call's, not the connection's");

    assert_eq!(protocols(&mut server.connect()), [client.protocol], "versions of the protocol");
}

/// The versions of the protocol by which those are connected who asked a limiter last.
fn protocols(connection: &mut Connection) -> Vec<u8> {
    let clients: String = ask(connection, "CLIENT LIST");
    let of = |line: &str| line.split(" resp=").nth(1)?.split(' ').next()?.parse().ok();
    clients.lines().filter(|line| line.contains(" cmd=rl.tokenbucket ")).filter_map(of).collect()
}

pub fn no_call_in_a_cluster_goes_to_a_wrong_node(client: &Client) {
    let cluster = Cluster::of(3);
    let mut caller = connected(client, Topology::Cluster, &cluster.addresses()[0]);
    answers_in_a_cluster(&mut *caller, &cluster);
    assert_eq!(cluster.redirections(), 0, "calls of {CALLS_IN_A_CLUSTER} that went to a wrong node");
    for mut node in cluster.connections() {
        assert_eq!(protocols(&mut node), [client.protocol], "versions of the protocol");
    }
}

/// The answers are right, and come from all nodes.
pub fn answers_in_a_cluster(caller: &mut dyn Caller, cluster: &Cluster) {
    let (mut asked, mut answered) = (0, 0);
    while answered < USERS {
        // Where other work keeps the machine busy, a check may be late that was sent to the right node.
        assert!(asked < USERS + 10, "{} of {asked} users had a check that failed", asked - answered);
        answered += u64::from(a_limit_of_three_holds(caller, &asked.to_string()));
        asked += 1;
    }
    let keys: Vec<u64> = cluster.connections().iter_mut().map(|node| ask(node, "DBSIZE")).collect();
    assert!((USERS..=asked).contains(&keys.iter().sum()), "{keys:?}");
    assert!(keys.iter().all(|&keys| keys > USERS / 10), "{keys:?}");
}

/// False if a check failed, so that nothing can be said.
fn a_limit_of_three_holds(caller: &mut dyn Caller, user: &str) -> bool {
    for call in 1..=4 {
        match caller.check(&one(user)) {
            Answer::Failed(why) => {
                eprintln!("user {user}, call {call}: {why}");
                return false;
            }
            Answer::Allowed if call <= 3 => {}
            Answer::Denied(Some(28_000..=28_800)) if call == 4 => {}
            answer => panic!("user {user}, call {call}: {answer:?}"),
        }
    }
    true
}

pub fn servers_that_are_gone_hold_nobody_up(client: &Client) {
    let server = Server::new();
    let caller = connected(client, Topology::Single, &url(server.port()));
    fails_in_time(caller, server);

    let cluster = Cluster::of(3);
    let caller = connected(client, Topology::Cluster, &cluster.addresses()[0]);
    fails_in_time(caller, cluster);
}

fn fails_in_time(mut caller: Box<dyn Caller>, servers: impl Sized) {
    assert_eq!(caller.check(&one("1")), Answer::Allowed);
    drop(servers);
    // While the client notices, tries to connect again, and has given up.
    for _ in 0..5 {
        let began = Instant::now();
        let answer = caller.check(&one("1"));
        assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
        assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
        thread::sleep(Duration::from_millis(100));
    }
}

pub fn a_server_that_hangs_holds_nobody_up(client: &Client) {
    let server = Server::new();
    let mut caller = connected(client, Topology::Single, &url(server.port()));
    assert_eq!(caller.check(&one("1")), Answer::Allowed);

    let hung = Hung::new(&server);
    let began = Instant::now();
    let answer = caller.check(&one("1"));
    let took = began.elapsed();
    drop(hung);
    assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
    assert!(took < PATIENCE, "it took {took:?}");

    wait_until("the client works again", || caller.check(&one("2")) == Answer::Allowed);
    let left = decide(&mut server.connect(), "RL.PEEK limit:user:1")[2];
    assert_eq!(left, 1, "of 3 are left after two checks: one that was answered, and one that was not, but ran");
}

/// A server that does nothing until this is dropped.
struct Hung(String);

impl Hung {
    fn new(server: &Server) -> Self {
        let hung = Self(info(&mut server.connect(), "server", "process_id").expect("a process"));
        hung.signal("STOP");
        hung
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.0]).status();
        assert!(sent.is_ok_and(|status| status.success()), "signal {name}");
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        self.signal("CONT");
    }
}

pub fn an_answer_that_is_lost_was_charged_once(client: &Client) {
    let server = Server::new();
    let wire = Wire::to(server.port());
    charges_once(client, Topology::Single, &wire, &mut server.connect());
}

pub fn an_answer_that_is_lost_in_a_cluster_was_charged_once(client: &Client) {
    let cluster = Cluster::of(1);
    let [mut node] = <[Connection; 1]>::try_from(cluster.connections()).ok().unwrap();
    let port: u16 = info(&mut node, "server", "tcp_port").and_then(|port| port.parse().ok()).expect("a port");
    let wire = Wire::to(port);
    // So that clients which ask the cluster where its nodes are stay on the wire. (A node that never met another does not
    // know its own address, and ioredis takes that for no node.)
    ask::<()>(&mut node, &format!("CONFIG SET cluster-announce-port {}", wire.port()));
    ask::<()>(&mut node, "CONFIG SET cluster-announce-ip 127.0.0.1");
    charges_once(client, Topology::Cluster, &wire, &mut node);
}

fn charges_once(client: &Client, topology: Topology, wire: &Wire, server: &mut Connection) {
    let mut caller = connected(client, topology, &url(wire.port()));
    assert_eq!(caller.check(&one("1")), Answer::Allowed);

    wire.lose_next();
    let answer = caller.check(&one("1"));
    assert!(wire.has_lost(), "the check did not go over the wire: {answer:?}");
    let left = |server: &mut Connection| decide(server, "RL.PEEK limit:user:1")[2];
    assert_eq!(left(server), 1, "of 3 are left after two checks; the second was answered {answer:?}");
    assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");

    // Nor later, when the client is connected again.
    wait_until("the client works again", || caller.check(&one("2")) == Answer::Allowed);
    assert_eq!(left(server), 1, "of 3 are left once the client is connected again");
}

pub fn what_could_not_be_sent_is_not_sent_later(client: &Client) {
    let server = Server::new();
    let wire = Wire::to(server.port());
    let mut caller = connected(client, Topology::Single, &url(wire.port()));
    assert_eq!(caller.check(&one("1")), Answer::Allowed);

    wire.cut();
    for _ in 0..3 {
        let answer = caller.check(&one("1"));
        assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
    }
    wire.mend();
    wait_until("the client works again", || caller.check(&one("2")) == Answer::Allowed);
    assert_eq!(decide(&mut server.connect(), "RL.PEEK limit:user:1")[2], 2, "of 3 are left after one check that ran");
}
