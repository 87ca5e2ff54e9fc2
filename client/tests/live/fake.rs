//! A sentinel that says what a test wants it to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use crate::support::free_port;

/// Says of every name that its primary is on one port of this machine.
pub struct FakeSentinel {
    port: u16,
    primary: Arc<AtomicU16>,
}

impl FakeSentinel {
    pub fn that_says(primary: u16) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let primary = Arc::new(AtomicU16::new(primary));
        let shared = Arc::clone(&primary);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let primary = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &primary));
            }
        });
        Self { port, primary }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on it is on this port.
    pub fn says(&self, primary: u16) {
        self.primary.store(primary, Ordering::SeqCst);
    }
}

fn serve(mut stream: TcpStream, primary: &AtomicU16) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(words) = words(&mut reader) {
        let answer = match words[0].as_str() {
            "SENTINEL" => {
                let port = primary.load(Ordering::SeqCst).to_string();
                format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len())
            }
            _ => "+OK\r\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The words of the next command.
fn words(reader: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let count = number_behind('*', reader)?;
    let word = |_| {
        let mut bytes = vec![0; number_behind('$', reader)? + 2];
        reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(bytes.len() - 2);
        String::from_utf8(bytes).ok()
    };
    (0..count).map(word).collect()
}

fn number_behind(sign: char, reader: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.strip_prefix(sign)?.trim_end().parse().ok()
}
