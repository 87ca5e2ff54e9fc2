//! A cluster of primaries, with or without replicas.

use std::thread;
use std::time::Duration;

use redis::Connection;

use super::replica::wait_until;
use super::server::{Options, Server};
use super::{ask, errors};

/// So many slots has every cluster.
const SLOTS: usize = 16_384;

/// Primaries that share the slots evenly, and maybe a replica of each.
pub struct Cluster {
    /// The primaries, then the replicas in the same order.
    nodes: Vec<Server>,
    primaries: usize,
}

impl Cluster {
    pub fn of(primaries: usize) -> Self {
        let options = || Options::new().set("cluster-node-timeout", "5000");
        Self::start(primaries, primaries, options)
    }

    /// Each primary has a replica that takes over soon after it is gone. A slot that nobody serves is no reason for the other
    /// primaries to serve nothing.
    pub fn with_replicas(primaries: usize) -> Self {
        Self::with_replicas_after(primaries, Duration::from_secs(1))
    }

    /// The same, but a replica takes over only some time after its primary was silent for so long. On a machine that is busy a
    /// primary may be silent for a second for nothing.
    pub fn with_replicas_after(primaries: usize, silence: Duration) -> Self {
        let silence = silence.as_millis().to_string();
        let options = || {
            let options = Options::new().set("cluster-node-timeout", &silence);
            let options = options.set("cluster-require-full-coverage", "no");
            options.set("cluster-replica-validity-factor", "0").set("repl-diskless-sync-delay", "0")
        };
        let cluster = Self::start(primaries, 2 * primaries, options);
        for (replica, primary) in cluster.nodes[primaries..].iter().zip(&cluster.nodes) {
            let mut connection = replica.connect();
            let id = id(primary);
            wait_until("the replica knows its primary", || {
                ask::<String>(&mut connection, "CLUSTER NODES").contains(&id)
            });
            ask::<()>(&mut connection, &format!("CLUSTER REPLICATE {id}"));
        }
        for node in &cluster.nodes {
            let mut connection = node.connect();
            wait_until("all nodes know all replicas, and those are connected", || {
                let told: String = ask(&mut connection, "CLUSTER NODES");
                let replicas = told.lines().filter(|line| line.contains("slave") && line.contains(" connected"));
                let is_linked = super::info(&mut connection, "replication", "master_link_status");
                replicas.count() == primaries && is_linked.is_none_or(|status| status == "up")
            });
        }
        cluster
    }

    fn start(primaries: usize, nodes: usize, options: impl Fn() -> Options) -> Self {
        let nodes: Vec<Server> =
            (0..nodes).map(|_| options().set("cluster-enabled", "yes").in_memory().start()).collect();
        let first = nodes[0].port();
        for (index, node) in nodes.iter().enumerate() {
            let mut connection = node.connect();
            if index < primaries {
                let (from, to) = (index * SLOTS / primaries, (index + 1) * SLOTS / primaries - 1);
                ask::<()>(&mut connection, &format!("CLUSTER ADDSLOTSRANGE {from} {to}"));
            }
            ask::<()>(&mut connection, &format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            if index > 0 {
                ask::<()>(&mut connection, &format!("CLUSTER MEET 127.0.0.1 {first}"));
            }
        }
        for node in &nodes {
            let mut connection = node.connect();
            wait_until("all nodes know all slots", || knows_all(&mut connection, primaries, nodes.len()));
        }
        Self { nodes, primaries }
    }

    /// The addresses of all nodes.
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("redis://127.0.0.1:{}", node.port())).collect()
    }

    /// A node: the primaries come first, then the replica of each in the same order.
    pub fn node(&mut self, index: usize) -> &mut Server {
        &mut self.nodes[index]
    }

    /// The primary, by the slots it had at first, that serves a key.
    pub fn primary_of(&self, key: &str) -> usize {
        (0..self.primaries).find(|index| (index + 1) * SLOTS / self.primaries > self.slot_of(key)).expect("a primary")
    }

    /// The slot of a key, by the words of a server.
    pub fn slot_of(&self, key: &str) -> usize {
        ask(&mut self.connections()[0], &format!("CLUSTER KEYSLOT {key}"))
    }

    /// One connection to each node that runs.
    pub fn connections(&self) -> Vec<Connection> {
        self.nodes.iter().filter(|node| node.is_running()).map(Server::connect).collect()
    }

    /// How many calls all nodes have answered with a redirection for good.
    pub fn redirections(&self) -> u64 {
        self.errors("MOVED")
    }

    /// How many errors with this code all nodes have answered.
    pub fn errors(&self, code: &str) -> u64 {
        self.connections().iter_mut().map(|connection| errors(connection, code)).sum()
    }

    /// Waits until another node than the primary itself serves what it served.
    pub fn wait_for_failover_of(&self, primary: usize) {
        let mut replica = self.nodes[self.primaries + primary].connect();
        wait_until("the replica took over", || {
            super::info(&mut replica, "replication", "role").is_some_and(|role| role == "master")
        });
    }

    /// Moves a slot from one primary to another as resharding does, with its keys, and a while between the steps.
    pub fn move_slot(&self, slot: usize, from: usize, to: usize, pause: Duration) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let (mut at_source, mut at_target) = (source.connect(), target.connect());
        ask::<()>(&mut at_target, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(source)));
        ask::<()>(&mut at_source, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(target)));
        thread::sleep(pause);
        loop {
            let keys: Vec<String> = ask(&mut at_source, &format!("CLUSTER GETKEYSINSLOT {slot} 1"));
            let Some(key) = keys.first() else { break };
            ask::<()>(&mut at_source, &format!("MIGRATE 127.0.0.1 {} {key} 0 5000", target.port()));
            thread::sleep(pause);
        }
        // The one that has the slot must be the first to know.
        let others = (0..self.primaries).filter(|&index| index != to && index != from);
        for index in [to, from].into_iter().chain(others) {
            let mut connection = self.nodes[index].connect();
            ask::<()>(&mut connection, &format!("CLUSTER SETSLOT {slot} NODE {}", id(target)));
            thread::sleep(pause);
        }
    }
}

/// What the cluster calls a node.
fn id(node: &Server) -> String {
    ask(&mut node.connect(), "CLUSTER MYID")
}

fn knows_all(connection: &mut Connection, primaries: usize, nodes: usize) -> bool {
    let info: String = ask(connection, "CLUSTER INFO");
    let has = |line: String| info.lines().any(|found| found == line);
    has("cluster_state:ok".to_owned())
        && has(format!("cluster_size:{primaries}"))
        && has(format!("cluster_known_nodes:{nodes}"))
}
