//! Sentinels: they watch a primary, and promote its replica when it is gone.

use redis::Connection;

use super::ask;
use super::replica::wait_until;
use super::server::{Options, Server};

/// What the sentinels call the primary.
const NAME: &str = "main";

/// Three sentinels, of which two must agree.
pub struct Sentinels {
    servers: Vec<Server>,
}

impl Sentinels {
    /// They watch a primary that has one replica.
    pub fn of(primary: &Server) -> Self {
        let lines = format!(
            "sentinel monitor {NAME} 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds {NAME} 600\n\
             sentinel failover-timeout {NAME} 4000\n",
            primary.port()
        );
        let servers: Vec<Server> = (0..3).map(|_| Options::sentinel(&lines).start()).collect();
        for server in &servers {
            let mut connection = server.connect();
            wait_until("a sentinel knows the others and the replica", || {
                field(&mut connection, "num-other-sentinels") == "2" && field(&mut connection, "num-slaves") == "1"
            });
        }
        Self { servers }
    }

    /// What they call the primary.
    pub fn name(&self) -> &'static str {
        NAME
    }

    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(|server| format!("redis://127.0.0.1:{}", server.port())).collect()
    }

    /// Ends a sentinel, leaving those that can still agree.
    pub fn kill_one(&mut self) {
        self.servers[0].kill();
    }

    /// Changes the primary for its replica, with both alive.
    pub fn fail_over(&self) {
        ask::<()>(&mut self.servers[2].connect(), &format!("SENTINEL FAILOVER {NAME}"));
    }

    /// Waits until all that live agree on the port of the primary.
    pub fn wait_for_primary(&self, port: u16) {
        for server in self.servers.iter().filter(|server| server.is_running()) {
            let mut connection = server.connect();
            wait_until("the sentinels know the new primary", || field(&mut connection, "port") == port.to_string());
        }
    }
}

/// A field of what a sentinel tells about the primary.
fn field(connection: &mut Connection, name: &str) -> String {
    let told: Vec<String> = ask(connection, &format!("SENTINEL MASTER {NAME}"));
    let field = told.chunks_exact(2).find(|pair| pair[0] == name);
    field.unwrap_or_else(|| panic!("{told:?} has no {name}"))[1].clone()
}
