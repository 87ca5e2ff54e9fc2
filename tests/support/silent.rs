//! A port behind which nobody speaks.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::port::free_port;

/// Accepts connections, keeps them open and never says a word, until it is dropped; then all of them break.
pub struct Silent {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    accepted: Vec<TcpStream>,
    is_over: bool,
}

impl Silent {
    pub fn new() -> Self {
        Self::on(free_port())
    }

    /// On the port of a server that is gone.
    pub fn on(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut state = shared.lock().unwrap();
                if state.is_over {
                    return;
                }
                state.accepted.extend(stream);
            }
        });
        Self { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were made to it.
    pub fn accepted(&self) -> usize {
        self.state.lock().unwrap().accepted.len()
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap();
        state.is_over = true;
        state.accepted.clear();
        drop(state);
        // The one that waits for connections looks up.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}
