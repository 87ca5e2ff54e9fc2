//! A cluster of primaries.

use redis::Connection;

use super::replica::wait_until;
use super::server::{Options, Server};
use super::{ask, info};

/// So many slots has every cluster.
const SLOTS: usize = 16_384;

/// Primaries that share the slots evenly.
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    pub fn of(primaries: usize) -> Self {
        let start = |_| Options::new().set("cluster-enabled", "yes").set("cluster-node-timeout", "5000").start();
        let nodes: Vec<Server> = (0..primaries).map(start).collect();
        let first = nodes[0].port();
        for (index, node) in nodes.iter().enumerate() {
            let mut connection = node.connect();
            let (from, to) = (index * SLOTS / primaries, (index + 1) * SLOTS / primaries - 1);
            ask::<()>(&mut connection, &format!("CLUSTER ADDSLOTSRANGE {from} {to}"));
            ask::<()>(&mut connection, &format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            if index > 0 {
                ask::<()>(&mut connection, &format!("CLUSTER MEET 127.0.0.1 {first}"));
            }
        }
        for node in &nodes {
            let mut connection = node.connect();
            wait_until("all nodes know all slots", || knows_all(&mut connection, primaries));
        }
        Self { nodes }
    }

    /// The addresses of all nodes.
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("redis://127.0.0.1:{}", node.port())).collect()
    }

    /// One connection to each node.
    pub fn connections(&self) -> Vec<Connection> {
        self.nodes.iter().map(Server::connect).collect()
    }

    /// How many calls all nodes have answered with a redirection.
    pub fn redirections(&self) -> u64 {
        let count = |connection: &mut Connection| {
            let line = info(connection, "errorstats", "errorstat_MOVED");
            line.and_then(|line| line.strip_prefix("count=")?.parse::<u64>().ok()).unwrap_or(0)
        };
        self.connections().iter_mut().map(count).sum()
    }
}

fn knows_all(connection: &mut Connection, primaries: usize) -> bool {
    let info: String = ask(connection, "CLUSTER INFO");
    let has = |line: String| info.lines().any(|found| found == line);
    has("cluster_state:ok".to_owned()) && has(format!("cluster_size:{primaries}"))
}
