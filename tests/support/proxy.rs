//! What stands between a client and a server: it takes its time, as a network does, and forgets connections, as a gateway does that is
//! replaced.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::port::free_port;

/// Passes on what is said on connections to it, until it forgets them.
pub struct Proxy {
    port: u16,
    forgotten: Arc<AtomicUsize>,
    parted: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of the server on this port.
    pub fn to(server: u16) -> Self {
        Self::slowly_to(server, Duration::ZERO)
    }

    /// The same, but what is said takes so long at the least, each way.
    pub fn slowly_to(server: u16, delay: Duration) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let forgotten = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&forgotten);
        let parted = Arc::new(AtomicBool::new(false));
        let is_parted = Arc::clone(&parted);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let made_at = shared.load(Ordering::SeqCst);
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (forgotten, is_parted) = (Arc::clone(&shared), Arc::clone(&is_parted));
                    thread::spawn(move || {
                        pass_on(from, to, delay, &is_parted, || forgotten.load(Ordering::SeqCst) > made_at);
                    });
                }
            }
        });
        Self { port, forgotten, parted }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on nothing passes through the connections that there are, and they stay open. New ones are not concerned.
    pub fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }

    /// From now on nothing passes, through new connections neither, until it is [healed](Proxy::heal): what was said meanwhile then arrives late.
    pub fn part(&self) {
        self.parted.store(true, Ordering::SeqCst);
    }

    pub fn heal(&self) {
        self.parted.store(false, Ordering::SeqCst);
    }
}

fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    delay: Duration,
    is_parted: &AtomicBool,
    is_forgotten: impl Fn() -> bool,
) {
    // Enough for what comes in during the delay.
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count) = from.read(&mut buffer)
        && count > 0
    {
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        while is_parted.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(2));
        }
        if !is_forgotten() && to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
