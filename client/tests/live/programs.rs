//! Programs that a test starts, and the HTTP that it speaks with them.

use std::process::{Child, Command};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A program in a process of its own, which is gone when this is dropped.
pub struct Program(Child);

impl Program {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}")))
    }

    pub fn process(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(present, _)| present.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// `GET /` on a connection of its own.
pub async fn get(address: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = format!("GET / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all((request + "\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();

    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer, but {answer:?}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    Answer { status, headers: lines.filter_map(field).collect(), body: body.to_owned() }
}
