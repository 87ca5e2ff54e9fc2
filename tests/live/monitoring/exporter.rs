//! Debian's `prometheus-redis-exporter`, set up as `docs/monitoring/redis-exporter.lua` says.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::support::{Server, ask, free_port, wait_until};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/monitoring/redis-exporter.lua");

/// The line of the script's comment that makes its user.
fn user() -> &'static str {
    let script = include_str!("../../../docs/monitoring/redis-exporter.lua");
    let lines = script.lines().find_map(|line| line.strip_prefix("-- ACL SETUSER"));
    lines.unwrap_or_else(|| panic!("docs/monitoring/redis-exporter.lua names no user"))
}

/// The exporter of one server, while it lives.
pub struct Exporter {
    process: Child,
    port: u16,
}

impl Exporter {
    /// Starts it, with a user who may nothing but this.
    pub fn of(server: &Server) -> Self {
        ask::<()>(&mut server.connect(), &format!("ACL SETUSER{}", user()));
        let port = free_port();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "prometheus-redis-exporter", "-script", SCRIPT, "-config-command", "-"]);
        command.arg("-redis.addr").arg(format!("redis://127.0.0.1:{}", server.port()));
        command.args(["-redis.user", "exporter", "-redis.password", "secret"]);
        command.arg("-web.listen-address").arg(format!("127.0.0.1:{port}"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the exporter listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { process, port }
    }

    /// What a scrape by HTTP tells, by name and labels.
    pub fn scrape(&self) -> BTreeMap<String, f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 OK"), "{head}");
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
            .collect()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
