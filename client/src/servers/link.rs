//! One server: the connection to it, and whether it answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, PushInfo, PushKind, RedisError, Value};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::breaker::Breaker;
use super::failure::Failure;
use super::flight::Flight;
use crate::builder::Settings;
use crate::error::{Error, ErrorKind};
use crate::observe::Observer;

/// How often a server that does not answer is looked at, give or take a quarter.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// A connection that lets calls run into their deadline, and has answered none for so long, is given up: what is behind it may be gone
/// without a word, and a new one finds out.
const SILENCE: Duration = Duration::from_secs(1);
/// The least time between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(5);
/// So many calls may be on their way to the socket of a connection.
const IN_FLIGHT: usize = 4_096;

/// One server. It is connected to when it is first asked, by one connection that all calls share, and again when that broke.
///
/// While the breaker is open no call reaches the server; a task probes it with `PING` until it answers.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    client: Client,
    config: AsyncConnectionConfig,
    name: String,
    deadline: Duration,
    connect_timeout: Duration,
    observer: Observer,
    connecting: Flight<Result<(), Failure>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// So many attempts to connect were made; each has the number that it was.
    attempts: u64,
    breaker: Breaker,
    probe: Option<AbortHandle>,
}

#[derive(Clone)]
struct Connection {
    number: u64,
    since: Instant,
    last_heard: Instant,
    redis: MultiplexedConnection,
}

impl Link {
    /// Connects to nothing yet. `name` is what errors and metrics call it.
    pub fn new(client: Client, name: String, settings: &Settings, observer: &Observer) -> Self {
        // The deadline is ours, since the driver's does not cover waiting for a connection.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.connect_timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(IN_FLIGHT);
        Self(Arc::new(Inner {
            client,
            config,
            name,
            deadline: settings.deadline,
            connect_timeout: settings.connect_timeout,
            observer: observer.clone(),
            connecting: Flight::new(RECONNECT_PAUSE),
            state: Mutex::default(),
        }))
    }

    /// What errors and metrics call it: its host and port.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it did not answer the last calls.
    pub fn is_silent(&self) -> bool {
        self.0.state().breaker.is_open()
    }

    /// Sends a command, and waits for the reply until the deadline. It is sent once at most.
    pub async fn call(&self, command: &Cmd, until: Instant) -> Result<Value, Failure> {
        self.guarded(until, async |mut redis| redis.send_packed_command(command).await).await
    }

    /// The same behind `ASKING`, for a slot that this server is about to take over.
    pub async fn call_asking(&self, command: &Cmd, until: Instant) -> Result<Value, Failure> {
        let mut pipeline = Pipeline::new();
        pipeline.cmd("ASKING").add_command(command.clone());
        self.guarded(until, async |mut redis| {
            let replies = redis.send_packed_commands(&pipeline, 1, 1).await?;
            Ok(replies.into_iter().next().unwrap_or(Value::Nil))
        })
        .await
    }

    /// Sends a command whether the breaker is open or not.
    pub async fn call_anyway(&self, command: &Cmd, until: Instant) -> Result<Value, Failure> {
        self.unguarded(until, async |mut redis| redis.send_packed_command(command).await).await
    }

    /// Gives the connection up, unless it is new: the name of the server may lead elsewhere now. Tells whether it did.
    pub fn renew(&self) -> bool {
        let mut state = self.0.state();
        let is_old = state.connection.as_ref().is_some_and(|connection| connection.since.elapsed() >= SILENCE);
        if is_old {
            state.connection = None;
        }
        is_old
    }

    async fn guarded(
        &self,
        until: Instant,
        send: impl AsyncFnOnce(MultiplexedConnection) -> Result<Value, RedisError>,
    ) -> Result<Value, Failure> {
        if self.0.state().breaker.is_open() {
            let text = format!("{} did not answer the last calls and is not asked", self.0.name);
            return Err(Failure::Unanswered(Error::new(ErrorKind::BreakerOpen, text)));
        }
        let result = self.unguarded(until, send).await;
        let now = Instant::now();
        let mut state = self.0.state();
        match &result {
            Err(Failure::Unanswered(_)) => {
                if state.breaker.failed(now) {
                    self.0.observer.breaker(&self.0.name, true);
                    state.probe = Some(tokio::spawn(probe(Arc::downgrade(&self.0))).abort_handle());
                }
            }
            _ => state.breaker.succeeded(now),
        }
        result
    }

    async fn unguarded(
        &self,
        until: Instant,
        send: impl AsyncFnOnce(MultiplexedConnection) -> Result<Value, RedisError>,
    ) -> Result<Value, Failure> {
        let connection = self.connection(until).await?;
        let replied = timeout_at(until, send(connection.redis)).await;
        let mut state = self.0.state();
        let current = state.connection.as_mut().filter(|current| current.number == connection.number);
        match replied {
            Err(_) => {
                if current.is_some_and(|current| current.last_heard.elapsed() >= SILENCE) {
                    state.connection = None;
                }
                Err(Failure::deadline(&format!("before {} answered", self.0.name)))
            }
            Ok(Ok(value)) => {
                if let Some(current) = current {
                    current.last_heard = Instant::now();
                }
                value.extract_error().map_err(|error| Failure::of(&error))
            }
            Ok(Err(error)) => {
                let failure = Failure::of(&error);
                if let Failure::Unanswered(_) = failure
                    && current.is_some()
                {
                    state.connection = None;
                }
                Err(failure)
            }
        }
    }

    /// The connection, or the one that is made now.
    async fn connection(&self, until: Instant) -> Result<Connection, Failure> {
        if let Some(connection) = self.0.state().connection.clone() {
            return Ok(connection);
        }
        match self.0.connecting.wait(until, || connect(Arc::downgrade(&self.0))).await {
            None => Err(Failure::deadline(&format!("before {} was connected", self.0.name))),
            Some(Err(failure)) => Err(failure),
            Some(Ok(())) => self.0.state().connection.clone().ok_or_else(|| {
                let text = format!("the connection to {} broke at once", self.0.name);
                Failure::Unanswered(Error::new(ErrorKind::Unreachable, text))
            }),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = &state.probe {
            probe.abort();
        }
    }
}

/// Makes a connection. Holds on to the link only to begin and to end, so that a link which nobody needs any more goes.
async fn connect(link: Weak<Inner>) -> Result<(), Failure> {
    let gone = || Failure::Unanswered(Error::new(ErrorKind::Unreachable, "the limiter is gone"));
    let (client, config, name, longest, number) = {
        let link = link.upgrade().ok_or_else(gone)?;
        let mut state = link.state();
        state.attempts += 1;
        (link.client.clone(), link.config.clone(), link.name.clone(), link.connect_timeout, state.attempts)
    };
    let config = config.set_push_sender(told_of_the_end(number, Weak::clone(&link)));
    // The driver's own timeout ends an attempt, too, but not while it resolves the name.
    let made = timeout(longest, client.get_multiplexed_async_connection_with_config(&config)).await;
    let redis = match made {
        Ok(Ok(redis)) => redis,
        Ok(Err(error)) => return Err(Failure::of(&error)),
        Err(_) => {
            let text = format!("{name} could not be connected within {longest:?}");
            return Err(Failure::Unanswered(Error::new(ErrorKind::Unreachable, text)));
        }
    };
    let link = link.upgrade().ok_or_else(gone)?;
    let now = Instant::now();
    link.state().connection = Some(Connection { number, since: now, last_heard: now, redis });
    Ok(())
}

/// Lets go of a connection as soon as the server closes it: the call that found out would be lost, though the server may be well and
/// have closed it because it was idle.
fn told_of_the_end(number: u64, link: Weak<Inner>) -> impl Fn(PushInfo) -> Result<(), SendError> {
    move |push| {
        if push.kind == PushKind::Disconnection
            && let Some(link) = link.upgrade()
        {
            link.state().connection.take_if(|connection| connection.number == number);
        }
        Ok(())
    }
}

/// Looks at a server until it answers, whatever that is, and closes the breaker.
async fn probe(link: Weak<Inner>) {
    loop {
        sleep(PROBE_EVERY.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        let Some(inner) = link.upgrade() else { return };
        let link = Link(inner);
        let until = Instant::now() + link.0.deadline;
        let answer = link.call_anyway(&redis::cmd("PING"), until).await;
        if !matches!(answer, Err(Failure::Unanswered(_))) {
            link.0.state().breaker.close();
            link.0.observer.breaker(&link.0.name, false);
            return;
        }
    }
}
