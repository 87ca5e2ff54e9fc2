//! When calls are made: as fast as they are answered, or at a steady rate.

use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::Fallible;
use crate::calls::Calls;
use crate::connection::Connection;
use crate::options::Options;

/// All that waits in a socket is read at once, as a rule.
const PIECE: usize = 256 * 1024;

struct Load {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    calls: Calls,
    piece: Vec<u8>,
}

impl Load {
    fn new(options: &Options) -> Fallible<Self> {
        let poll = Poll::new()?;
        let open = |number| Connection::open(options.port, poll.registry(), Token(number));
        let connections = (0..options.connections).map(open).collect::<Fallible<_>>()?;
        Ok(Self {
            poll,
            events: Events::with_capacity(options.connections),
            connections,
            calls: Calls::new(&options.commands, options.keys),
            piece: vec![0; PIECE],
        })
    }

    fn send(&mut self, connection: usize, calls: u64, due: Instant) -> Fallible<()> {
        self.connections[connection].send(calls, &mut self.calls, due)
    }

    /// The connections whose calls have been answered, with how many those were, after waiting so long at most.
    fn answered(&mut self, wait: Option<Duration>) -> Fallible<Vec<(usize, u64)>> {
        self.poll.poll(&mut self.events, wait)?;
        let mut answered = Vec::new();
        for event in &self.events {
            let Token(connection) = event.token();
            if let Some(calls) = self.connections[connection].go_on(&mut self.piece)? {
                answered.push((connection, calls));
            }
        }
        Ok(answered)
    }
}

/// Closed loop: each connection sends its next batch when the one before is answered.
pub fn fast(options: &Options, calls: u64, pipeline: u64) -> Fallible<String> {
    let mut load = Load::new(options)?;
    let (start, mut to_send, mut to_come) = (Instant::now(), calls, calls);
    let mut batch = || {
        let size = pipeline.min(to_send);
        to_send -= size;
        size
    };
    for connection in 0..options.connections {
        let size = batch();
        if size > 0 {
            load.send(connection, size, start)?;
        }
    }
    while to_come > 0 {
        for (connection, calls) in load.answered(None)? {
            to_come -= calls;
            let size = batch();
            if size > 0 {
                load.send(connection, size, start)?;
            }
        }
    }
    Ok(format!("{{\"calls\": {calls}, \"seconds\": {:.6}}}", start.elapsed().as_secs_f64()))
}

/// Open loop: a call is due at its time, however late the answers are, and its time counts from then. It waits for a free
/// connection, of which there must be enough.
pub fn steady(options: &Options, rate: u64, seconds: u64) -> Fallible<String> {
    let mut load = Load::new(options)?;
    let calls = rate * seconds;
    let mut free: Vec<usize> = (0..options.connections).collect();
    let mut times = Vec::with_capacity(usize::try_from(calls)?);
    let (start, mut sent) = (Instant::now(), 0);
    while (times.len() as u64) < calls {
        while sent < calls {
            let due = start + Duration::from_nanos(sent * 1_000_000_000 / rate);
            if due > Instant::now() {
                break;
            }
            let Some(connection) = free.pop() else { break };
            load.send(connection, 1, due)?;
            sent += 1;
        }
        // It spins: a timer would be late by more than a call takes.
        for (connection, _) in load.answered(Some(Duration::ZERO))? {
            times.push(load.connections[connection].due.elapsed());
            free.push(connection);
        }
    }
    let taken = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let percentile = |thousandths: usize| {
        let at = times.len() * thousandths / 1_000;
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Ok(format!(
        "{{\"calls\": {calls}, \"seconds\": {taken:.6}, \"p50\": {:.1}, \"p99\": {:.1}, \"p999\": {:.1}}}",
        percentile(500),
        percentile(990),
        percentile(999),
    ))
}
