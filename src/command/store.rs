//! States in keys: what every deciding command does between its arguments and its reply.

use std::ffi::CString;

use rl_limiter::layout::{State, Unreadable};
use rl_limiter::{Cost, Decision, Limiter, Micros};

use super::lifetime::moved_expiry;
use super::reply;
use crate::server::{Call, Error, Key, Mode, Value};

const KEY: usize = 1;

/// Decides a call of `cost` by the limiter under the key that argument 1 names, stores what it took, and replies.
pub fn decide<L: Limiter>(call: &Call<'_>, limiter: L, cost: Cost) -> Result<(), Error> {
    let now = now(call);
    let mut key = call.open(KEY, Mode::Change)?;
    let state = match load(&mut key, now)? {
        Some(state) => Some(L::State::try_from(state).map_err(|other| another_kind(&other))?),
        None => None,
    };
    let outcome = limiter.decide(state, now, cost);
    if let Some(next) = outcome.next {
        store(call, &mut key, next.into(), now)?;
    }
    reply::decision(call, outcome.decision);
    Ok(())
}

/// What a call of `cost` to the limiter under the key would be told; `None` if there is none, or an unused one.
pub fn peek(call: &Call<'_>, cost: Cost) -> Result<Option<Decision>, Error> {
    let now = now(call);
    let mut key = call.open(KEY, Mode::Look)?;
    Ok(load(&mut key, now)?.map(|state| state.peek(now, cost)))
}

fn now(call: &Call<'_>) -> Micros {
    Micros::saturating(call.now())
}

/// The state under a key. An unused one is as good as none: whether the server has collected it yet makes no difference.
fn load(key: &mut Key<'_>, now: Micros) -> Result<Option<State>, Error> {
    match key.value() {
        Value::Missing => Ok(None),
        Value::String(length) if State::has_length(length) => match State::decode(key.bytes()) {
            Ok(state) => Ok(Some(state).filter(|state| !state.is_unused(now))),
            Err(Unreadable::Newer) => Err(Error::fixed(
                c"WRONGTYPE the key holds a limiter of a newer version of redis-rl",
            )),
            Err(Unreadable::NoLimiter) => Err(no_limiter()),
        },
        Value::String(_) => Err(no_limiter()),
        Value::Other => Err(Error::fixed(
            c"WRONGTYPE Operation against a key holding the wrong kind of value",
        )),
    }
}

/// Stores a state that a call has just made, moves the key's expiry if it must, and tells replicas and watchers.
fn store(call: &Call<'_>, key: &mut Key<'_>, next: State, now: Micros) -> Result<(), Error> {
    let bytes = next.encode();
    let same_length = key.value() == Value::String(bytes.len());
    if !same_length && call.memory_is_full() {
        return Err(Error::fixed(
            c"OOM command not allowed when used memory > 'maxmemory'.",
        ));
    }
    let expiry = moved_expiry(key.expiry().filter(|_| same_length), next.unused_at(), now);
    let from = if same_length && expiry.is_none() {
        bytes.changed_from(key.bytes())
    } else {
        0
    };

    let written = (same_length || key.create(bytes.len())) && key.write(from, &bytes[from..]);
    if !written {
        return Err(Error::fixed(c"ERR the server did not take the new state"));
    }
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

fn no_limiter() -> Error {
    Error::fixed(c"WRONGTYPE the key holds a string that is no limiter")
}

fn another_kind(state: &State) -> Error {
    let text = format!("WRONGTYPE the key holds a {} limiter", state.kind());
    Error::Text(CString::new(text).unwrap_or_default().into())
}
