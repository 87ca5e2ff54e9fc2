//! A key of the server and its value.

use std::ffi::{c_int, c_longlong};
use std::marker::PhantomData;
use std::ptr;

use redis_module::raw::{self, RedisModuleCtx, RedisModuleKey, RedisModuleString};

use super::api::Api;

/// What a key is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To look at its value, on a replica too, without counting as an access.
    Look,
    /// To change its value.
    Change,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing: there is no such key.
    Missing,
    /// A string of so many bytes.
    String(usize),
    /// A value of another type.
    Other,
}

/// An open key. Closed on drop.
pub struct Key<'a> {
    pub(super) api: &'static Api,
    pub(super) ctx: *mut RedisModuleCtx,
    pub(super) name: *mut RedisModuleString,
    /// Null for a missing key that was opened to look at.
    key: *mut RedisModuleKey,
    mode: Mode,
    /// What the key holds. Nobody else changes it while the command runs.
    value: Value,
    call: PhantomData<&'a RedisModuleCtx>,
}

impl Key<'_> {
    /// # Safety
    ///
    /// `ctx` and `name` must be valid for as long as the key lives.
    pub(super) unsafe fn open(
        api: &'static Api,
        ctx: *mut RedisModuleCtx,
        name: *mut RedisModuleString,
        mode: Mode,
    ) -> Self {
        let flags = match mode {
            // Servers ignore the flags that they don't know.
            Mode::Look => {
                raw::REDISMODULE_READ
                    | raw::REDISMODULE_OPEN_KEY_NOTOUCH
                    | raw::REDISMODULE_OPEN_KEY_NONOTIFY
                    | raw::REDISMODULE_OPEN_KEY_NOSTATS
            }
            Mode::Change => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        // SAFETY: the caller vouches for the context and the name.
        let key = unsafe { (api.open_key)(ctx, name, flags.cast_signed()) };
        // SAFETY: the key is open, or null, of which the server says that it is empty.
        let value = match unsafe { (api.key_type)(key) } as isize {
            raw::REDISMODULE_KEYTYPE_EMPTY => Value::Missing,
            // SAFETY: the key is open.
            raw::REDISMODULE_KEYTYPE_STRING => Value::String(unsafe { (api.value_length)(key) }),
            _ => Value::Other,
        };
        Self {
            api,
            ctx,
            name,
            key,
            mode,
            value,
            call: PhantomData,
        }
    }

    /// What the key holds. Leaves the value's encoding as it is.
    pub fn value(&self) -> Value {
        self.value
    }

    /// The bytes of a string; none for any other value. May turn the string's encoding to raw.
    pub fn bytes(&mut self) -> &[u8] {
        let mode = match self.mode {
            Mode::Look => raw::REDISMODULE_READ,
            Mode::Change => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        let (bytes, length) = self.dma(mode.cast_signed());
        if bytes.is_null() {
            return &[];
        }
        // SAFETY: so many bytes are there until the key is changed or closed; the borrow of the key prevents both.
        unsafe { std::slice::from_raw_parts(bytes, length) }
    }

    /// Puts `bytes` at `offset` of a string of at least so many bytes; returns whether they fit.
    #[must_use]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let (value, length) = match self.mode {
            Mode::Look => (ptr::null_mut(), 0),
            Mode::Change => {
                self.dma((raw::REDISMODULE_READ | raw::REDISMODULE_WRITE).cast_signed())
            }
        };
        let fits = !value.is_null() && offset <= length && bytes.len() <= length - offset;
        if fits {
            // SAFETY: the range lies inside the string (`fits`), which is ours to write until the key is changed or closed;
            // `bytes` lie elsewhere, as nobody can hold a borrow of the value over `&mut self`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), value.add(offset), bytes.len()) };
        }
        fits
    }

    /// Makes the value a string of `length` zero bytes, in an allocation of just that size, without an expiry. Returns whether
    /// the server did so.
    #[must_use]
    pub fn create(&mut self, length: usize) -> bool {
        if self.mode == Mode::Look {
            return false;
        }
        // SAFETY: the key is open for writing. Deleting leaves it open and empty.
        let deleted = unsafe { (self.api.delete_key)(self.key) };
        // SAFETY: the key is open for writing and empty.
        let created = unsafe { (self.api.string_truncate)(self.key, length) };
        let done = [deleted, created] == [raw::REDISMODULE_OK as c_int; 2];
        self.value = if done {
            Value::String(length)
        } else {
            Value::Missing
        };
        done
    }

    /// When the key expires, in milliseconds since the Unix epoch; `None` if it does not.
    pub fn expiry(&self) -> Option<i64> {
        if self.value == Value::Missing {
            return None;
        }
        // SAFETY: the key is open and holds a value. Without one, Redis 8.2 reads through a null pointer here.
        let expiry = unsafe { (self.api.get_abs_expire)(self.key) };
        (expiry != c_longlong::from(raw::REDISMODULE_NO_EXPIRE)).then_some(expiry)
    }

    /// Sets when the key expires, in milliseconds since the Unix epoch.
    pub fn set_expiry(&mut self, at: i64) {
        if self.mode == Mode::Change && self.value != Value::Missing {
            // SAFETY: the key is open for writing and holds a value.
            unsafe { (self.api.set_abs_expire)(self.key, at) };
        }
    }

    /// Tells clients that watch or cache the key that it changed.
    pub fn signal_modified(&self) {
        // SAFETY: the context and the name live as long as the key.
        unsafe { (self.api.signal_modified_key)(self.ctx, self.name) };
    }

    fn dma(&mut self, mode: c_int) -> (*mut u8, usize) {
        if !matches!(self.value, Value::String(1..)) {
            return (ptr::null_mut(), 0);
        }
        let mut length = 0;
        // SAFETY: the key is open and holds a string; `length` is written before it is read.
        let bytes = unsafe { (self.api.string_dma)(self.key, &mut length, mode) };
        (bytes.cast(), length)
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, or null, which the server takes too.
        unsafe { (self.api.close_key)(self.key) };
    }
}
