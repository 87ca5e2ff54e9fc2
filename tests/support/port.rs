//! Ports for servers.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those that the kernel gives to outgoing connections, and so are those of a cluster's bus, 10 000 above: while a server is
/// down its port must be nobody's, or who connects to it may be given it, and talk to himself.
const FIRST: u16 = 11_000;
const COUNT: u16 = 11_000;

/// A port that nobody listens on, and that this process is given once only.
pub fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    // Several test programs may run at once.
    let next = NEXT.get_or_init(|| AtomicU16::new((RandomState::new().hash_one(0) % u64::from(COUNT)) as u16));
    loop {
        let port = FIRST + next.fetch_add(1, Ordering::Relaxed) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
