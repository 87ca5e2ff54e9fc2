//! How many servers share the limits: each says that it is there, and is told how many are.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::calls::Calls;
use crate::error::{Error, ErrorKind};
use crate::lease::fresh_id;
use crate::servers::Command;

/// How often it is said, give or take a tenth, …
const EVERY: Duration = Duration::from_millis(900);
/// … and how often while that fails.
const WHILE_IT_FAILS: Duration = Duration::from_millis(250);
/// Who is silent for so long is gone. So the others know within three seconds.
const TTL: &str = "2s";
/// What is refused for reasons that stay is tried again so much later.
const AFTER_A_FAULT: Duration = Duration::from_secs(60);
/// Who has said nothing for so long, though a call takes less, is in a runtime that does not run. A deadline comes on top.
const STUCK: Duration = Duration::from_secs(3);

/// A place in the fleet: a row under a key of its own, by the same rules as a lease's. Every server that is there has one, so the reply to
/// each call tells how many they are.
pub(crate) struct Fleet {
    calls: Arc<Calls>,
    key: String,
    node: String,
    deadline: Duration,
    /// 0 until it is known.
    nodes: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When its task last did something.
    seen: Option<Instant>,
    /// Counts tasks: only the last one goes on.
    task: u64,
    seq: u64,
    have: u64,
}

impl Fleet {
    /// The fleet with this name.
    pub fn new(calls: &Arc<Calls>, prefix: &str, name: &str, deadline: Duration) -> Self {
        Self {
            calls: Arc::clone(calls),
            key: format!("{prefix}:{{fleet:{name}}}"),
            node: fresh_id(),
            deadline,
            nodes: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// How many servers there are, as it was last told.
    pub fn nodes(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.nodes.load(Ordering::Relaxed))
    }

    /// Sees that somebody says, in this runtime or another, that this server is there.
    pub fn join(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let (now, stuck) = (Instant::now(), STUCK.saturating_add(self.deadline));
        let task = {
            let mut state = self.state();
            // While nothing but faults come back its task does little.
            if state.seen.is_some_and(|seen| now < seen + stuck) {
                return;
            }
            state.seen = Some(now);
            state.task += 1;
            state.task
        };
        drop(runtime.spawn(be_there(Arc::downgrade(self), task)));
    }

    /// Says that this server is there, if that is still the task's to say. How long to wait until it is said again.
    async fn say(&self, task: u64) -> Option<Duration> {
        let (seq, have) = {
            let mut state = self.state();
            if state.task != task {
                return None;
            }
            state.seen = Some(Instant::now());
            state.seq += 1;
            (state.seq, state.have)
        };
        let pause = match self.call(seq, have, 1).await {
            Ok((holding, nodes)) => {
                self.state().have = holding;
                // The first reply does not know of those that begin at the same time.
                if have > 0 {
                    self.nodes.store(nodes, Ordering::Relaxed);
                }
                EVERY.mul_f64(0.9 + fastrand::f64() / 5.0)
            }
            Err(error) if error.is_outage() => WHILE_IT_FAILS,
            Err(error) => {
                self.calls.observer().fleet_unknown(&error);
                AFTER_A_FAULT
            }
        };
        let next = Instant::now() + pause;
        self.state().seen = Some(next);
        Some(pause)
    }

    /// A statement as of a lease. What is held, and the number of nodes.
    async fn call(&self, seq: u64, have: u64, want: u64) -> Result<(u64, u32), Error> {
        let [seq, have, want] = [seq, have, want].map(|number| number.to_string());
        let arguments = ["1024", "1", &self.node, &seq, &have, &want, TTL];
        let reply = self.calls.send_aside(Command::new("RL.LEASE", &self.key, &arguments)).await?;
        let grant = reply.unwrap_or_default().grant()?;
        let nodes = u32::try_from(grant.nodes).map_err(|_| Error::new(ErrorKind::Rejected, "too many nodes"))?;
        Ok((grant.holding, nodes))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The others are told at once, if there is a runtime that lives on to see to it.
impl Drop for Fleet {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let (seq, have, was_there) = {
            let state = self.state();
            (state.seq + 1, state.have, state.seq > 0)
        };
        if was_there {
            let gone = Self {
                calls: Arc::clone(&self.calls),
                key: std::mem::take(&mut self.key),
                node: std::mem::take(&mut self.node),
                deadline: self.deadline,
                nodes: AtomicU32::new(0),
                state: Mutex::default(),
            };
            drop(runtime.spawn(async move {
                // If it fails the others see it when the ttl has passed.
                let _ = gone.call(seq, have, 0).await;
            }));
        }
    }
}

async fn be_there(fleet: Weak<Fleet>, task: u64) {
    loop {
        let pause = {
            let Some(fleet) = fleet.upgrade() else { return };
            fleet.say(task).await
        };
        let Some(pause) = pause else { return };
        sleep(pause).await;
    }
}
