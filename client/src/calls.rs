//! Calls to Redis, and how long they take.

use std::sync::Arc;

use tokio::time::Instant;

use crate::error::Error;
use crate::lease::RoundTrip;
use crate::observe::Observer;
use crate::servers::{Command, Reply, Servers};

/// Asks Redis, and notes how long that takes.
pub(crate) struct Calls {
    servers: Servers,
    observer: Observer,
    round_trip: Arc<RoundTrip>,
}

impl Calls {
    pub fn new(servers: Servers, observer: Observer) -> Self {
        Self { servers, observer, round_trip: Arc::default() }
    }

    /// See [`Servers::ask`].
    pub async fn send(&self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        let asked = Instant::now();
        let reply = self.servers.ask(&command).await;
        let took = asked.elapsed();
        self.observer.asked(took);
        if reply.is_ok() {
            self.round_trip.took(took);
        }
        reply
    }

    /// The same for what no caller waits for, which is not noted.
    pub async fn send_aside(&self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.servers.ask(&command).await
    }

    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    pub fn round_trip(&self) -> &Arc<RoundTrip> {
        &self.round_trip
    }
}
