//! States in keys: reading them, and changing them.

use std::num::NonZeroUsize;

use rl_limiter::layout::{State, Stored, Unreadable};
use rl_limiter::{LimiterState, Micros, Plan, concurrency, lease, sliding_log, token_bucket};

use super::lifetime::{is_right, moved_expiry};
use crate::server::{Call, Counter, Error, Key, Mode, RareLine, Value};

/// The argument that names the key, or the first one.
pub const KEY: usize = 1;

/// How often a call found a state that was later than its own time, and brought it to now.
pub static CLOCK_STEPS_BACK: Counter = Counter::new();
static CLOCK_STEPPED_BACK: RareLine = RareLine::new();

/// What a call does to its key: decided, and not yet done.
#[derive(Clone, Debug)]
pub enum Change {
    /// To store this state, which is in use.
    Store(State),
    /// To delete the key: nothing is in use any more.
    Delete,
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

/// What is under a key, where a state of one kind is looked for.
enum Numbers<S> {
    /// Nothing.
    None,
    /// A state of that kind, which may be unused.
    State(S),
    /// Something else, or no limiter.
    Other,
}

/// A key of a call, at the time of the call.
pub struct Slot<'a> {
    key: Key<'a>,
    now: Micros,
    /// Microseconds by which what was loaded, but for holders, is later than now: the clock went back, or somebody planted it.
    later: u64,
}

impl<'a> Slot<'a> {
    /// Opens the key that argument 1 names, and reads the clock.
    #[inline(always)]
    pub fn open(call: &'a mut Call<'_>, mode: Mode) -> Result<Self, Error> {
        let now = Micros::saturating(call.now());
        Ok(Self { key: call.open(KEY, mode)?, now, later: 0 })
    }

    /// Opens the keys that every `step`-th argument names, each when it is asked for, and reads the clock once for all.
    pub fn open_each(
        call: &'a mut Call<'_>,
        step: NonZeroUsize,
        mode: Mode,
    ) -> Result<impl Iterator<Item = Self>, Error> {
        let now = Micros::saturating(call.now());
        Ok(call.open_each(KEY, step, mode)?.map(move |key| Self { key, now, later: 0 }))
    }

    /// The time of the call.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// What is stored under the key. If it is unused it is as good as nothing: whether the server has collected it yet makes no
    /// difference.
    pub fn load(&mut self) -> Result<Option<Stored<'_>>, Error> {
        let now = self.now;
        let Some(bytes) = bytes(&mut self.key)? else { return Ok(None) };
        let stored = Stored::read(bytes).map_err(unreadable)?;
        self.later = stored.last().map_or(0, |last| last.get().saturating_sub(now.get()));
        Ok(Some(stored).filter(|stored| !stored.is_unused(now)))
    }

    /// The state under the key, which must be of this kind.
    #[inline(always)]
    pub fn load_kind<S: LimiterState>(&mut self) -> Result<Option<S>, Error> {
        match self.load_numbers()? {
            Numbers::None => Ok(None),
            Numbers::State(state) => Ok(Some(state)),
            Numbers::Other => self.load_other_kind(),
        }
    }

    /// The token bucket under the key, which must be one.
    #[inline(always)]
    pub fn load_bucket(&mut self) -> Result<Bucket<'_>, Error> {
        match self.load_numbers()? {
            Numbers::None => Ok(Bucket::Plain(None)),
            Numbers::State(state) => Ok(Bucket::Plain(Some(state))),
            Numbers::Other => self.load_leased(),
        }
    }

    /// What most calls find, looked for first: a state of the kind that is asked for. [`Slot::load`] finds all kinds.
    #[inline(always)]
    fn load_numbers<S: LimiterState>(&mut self) -> Result<Numbers<S>, Error> {
        let now = self.now;
        let Some(bytes) = bytes(&mut self.key)? else { return Ok(Numbers::None) };
        let Ok(state) = S::try_from(bytes) else { return Ok(Numbers::Other) };
        self.later = state.into().last().get().saturating_sub(now.get());
        Ok(Numbers::State(state))
    }

    /// Nothing, if what another limiter has left is unused.
    #[cold]
    fn load_other_kind<S>(&mut self) -> Result<Option<S>, Error> {
        match self.load()? {
            Some(stored) => Err(other_kind(stored.kind())),
            None => Ok(None),
        }
    }

    #[inline(never)]
    fn load_leased(&mut self) -> Result<Bucket<'_>, Error> {
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

    /// Makes a change, if the server has the memory for it.
    #[inline(always)]
    pub fn change(&mut self, change: &Change) -> Result<(), Error> {
        if self.lacks_memory_for(change) {
            return Err(out_of_memory());
        }
        self.carry_out(change)
    }

    /// Makes a change that takes and gives nothing but only brings the state to now, if the server has the memory for it. Else the state stays as
    /// it is, and what is later than now counts as made now for the next call too: that is never too little.
    pub fn bring_to_now(&mut self, change: &Change) -> Result<(), Error> {
        if self.lacks_memory_for(change) { Ok(()) } else { self.carry_out(change) }
    }

    /// Whether the value becomes longer, and the server refuses to take the memory for that.
    #[inline(always)]
    fn lacks_memory_for(&self, change: &Change) -> bool {
        self.grows_by(change) && self.key.memory_is_full()
    }

    /// Makes a change, for which the memory is there, moves the key's expiry if it must, and tells replicas and watchers.
    #[inline(always)]
    pub fn carry_out(&mut self, change: &Change) -> Result<(), Error> {
        self.note_clock(change);
        match change {
            Change::Store(next) => self.store(next),
            Change::Delete => {
                delete(&mut self.key);
                Ok(())
            }
            Change::Log(plan) => self.change_bytes(plan),
            Change::Holders(plan) => self.change_bytes(plan),
            Change::Leases(plan) => self.change_bytes(plan),
        }
    }

    /// Whether the value becomes longer, which takes memory.
    #[inline(always)]
    fn grows_by(&self, change: &Change) -> bool {
        let length = match change {
            Change::Store(next) => next.length(),
            Change::Delete => 0,
            Change::Log(plan) => length_anew(plan),
            Change::Holders(plan) => length_anew(plan),
            Change::Leases(plan) => length_anew(plan),
        };
        !matches!(self.key.value(), Value::String(present) if present >= length) && length > 0
    }

    #[inline(always)]
    fn store(&mut self, next: &State) -> Result<(), Error> {
        let key = &mut self.key;
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
    #[inline(never)]
    fn change_bytes(&mut self, plan: &impl Plan) -> Result<(), Error> {
        if plan.leaves_nothing() {
            delete(&mut self.key);
            return Ok(());
        }
        if plan.fits() {
            let touched = plan.carry_out(self.key.bytes_mut());
            for range in touched.ranges() {
                self.key.replicate_value(range.clone());
            }
            let present = self.key.expiry();
            let holds = plan.unused_within().is_some_and(|moments| is_right(present, moments, self.now));
            if !holds && let Some(at) = moved_expiry(present, plan.unused_at(self.key.bytes()), self.now) {
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

    #[inline(always)]
    fn note_clock(&self, change: &Change) {
        let later = match change {
            Change::Holders(plan) => plan.later(),
            Change::Store(_) | Change::Delete | Change::Log(_) | Change::Leases(_) => self.later,
        };
        if later > 0 {
            clock_went_back(later);
        }
    }
}

/// By so many microseconds.
#[cold]
fn clock_went_back(later: u64) {
    CLOCK_STEPS_BACK.add_one();
    CLOCK_STEPPED_BACK.warn(|| {
        let millis = later.div_ceil(1_000);
        format!("the clock went back: a limiter's last call is {millis} ms later than now, and counts as made now")
    });
}

/// The bytes under a key, of a length that something stored may have; `None` if there is no key.
#[inline]
fn bytes<'k>(key: &'k mut Key<'_>) -> Result<Option<&'k [u8]>, Error> {
    match key.value() {
        Value::Missing => Ok(None),
        Value::String(length) if Stored::has_length(length) => Ok(Some(key.bytes())),
        Value::String(_) => Err(unreadable(Unreadable::NoLimiter)),
        Value::Other => Err(Error::fixed(c"WRONGTYPE Operation against a key holding the wrong kind of value")),
    }
}

/// Writes a value from an offset on, in place if it has that length. Should the server refuse, the old value may be gone: then the key is,
/// for replicas too.
#[inline(always)]
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
        Some((slot, _)) if slot.key.memory_is_full() => Err(out_of_memory()),
        _ => Ok(()),
    }
}

fn out_of_memory() -> Error {
    Error::fixed(c"OOM command not allowed when used memory > 'maxmemory'.")
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
