//! One server: the connection to it, and whether it answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Pipeline, ProtocolVersion, RedisError, Value};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::breaker::Breaker;
use super::failure::Failure;
use super::flight::{Flight, NoResult};
use crate::builder::Settings;
use crate::error::{Error, ErrorKind};
use crate::observe::Observer;

/// How often a server that does not answer is looked at, give or take a quarter.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// A connection that lets calls run into their deadline, and has answered none for so long, is given up: what is behind it may be gone
/// without a word, and a new one finds out.
const SILENCE: Duration = Duration::from_secs(1);
/// A call that was given up after so long counts as one that was not answered.
const GIVEN_UP_IN_VAIN: Duration = Duration::from_millis(100);
/// A probe that has done nothing for so long, a deadline not counted, is in a runtime that does not run.
const PROBE_STUCK: Duration = Duration::from_secs(1);
/// An attempt to connect ends in time, if its runtime runs; this is to spare.
const CONNECT_STUCK: Duration = Duration::from_secs(1);
/// The least time between attempts to connect that fail, …
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// … and the most: a server that refuses, as one does to which the password is wrong, never opens the breaker, so the pause is doubled.
const LONGEST_RECONNECT_PAUSE: Duration = Duration::from_secs(1);
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
    connecting: Flight<Result<(), NotMade>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    connections_made: u64,
    /// Attempts to connect in a row that were refused.
    refusals: u32,
    breaker: Breaker,
    probe: Option<Probe>,
}

struct Probe {
    task: AbortHandle,
    /// When it last did something.
    seen: Instant,
}

#[derive(Clone)]
struct Connection {
    number: u64,
    since: Instant,
    /// The first call that was sent since the last reply.
    waiting_since: Option<Instant>,
    redis: MultiplexedConnection,
    /// Gone when the connection is.
    driver: Weak<()>,
}

impl Connection {
    /// Whether it is known to be of no use any more: the server closed it, or the runtime in which it was made has ended.
    fn is_over(&self) -> bool {
        self.driver.strong_count() == 0
    }
}

impl State {
    /// The connection with this number, unless another one has taken its place.
    fn current(&mut self, number: u64) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|current| current.number == number)
    }

    fn is_connected(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_over())
    }
}

/// A connection could not be made, and for so long no other attempt is.
#[derive(Clone)]
struct NotMade {
    failure: Failure,
    pause: Duration,
}

/// A call that waits. If it is given up before it ends, as by a caller with a shorter deadline of his own, the wait was in vain all the same.
struct Pending<'a> {
    link: &'a Link,
    since: Instant,
    is_over: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.since.elapsed() >= GIVEN_UP_IN_VAIN {
            self.link.account(false);
        }
    }
}

impl Link {
    /// Connects to nothing yet. `name` is what errors and metrics call it.
    pub fn new(
        info: ConnectionInfo,
        name: String,
        settings: &Settings,
        observer: &Observer,
    ) -> Result<Self, RedisError> {
        // By version 3 of the protocol the driver logs in with HELLO, and passes on what the server says to it; an error to AUTH it
        // replaces by its own words, whether that was a wrong password or a server that takes no more connections.
        let login = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(login))?;
        // The deadline is ours, since the driver's does not cover waiting for a connection.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.connect_timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(IN_FLIGHT);
        Ok(Self(Arc::new(Inner {
            client,
            config,
            name,
            deadline: settings.deadline,
            connect_timeout: settings.connect_timeout,
            observer: observer.clone(),
            connecting: Flight::new(
                |made| made.as_ref().err().map_or(Duration::ZERO, |not_made| not_made.pause),
                settings.connect_timeout.saturating_add(CONNECT_STUCK),
            ),
            state: Mutex::default(),
        })))
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
        if self.is_left_alone() {
            // Who asks again and again without a pause would otherwise let nobody else run, the probe included.
            yield_now().await;
            let text = format!("{} did not answer the last calls and is not asked", self.0.name);
            return Err(Failure::Unanswered(Error::new(ErrorKind::BreakerOpen, text)));
        }
        let mut pending = Pending { link: self, since: Instant::now(), is_over: false };
        let result = self.unguarded(until, send).await;
        pending.is_over = true;
        self.account(!matches!(result, Err(Failure::Unanswered(_))));
        result
    }

    /// A call was answered, or was not.
    fn account(&self, answered: bool) {
        let now = Instant::now();
        let opened = {
            let mut state = self.0.state();
            if answered {
                state.breaker.succeeded(now);
            }
            let opened = !answered && state.breaker.failed(now);
            if opened {
                self.probe(&mut state);
            }
            opened
        };
        if opened {
            self.0.observer.breaker(&self.0.name, true);
        }
    }

    /// Whether the server is not to be asked. Then somebody looks whether it answers again.
    fn is_left_alone(&self) -> bool {
        let mut state = self.0.state();
        let is_open = state.breaker.is_open();
        if is_open {
            self.probe(&mut state);
        }
        is_open
    }

    /// Looks whether the server answers, unless somebody does. Who did may have ended with his runtime, or be in one that does not run.
    fn probe(&self, state: &mut State) {
        let longest = self.0.deadline.saturating_add(PROBE_STUCK);
        if state.probe.as_ref().is_some_and(|probe| !probe.task.is_finished() && probe.seen.elapsed() < longest) {
            return;
        }
        let task = tokio::spawn(probe(Arc::downgrade(&self.0))).abort_handle();
        if let Some(former) = state.probe.replace(Probe { task, seen: Instant::now() }) {
            former.task.abort();
        }
    }

    async fn unguarded(
        &self,
        until: Instant,
        send: impl AsyncFnOnce(MultiplexedConnection) -> Result<Value, RedisError>,
    ) -> Result<Value, Failure> {
        let connection = self.connection(until).await?;
        if let Some(current) = self.0.state().current(connection.number) {
            current.waiting_since.get_or_insert_with(Instant::now);
        }
        let replied = timeout_at(until, send(connection.redis)).await;
        let mut state = self.0.state();
        let current = state.current(connection.number);
        match replied {
            Err(_) => {
                if current.and_then(|current| current.waiting_since).is_some_and(|since| since.elapsed() >= SILENCE) {
                    state.connection = None;
                }
                Err(Failure::deadline(&format!("before {} answered", self.0.name)))
            }
            Ok(Ok(value)) => {
                if let Some(current) = current {
                    current.waiting_since = None;
                }
                value.extract_error().map_err(|error| Failure::of(&error))
            }
            Ok(Err(error)) => {
                let failure = Failure::of(&error);
                // What is no reply leaves nothing to be read behind it, too.
                let is_broken = matches!(failure, Failure::Unanswered(_)) || error.is_unrecoverable_error();
                if is_broken && current.is_some() {
                    state.connection = None;
                }
                Err(failure)
            }
        }
    }

    /// The connection, or the one that is made now.
    async fn connection(&self, until: Instant) -> Result<Connection, Failure> {
        let connection = self.0.state().connection.clone();
        if let Some(connection) = connection.filter(|connection| !connection.is_over()) {
            return Ok(connection);
        }
        match self.0.connecting.wait(until, || connect(Arc::downgrade(&self.0))).await {
            Err(NoResult::Late) => Err(Failure::deadline(&format!("before {} was connected", self.0.name))),
            Err(NoResult::Ended) => Err(Failure::ended(&format!("connect to {}", self.0.name))),
            Ok(Err(not_made)) => Err(not_made.failure),
            Ok(Ok(())) => self.0.state().connection.clone().ok_or_else(|| {
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
            probe.task.abort();
        }
        if state.breaker.is_open() {
            self.observer.breaker_gone(&self.name);
        }
    }
}

/// Makes a connection, and says how long to wait for the next attempt if it can't be made.
async fn connect(link: Weak<Inner>) -> Result<(), NotMade> {
    let made = try_to_connect(&link).await;
    let Some(link) = link.upgrade() else {
        return made.map_err(|failure| NotMade { failure, pause: RECONNECT_PAUSE });
    };
    let mut state = link.state();
    state.refusals = match made {
        Err(Failure::Refused(_)) => state.refusals.saturating_add(1),
        _ => 0,
    };
    let pause = pause_after(state.refusals);
    made.map_err(|failure| NotMade { failure, pause })
}

/// How long no attempt to connect follows so many that were refused.
fn pause_after(refusals: u32) -> Duration {
    RECONNECT_PAUSE.saturating_mul(1 << refusals.saturating_sub(1).min(10)).min(LONGEST_RECONNECT_PAUSE)
}

/// Makes a connection. Holds on to the link only to begin and to end, so that a link which nobody needs any more goes.
async fn try_to_connect(link: &Weak<Inner>) -> Result<(), Failure> {
    let gone = || Failure::Unanswered(Error::new(ErrorKind::Unreachable, "the limiter is gone"));
    let (client, config, name, longest) = {
        let link = link.upgrade().ok_or_else(gone)?;
        // Another attempt may have ended since this one was asked for.
        if link.state().is_connected() {
            return Ok(());
        }
        (link.client.clone(), link.config.clone(), link.name.clone(), link.connect_timeout)
    };
    // The driver drops what it would tell news by when the connection breaks, or when its task ends.
    let alive = Arc::new(());
    let driver = Arc::downgrade(&alive);
    let config = config.set_push_sender(move |_| {
        let _driver = &alive;
        Ok::<(), ()>(())
    });
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
    let mut state = link.state();
    // One that was given up may have succeeded meanwhile: calls are on its connection.
    if state.is_connected() {
        return Ok(());
    }
    state.connections_made += 1;
    let (number, now) = (state.connections_made, Instant::now());
    state.connection = Some(Connection { number, since: now, waiting_since: None, redis, driver });
    Ok(())
}

/// Looks at a server until it answers, whatever that is, and closes the breaker.
async fn probe(link: Weak<Inner>) {
    loop {
        sleep(PROBE_EVERY.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        let Some(inner) = link.upgrade() else { return };
        let link = Link(inner);
        if let Some(probe) = &mut link.0.state().probe {
            probe.seen = Instant::now();
        }
        let until = Instant::now() + link.0.deadline;
        let answer = link.call_anyway(&redis::cmd("PING"), until).await;
        if !matches!(answer, Err(Failure::Unanswered(_))) {
            link.0.state().breaker.close();
            link.0.observer.breaker(&link.0.name, false);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use redis::IntoConnectionInfo as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{Link, connect, pause_after};
    use crate::builder::Settings;
    use crate::observe::Observer;

    #[test]
    fn a_server_that_refuses_is_asked_less_and_less_often() {
        let pauses: Vec<u128> = (0..9).map(|refusals| pause_after(refusals).as_millis()).collect();
        assert_eq!(pauses, [50, 50, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
        assert_eq!(pause_after(u32::MAX), Duration::from_secs(1));
    }

    /// Says yes to all, on every connection.
    async fn agree(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4_096];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    let commands = buffer[..count].iter().filter(|byte| **byte == b'*').count();
                    if stream.write_all("+OK\r\n".repeat(commands).as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    }

    #[tokio::test]
    async fn of_two_attempts_at_once_the_first_connection_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        tokio::spawn(agree(listener));
        let info = url.into_connection_info().unwrap();
        let link = Link::new(info, "it".to_owned(), &Settings::default(), &Observer::default()).unwrap();
        let weak = || Arc::downgrade(&link.0);
        let (first, second) = tokio::join!(connect(weak()), connect(weak()));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(link.0.state().connections_made, 1, "calls may be on the first already");
    }
}
