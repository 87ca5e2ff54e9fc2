//! Four API servers and the balancer before them.

use std::net::SocketAddr;

use crate::Fallible;
use crate::api_server::{ApiServer, Assignment};
use crate::balancer::Balancer;
use crate::limiters::Counting;

pub const SERVERS: [&str; 4] = ["a", "b", "c", "d"];

/// Every run has a fleet of its own, so that nothing that a server remembers reaches the next. Ends when dropped.
pub struct Fleet {
    // Before the servers: nothing is sent to them any more when they end.
    balancer: Balancer,
    servers: Vec<ApiServer>,
}

impl Fleet {
    pub async fn start(counting: Counting, limit: u64, redis: SocketAddr) -> Fallible<Self> {
        let mut servers = Vec::new();
        for name in SERVERS {
            servers.push(ApiServer::start(&Assignment { name: name.to_owned(), counting, limit, redis }).await?);
        }
        let balancer = Balancer::start(servers.iter().map(ApiServer::address)).await?;
        Ok(Fleet { balancer, servers })
    }

    /// Where the user sends requests.
    pub fn address(&self) -> SocketAddr {
        self.balancer.address()
    }

    /// The servers themselves, past the balancer.
    pub fn servers(&self) -> impl Iterator<Item = SocketAddr> {
        self.servers.iter().map(ApiServer::address)
    }
}
