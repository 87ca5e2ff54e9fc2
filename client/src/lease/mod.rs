//! Leases: slices of buckets that Redis grants to this process, which then decides alone until they are used up.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `size` | how much is leased, and for how long |
//! | `demand`, `round_trip` | what that depends on |
//! | `held` | one bucket's lease |
//! | `id` | by what Redis knows this process |
//!
//! What a node may spend, and when it must stop, is [`Holding`](rl_limiter::lease::Holding)'s to say.

mod demand;
mod held;
mod id;
mod round_trip;
mod size;
#[cfg(test)]
mod world;

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rl_limiter::{Decision, TokenBucket};
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;
use tokio::time::{sleep, timeout};

use self::held::{Call, Lease, Look, Take};
pub(crate) use self::id::fresh_id;
pub(crate) use self::round_trip::RoundTrip;
use crate::calls::Calls;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};
use crate::policy::Policy;
use crate::servers::{Command, Grant};
use crate::table::Table;

/// A check that has waited for so many calls in vain is decided by Redis.
const MOST_WAITS: usize = 4;

/// All that this process has leased.
pub(crate) struct Leases {
    calls: Arc<Calls>,
    clock: Clock,
    deadline: Duration,
    table: Table<Arc<Lease>>,
    id: String,
    made: AtomicU64,
}

/// Tokens that a check took of a lease.
pub(crate) struct Spent {
    lease: Arc<Lease>,
    seq: u64,
    tokens: u64,
}

impl Leases {
    /// Of about `most` buckets.
    pub fn new(calls: &Arc<Calls>, clock: Clock, deadline: Duration, most: usize) -> Self {
        let (calls, table) = (Arc::clone(calls), Table::new(most));
        Self { calls, clock, deadline, table, id: fresh_id(), made: AtomicU64::new(0) }
    }

    /// Decides a check by what is leased, and tells what it took. `None` where Redis is to be asked about this one.
    pub async fn decide(
        self: &Arc<Self>,
        policy: &Policy,
        bucket: TokenBucket,
        key: &str,
        cost: u64,
    ) -> Option<Result<(Decision, Option<Spent>), Error>> {
        let now = self.clock.elapsed();
        let lease = self.lease(policy, bucket, key, now);
        // Who checks by other parameters shares the key, but not the lease.
        if !lease.is_of(bucket) {
            return None;
        }
        let (mut take, mut call) = lease.ask_for(now, cost);
        for _ in 0..MOST_WAITS {
            if let Some(call) = call {
                self.send(&lease, call);
            }
            match take {
                Take::Spent { decision, seq } => {
                    // Who asks again and again without a pause gets all answers from here, and must let others run.
                    consume_budget().await;
                    return Some(Ok((decision, Some(Spent { lease, seq, tokens: cost }))));
                }
                Take::Denied(decision) => {
                    consume_budget().await;
                    return Some(Ok((decision, None)));
                }
                Take::Direct => return None,
                Take::Wait => {}
            }
            let mut ended = pin!(lease.ended());
            // A call that ended before this may have fetched something.
            ended.as_mut().enable();
            match lease.under_way() {
                Some(until) => {
                    if timeout(until.saturating_sub(self.clock.elapsed()), ended).await.is_err() {
                        let text = "the deadline passed before tokens were leased";
                        return Some(Err(Error::new(ErrorKind::Deadline, text)));
                    }
                }
                None => {
                    if let Some(error) = lease.failure(self.clock.elapsed()) {
                        return Some(Err(error));
                    }
                }
            }
            (take, call) = lease.take(self.clock.elapsed(), cost);
        }
        None
    }

    /// What is kept of a bucket.
    fn lease(&self, policy: &Policy, bucket: TokenBucket, key: &str, now: Duration) -> Arc<Lease> {
        let moment = self.clock.at(now);
        let lease = self.table.with(key, moment, |held| match held {
            Some(lease) => (Arc::clone(lease), None),
            None => {
                let node = format!("{}-{:x}", self.id, self.made.fetch_add(1, Ordering::Relaxed));
                let (policy, arguments) = (policy.shared_name(), Arc::clone(&policy.rule().arguments));
                let lease = Lease::new(key, node, policy, bucket, arguments, self.calls.round_trip(), now);
                let lease = Arc::new(lease);
                (Arc::clone(&lease), Some(lease))
            }
        });
        lease.remember(moment);
        lease
    }

    /// Takes back what a check took. Whether that can be done here: what Redis was told is spent, only Redis takes back.
    pub fn restore(&self, spent: &Spent) -> bool {
        spent.lease.restore(self.clock.elapsed(), spent.seq, spent.tokens)
    }

    /// What was held of a bucket when calls began to fail. Told once.
    pub fn held_at_failure(&self, key: &str) -> u64 {
        self.table.with(key, self.clock.now(), |held| (held.map_or(0, |lease| lease.held_at_failure()), None))
    }

    /// Sends a call in a task of its own, and sees that somebody keeps the lease.
    fn send(self: &Arc<Self>, lease: &Arc<Lease>, call: Call) {
        let flight = Flight { lease: Arc::clone(lease), clock: self.clock, seq: Some(call.statement.seq) };
        let Ok(runtime) = Handle::try_current() else { return };
        lease.sent(self.clock.elapsed() + self.deadline);
        drop(runtime.spawn(fly(Arc::clone(&self.calls), flight, call)));
        if lease.needs_keeper(self.clock.elapsed()) {
            drop(runtime.spawn(keep(Arc::downgrade(self), Arc::clone(lease))));
        }
    }
}

/// What is left goes back, if there is a runtime that lives on to see to it; else Redis takes it back when the ttl has passed.
impl Drop for Leases {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let now = self.clock.elapsed();
        for lease in self.table.drain() {
            if let Some(call) = lease.leave(now) {
                let flight = Flight { lease, clock: self.clock, seq: Some(call.statement.seq) };
                drop(runtime.spawn(fly(Arc::clone(&self.calls), flight, call)));
            }
        }
    }
}

/// A call that is under way. Where its task ends before it does, as with its runtime, nobody waits for it any more.
struct Flight {
    lease: Arc<Lease>,
    clock: Clock,
    seq: Option<u64>,
}

impl Flight {
    fn land(&mut self, heard: Result<Grant, Error>) {
        if let Some(seq) = self.seq.take() {
            self.lease.heard(seq, self.clock.elapsed(), heard);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let text = "the task that was to lease tokens ended before it did";
        self.land(Err(Error::new(ErrorKind::Unreachable, text)));
    }
}

async fn fly(calls: Arc<Calls>, mut flight: Flight, call: Call) {
    let lease = Arc::clone(&flight.lease);
    let heard = lease_call(&calls, &lease, &call).await.inspect_err(|error| calls.observer().failed(error));
    flight.land(heard);
    calls.observer().leased(&lease.policy, lease.more_than_told(flight.clock.elapsed()));
}

async fn lease_call(calls: &Calls, lease: &Lease, call: &Call) -> Result<Grant, Error> {
    let [capacity, rate] = &*lease.arguments;
    let [seq, have, want] = [call.statement.seq, call.statement.have, call.statement.want].map(|n| n.to_string());
    let (ttl, least) = (format!("{}ms", call.size.ttl.as_millis()), call.size.least.to_string());
    let arguments = [capacity, rate, &lease.node, &seq, &have, &want, &ttl, "MIN", &least];
    let reply = calls.send(Command::new("RL.LEASE", &lease.key, &arguments)).await?;
    reply.unwrap_or_default().grant()
}

/// Renews a lease before Redis would take it back, and gives it back when nobody asks any more.
async fn keep(leases: Weak<Leases>, lease: Arc<Lease>) {
    loop {
        let pause = {
            let Some(leases) = leases.upgrade() else { return };
            match lease.look(leases.clock.elapsed()) {
                Look::Later(pause) => pause,
                Look::Renew(call, pause) => {
                    leases.send(&lease, call);
                    pause
                }
                Look::GiveBack(call) => {
                    leases.send(&lease, call);
                    return;
                }
                Look::End => return,
            }
        };
        sleep(pause).await;
    }
}
