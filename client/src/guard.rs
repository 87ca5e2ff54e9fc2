//! A place among what goes on at the same time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rl_limiter::Cost;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::calls::Calls;
use crate::concurrency::ConcurrencyPolicy;
use crate::decision::Decision;
use crate::error::{Error, ErrorKind};
use crate::lease::fresh_id;
use crate::places::Place;
use crate::servers::Command;

/// A renewal that failed is tried again after a tenth of the ttl, but within this.
const LONGEST_RETRY: Duration = Duration::from_secs(1);
/// No two calls follow each other faster.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// A place that [`Limiter::acquire`](crate::Limiter::acquire) gave. It is held until this is dropped or [released](Self::release), or lost.
///
/// A task renews it every third of the policy's ttl, so that it lasts as long as this process does, and no longer. It is lost when Redis
/// says that it has gone, or could not be asked for a whole ttl: somebody else may have it by now. [`Guard::lost`] tells; what to do then is the
/// holder's to say.
#[must_use = "a place is given back when its guard is dropped"]
pub struct Guard {
    decision: Decision,
    /// As counted by this process. Given back when the guard is dropped.
    _place: Option<Place>,
    /// `None` where Redis has no part in it.
    seat: Option<Arc<Seat>>,
    renewing: Option<AbortHandle>,
}

/// A holder that Redis knows, or may know.
pub(crate) struct Seat {
    calls: Arc<Calls>,
    runtime: Handle,
    key: String,
    holder: String,
    limit: String,
    ttl: Duration,
    ttl_argument: String,
    units: String,
    state: watch::Sender<Held>,
}

#[derive(Clone, Copy)]
struct Held {
    /// Until when Redis keeps it at least; `None` if it does not know of it.
    until: Option<Instant>,
    is_lost: bool,
    /// Whether Redis may know of it, and has to be told when it ends.
    is_owed: bool,
}

impl Seat {
    /// A holder that is to be; `None` without a runtime.
    pub fn new(calls: &Arc<Calls>, key: &str, policy: &ConcurrencyPolicy, units: Cost) -> Option<Self> {
        Some(Self {
            calls: Arc::clone(calls),
            runtime: Handle::try_current().ok()?,
            key: key.to_owned(),
            holder: fresh_id(),
            limit: policy.limit.get().to_string(),
            ttl: policy.ttl(),
            ttl_argument: policy.ttl.to_string(),
            units: units.get().to_string(),
            state: watch::Sender::new(Held { until: None, is_lost: false, is_owed: false }),
        })
    }

    /// Takes the place, or renews it: with `renew_only` only if it is there.
    pub async fn ask(&self, renew_only: bool) -> Result<rl_limiter::Decision, Error> {
        let sent = Instant::now();
        let mut arguments = vec![self.limit.as_str(), &self.ttl_argument, &self.holder, &self.units];
        arguments.extend(renew_only.then_some("XX"));
        // Whoever gives up waiting for this may have the place all the same.
        let was_owed = self.state.borrow().is_owed;
        self.state.send_modify(|held| held.is_owed = true);
        let replied = self.calls.send(Command::new("RL.CONCURRENT", &self.key, &arguments)).await;
        if replied.as_ref().is_err_and(|error| error.kind() == ErrorKind::BreakerOpen) {
            self.state.send_modify(|held| held.is_owed = was_owed);
        }
        let decision = replied?.unwrap_or_default().decision()?;
        self.state.send_modify(|held| {
            if decision.allowed {
                held.until = Some(sent + self.ttl);
            } else {
                held.is_lost |= held.until.is_some();
                held.is_owed = false;
            }
        });
        Ok(decision)
    }

    fn is_lost(&self) -> bool {
        let held = *self.state.borrow();
        held.is_lost || held.until.is_some_and(|until| until <= Instant::now())
    }

    async fn leave(&self) -> Result<(), Error> {
        self.calls.send(Command::new("RL.RELEASE", &self.key, &[&self.holder])).await.map(drop)
    }
}

impl Drop for Seat {
    /// Gives the place back, where nobody did.
    fn drop(&mut self) {
        if !self.state.borrow().is_owed {
            return;
        }
        let (calls, key, holder) =
            (Arc::clone(&self.calls), std::mem::take(&mut self.key), std::mem::take(&mut self.holder));
        drop(self.runtime.spawn(async move {
            // If it fails the place is free again when the ttl has passed.
            let left = calls.send(Command::new("RL.RELEASE", &key, &[&holder])).await;
            let _ = left.inspect_err(|error| calls.observer().failed(error));
        }));
    }
}

impl Guard {
    /// Of a place that Redis keeps, or is to know of as soon as it can be asked.
    pub(crate) fn renewed(decision: Decision, place: Option<Place>, seat: Seat) -> Self {
        let seat = Arc::new(seat);
        let renewing = seat.runtime.spawn(renew(Arc::clone(&seat))).abort_handle();
        Self { decision, _place: place, seat: Some(seat), renewing: Some(renewing) }
    }

    /// Of a place that this process alone knows of, or of none.
    pub(crate) fn local(decision: Decision, place: Option<Place>) -> Self {
        Self { decision, _place: place, seat: None, renewing: None }
    }

    /// What was decided when it was acquired.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Whether the place is held: it was not lost.
    pub fn is_held(&self) -> bool {
        self.seat.as_ref().is_none_or(|seat| !seat.is_lost())
    }

    /// Waits until the place is lost, which may be never. For a `select!` beside the work that needs it.
    pub async fn lost(&self) {
        let Some(seat) = &self.seat else { return std::future::pending().await };
        let mut held = seat.state.subscribe();
        while !seat.is_lost() {
            let until = held.borrow_and_update().until;
            let changed = held.changed();
            match until {
                Some(until) => drop(timeout_at(until, changed).await),
                None => drop(changed.await),
            }
        }
    }

    /// Gives the place back, and waits until Redis knows. An error if it may not: the place is then free again after the ttl. To drop the
    /// guard gives it back, too, in the background.
    pub async fn release(mut self) -> Result<(), Error> {
        self.stop();
        let Some(seat) = self.seat.take() else { return Ok(()) };
        let was_owed = seat.state.send_replace(Held { until: None, is_lost: true, is_owed: false }).is_owed;
        match was_owed {
            true => seat.leave().await.inspect_err(|error| seat.calls.observer().failed(error)),
            false => Ok(()),
        }
    }

    fn stop(&mut self) {
        if let Some(renewing) = self.renewing.take() {
            renewing.abort();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("decision", &self.decision)
            .field("is_held", &self.is_held())
            .finish_non_exhaustive()
    }
}

/// Renews a place until it is lost. One that was given in an outage is made known to Redis when that can be asked again.
async fn renew(seat: Arc<Seat>) {
    let regular = (seat.ttl / 3).max(SHORTEST_PAUSE);
    let after_failure = (seat.ttl / 10).clamp(SHORTEST_PAUSE, LONGEST_RETRY);
    let mut next = Instant::now() + if seat.state.borrow().until.is_some() { regular } else { after_failure };
    loop {
        sleep_until(next).await;
        let until = seat.state.borrow().until;
        let asked = Instant::now();
        let pause = match seat.ask(until.is_some()).await {
            Ok(decision) if decision.allowed => regular,
            Ok(_) => after_failure.max(regular),
            Err(error) => {
                seat.calls.observer().failed(&error);
                after_failure
            }
        };
        if seat.is_lost() {
            seat.state.send_modify(|held| held.is_lost = true);
            return;
        }
        next = asked + pause;
    }
}

/// A place that can't be asked for.
pub(crate) fn no_runtime() -> Error {
    Error::new(ErrorKind::Invalid, "a limiter that asks Redis needs a tokio runtime")
}
