//! States in keys: reading them, and changing them.

use rl_limiter::layout::{State, Stored, Unreadable};
use rl_limiter::{LimiterState, Micros, Plan, concurrency, lease, sliding_log, token_bucket};

use super::lifetime::moved_expiry;
use crate::server::{Call, Error, Key, Mode, Value};

/// The argument that names the key.
const KEY: usize = 1;

/// What a call does to its key: decided, and not yet done.
#[derive(Clone, Debug)]
pub enum Change {
    /// To store this state.
    Store(State),
    /// To do this to the log.
    Log(sliding_log::Plan),
    /// To do this to the holders.
    Holders(concurrency::Plan),
    /// To do this to the leases.
    Leases(lease::Plan),
}

/// A token bucket.
pub enum Bucket<'a> {
    /// Nobody holds a slice of it; `None` if it is unused.
    Plain(Option<token_bucket::State>),
    /// Nodes hold slices of it.
    Leased(lease::State<'a>),
}

/// A key of a call, at the time of the call.
pub struct Slot<'a> {
    key: Key<'a>,
    now: Micros,
}

impl<'a> Slot<'a> {
    /// Opens the key that argument 1 names, and reads the clock.
    pub fn open(call: &'a mut Call<'_>, mode: Mode) -> Result<Self, Error> {
        let now = Micros::saturating(call.now());
        Ok(Self { key: call.open(KEY, mode)?, now })
    }

    /// The time of the call.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// What is stored under the key. If it is unused it is as good as nothing: whether the server has collected it yet makes no
    /// difference.
    pub fn load(&mut self) -> Result<Option<Stored<'_>>, Error> {
        let now = self.now;
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        let stored = Stored::read(bytes).map_err(unreadable)?;
        Ok(Some(stored).filter(|stored| !stored.is_unused(now)))
    }

    /// The state under the key, which must be of this kind.
    pub fn load_kind<S: LimiterState>(&mut self) -> Result<Option<S>, Error> {
        let now = self.now;
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        match State::decode(bytes) {
            Ok(state) if state.is_unused(now) => Ok(None),
            Ok(state) => S::try_from(state).map(Some).map_err(|other| other_kind(other.kind())),
            Err(_) => match self.load()? {
                Some(stored) => Err(other_kind(stored.kind())),
                None => Ok(None),
            },
        }
    }

    /// The token bucket under the key, which must be one.
    pub fn load_bucket(&mut self) -> Result<Bucket<'_>, Error> {
        let now = self.now;
        let Some(bytes) = self.bytes()? else { return Ok(Bucket::Plain(None)) };
        match State::decode(bytes) {
            Ok(state) if state.is_unused(now) => return Ok(Bucket::Plain(None)),
            Ok(State::TokenBucket(state)) => return Ok(Bucket::Plain(Some(state))),
            Ok(other) => return Err(other_kind(other.kind())),
            Err(_) => {}
        }
        match self.load()? {
            None => Ok(Bucket::Plain(None)),
            Some(Stored::Leases(leases)) => Ok(Bucket::Leased(leases)),
            Some(other) => Err(other_kind(other.kind())),
        }
    }

    /// The log under the key, which must be one.
    pub fn load_log(&mut self) -> Result<Option<sliding_log::State<'_>>, Error> {
        match self.load()? {
            None => Ok(None),
            Some(Stored::SlidingLog(log)) => Ok(Some(log)),
            Some(other) => Err(other_kind(other.kind())),
        }
    }

    /// The holders under the key, which must hold such.
    pub fn load_holders(&mut self) -> Result<Option<concurrency::State<'_>>, Error> {
        match self.load()? {
            None => Ok(None),
            Some(Stored::Concurrency(holders)) => Ok(Some(holders)),
            Some(other) => Err(other_kind(other.kind())),
        }
    }

    /// The bytes under the key, of a length that something stored may have; `None` if there is no key.
    fn bytes(&mut self) -> Result<Option<&[u8]>, Error> {
        match self.key.value() {
            Value::Missing => Ok(None),
            Value::String(length) if Stored::has_length(length) => Ok(Some(self.key.bytes())),
            Value::String(_) => Err(unreadable(Unreadable::NoLimiter)),
            Value::Other => Err(Error::fixed(c"WRONGTYPE Operation against a key holding the wrong kind of value")),
        }
    }

    /// Makes a change, if the server has the memory for it.
    pub fn change(&mut self, change: &Change) -> Result<(), Error> {
        check_memory([(&*self, change)].into_iter())?;
        self.carry_out(change)
    }

    /// Makes a change, for which the memory is there, moves the key's expiry if it must, and tells replicas and watchers.
    pub fn carry_out(&mut self, change: &Change) -> Result<(), Error> {
        match change {
            Change::Store(next) => self.store(next),
            Change::Log(plan) => self.change_bytes(plan),
            Change::Holders(plan) => self.change_bytes(plan),
            Change::Leases(plan) => self.change_bytes(plan),
        }
    }

    /// Whether the value becomes longer, which takes memory.
    fn grows_by(&self, change: &Change) -> bool {
        let length = match change {
            Change::Store(next) if next.is_unused(self.now) => 0,
            Change::Store(next) => next.length(),
            Change::Log(plan) => length_anew(plan),
            Change::Holders(plan) => length_anew(plan),
            Change::Leases(plan) => length_anew(plan),
        };
        !matches!(self.key.value(), Value::String(present) if present >= length) && length > 0
    }

    /// A state that is unused now leaves no key.
    fn store(&mut self, next: &State) -> Result<(), Error> {
        let key = &mut self.key;
        if next.is_unused(self.now) {
            delete(key);
            return Ok(());
        }
        let bytes = next.encode();
        let same_length = key.value() == Value::String(bytes.len());
        let present = key.expiry().filter(|_| same_length);
        let expiry = moved_expiry(present, next.unused_at(), self.now);
        let from = if same_length && expiry.is_none() { bytes.changed_from(key.bytes()) } else { 0 };

        put(key, from, &bytes, same_length)?;
        match expiry {
            Some(at) => {
                key.set_expiry(at);
                key.replicate_set(&bytes, at);
            }
            None => key.replicate_range(from, &bytes[from..]),
        }
        key.signal_modified();
        Ok(())
    }

    /// In place and by what was touched, if there is room, else as a whole.
    fn change_bytes(&mut self, plan: &impl Plan) -> Result<(), Error> {
        if plan.leaves_nothing() {
            delete(&mut self.key);
        } else if plan.fits() {
            let touched = plan.carry_out(self.key.bytes_mut());
            for range in touched.ranges() {
                self.key.replicate_value(range.clone());
            }
            let present = self.key.expiry();
            let unused_at = plan.unused_at(self.key.bytes());
            if let Some(at) = moved_expiry(present, unused_at, self.now) {
                self.key.set_expiry(at);
                self.key.replicate_expiry(at);
            }
        } else {
            let bytes = plan.make(self.key.bytes());
            let same_length = self.key.value() == Value::String(bytes.len());
            let present = self.key.expiry().filter(|_| same_length);
            put(&mut self.key, 0, &bytes, same_length)?;
            // What is replicated sets the expiry anew even where it stays.
            if let Some(at) = moved_expiry(present, plan.unused_at(&bytes), self.now).or(present) {
                self.key.set_expiry(at);
                self.key.replicate_set(&bytes, at);
            }
        }
        self.key.signal_modified();
        Ok(())
    }
}

/// Writes a value from an offset on, in place if it has that length. Should the server refuse, the old value may be gone: then the key is,
/// for replicas too.
fn put(key: &mut Key<'_>, from: usize, bytes: &[u8], same_length: bool) -> Result<(), Error> {
    if (same_length || key.create(bytes.len())) && key.write(from, &bytes[from..]) {
        return Ok(());
    }
    delete(key);
    Err(Error::fixed(c"ERR the server did not take the new state, and the key is gone"))
}

/// Deletes a key whose limiter is unused.
fn delete(key: &mut Key<'_>) {
    key.delete();
    key.replicate_delete();
    key.signal_modified();
}

/// How long a value becomes that is made anew; 0 if none is.
fn length_anew(plan: &impl Plan) -> usize {
    if plan.leaves_nothing() || plan.fits() { 0 } else { plan.length() }
}

/// Whether the server has the memory for all of these changes. It is asked once, and only if a value becomes longer.
pub fn check_memory<'s, 'k: 's>(mut changes: impl Iterator<Item = (&'s Slot<'k>, &'s Change)>) -> Result<(), Error> {
    match changes.find(|(slot, change)| slot.grows_by(change)) {
        Some((slot, _)) if slot.key.memory_is_full() => {
            Err(Error::fixed(c"OOM command not allowed when used memory > 'maxmemory'."))
        }
        _ => Ok(()),
    }
}

fn other_kind(kind: &str) -> Error {
    Error::formatted(format_args!("WRONGTYPE the key holds a {kind} limiter"))
}

fn unreadable(why: Unreadable) -> Error {
    Error::fixed(match why {
        Unreadable::NoLimiter => c"WRONGTYPE the key holds a string that is no limiter",
        Unreadable::Newer => c"WRONGTYPE the key holds a limiter of a newer version of redis-rl",
    })
}
