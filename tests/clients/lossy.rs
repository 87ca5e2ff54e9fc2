//! A wire that can be cut, or lose the answer to a check: the server has decided, and nobody hears of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Hands on what comes to its port.
pub struct Wire {
    port: u16,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    loses_next: AtomicBool,
    is_cut: AtomicBool,
}

impl Wire {
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self { port: listener.local_addr().unwrap().port(), faults: Arc::default() };
        let faults = wire.faults.clone();
        // Ends with the tests.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let faults = faults.clone();
                thread::spawn(move || hand_on(client, server, &faults));
            }
        });
        wire
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The connection over which the next check goes breaks before its answer.
    pub fn lose_next(&self) {
        self.faults.loses_next.store(true, Ordering::SeqCst);
    }

    pub fn has_lost(&self) -> bool {
        !self.faults.loses_next.load(Ordering::SeqCst)
    }

    /// From now on nothing comes through: connections break when they are used, and new ones wait until the wire is mended.
    pub fn cut(&self) {
        self.faults.is_cut.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.faults.is_cut.store(false, Ordering::SeqCst);
    }
}

fn hand_on(client: TcpStream, server: u16, faults: &Faults) {
    let is_cut = || faults.is_cut.load(Ordering::SeqCst);
    while is_cut() {
        thread::sleep(Duration::from_millis(5));
    }
    let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
    let is_doomed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| pass(&server, &client, |_| !is_doomed.load(Ordering::SeqCst)));
        pass(&client, &server, |bytes| {
            let is_check = bytes.to_ascii_lowercase().windows(14).any(|word| word == b"rl.tokenbucket");
            if is_check && faults.loses_next.swap(false, Ordering::SeqCst) {
                is_doomed.store(true, Ordering::SeqCst);
            }
            !is_cut()
        });
    });
}

/// Until one side ends, or `may` says no to what would be handed on. Then both end.
fn pass(mut from: &TcpStream, mut to: &TcpStream, may: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !may(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
