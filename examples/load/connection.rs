//! A connection with a batch of calls under way.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::Fallible;
use crate::calls::Calls;
use crate::replies::Replies;

pub struct Connection {
    stream: TcpStream,
    replies: Replies,
    out: Vec<u8>,
    sent: usize,
    /// Replies that are still to come.
    awaited: u64,
    /// Calls under way; 0 while it rests.
    pub calls: u64,
    /// When the calls under way were due.
    pub due: Instant,
}

impl Connection {
    pub fn open(port: u16, registry: &Registry, token: Token) -> Fallible<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = std::net::TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            replies: Replies::default(),
            out: Vec::new(),
            sent: 0,
            awaited: 0,
            calls: 0,
            due: Instant::now(),
        })
    }

    /// Sends so many calls at once.
    pub fn send(&mut self, calls: u64, from: &mut Calls, due: Instant) -> Fallible<()> {
        self.out.clear();
        for _ in 0..calls {
            from.write_next(&mut self.out);
        }
        (self.sent, self.calls, self.awaited, self.due) = (0, calls, calls * from.commands, due);
        self.flush()
    }

    fn flush(&mut self) -> Fallible<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Goes on with what the socket is ready for. The number of calls that have all been answered, once they have.
    pub fn go_on(&mut self, piece: &mut [u8]) -> Fallible<Option<u64>> {
        self.flush()?;
        loop {
            let length = match self.stream.read(piece) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let replies = self.replies.count(&piece[..length])?;
            self.awaited = self.awaited.checked_sub(replies).ok_or("more replies than calls")?;
            // With epoll, less than there was room for is all there was: what comes later is told anew.
            if length < piece.len() {
                break;
            }
        }
        if self.calls == 0 || self.awaited > 0 {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut self.calls)))
    }
}
