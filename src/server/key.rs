//! A key of the server and its value.

use std::ffi::{c_int, c_longlong};
use std::marker::PhantomData;
use std::ptr;

use redis_module::raw::{self, RedisModuleCtx, RedisModuleKey, RedisModuleString};

use super::api::{self, Api};

/// What a key is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To look at its value, on a replica too, without counting as an access where the server can do so.
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
    /// Where the string's bytes are, once that was asked and until we move them; else null.
    place: *mut u8,
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
        Self { api, ctx, name, key, mode, value, place: ptr::null_mut(), call: PhantomData }
    }

    /// What the key holds. Leaves the value's encoding as it is.
    #[inline]
    pub fn value(&self) -> Value {
        self.value
    }

    /// The bytes of a string; none for any other value. May turn the string's encoding to raw.
    #[inline]
    pub fn bytes(&mut self) -> &[u8] {
        let (bytes, length) = self.dma();
        if bytes.is_null() {
            return &[];
        }
        // SAFETY: so many bytes are there until the key is changed or closed; the borrow of the key prevents both.
        unsafe { std::slice::from_raw_parts(bytes, length) }
    }

    /// The bytes of a string, to change; none for any other value, or one that was opened to look at.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.mode == Mode::Look {
            return &mut [];
        }
        let (bytes, length) = self.dma();
        if bytes.is_null() {
            return &mut [];
        }
        // SAFETY: so many bytes are there, and ours to write, until the key is changed or closed; the borrow of the key prevents both,
        // and any other borrow of them.
        unsafe { std::slice::from_raw_parts_mut(bytes, length) }
    }

    /// Puts `bytes` at `offset` of a string of at least so many bytes; returns whether they fit.
    #[must_use]
    #[inline(always)]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let place = self.bytes_mut().get_mut(offset..).and_then(|rest| rest.get_mut(..bytes.len()));
        match place {
            Some(place) => {
                place.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// Deletes the key, which stays open.
    pub fn delete(&mut self) {
        if self.mode == Mode::Change {
            // SAFETY: the key is open for writing. Deleting leaves it open and empty.
            unsafe { (self.api.delete_key)(self.key) };
            self.value = Value::Missing;
            self.place = ptr::null_mut();
        }
    }

    /// Makes the value a string of `length` zero bytes, in an allocation of just that size, without an expiry. Returns whether
    /// the server did so.
    #[must_use]
    pub fn create(&mut self, length: usize) -> bool {
        if self.mode == Mode::Look {
            return false;
        }
        self.delete();
        // SAFETY: the key is open for writing and empty.
        let created = unsafe { (self.api.string_truncate)(self.key, length) } == raw::REDISMODULE_OK as c_int;
        if created {
            self.value = Value::String(length);
        }
        created
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
            // Newer servers keep the expiry beside the value, which may move.
            self.place = ptr::null_mut();
        }
    }

    /// Whether the server refuses to take more memory for this key.
    pub fn memory_is_full(&self) -> bool {
        // SAFETY: the context lives as long as the key.
        let flags = unsafe { (self.api.get_context_flags)(self.ctx) }.cast_unsigned();
        // The flag is set too while the server makes room by evicting; only it knows whether that is enough.
        flags & api::OUT_OF_MEMORY != 0 && self.api.refuses_memory(self.ctx, self.name)
    }

    /// Tells clients that watch or cache the key that it changed.
    pub fn signal_modified(&self) {
        // SAFETY: the context and the name live as long as the key.
        unsafe { (self.api.signal_modified_key)(self.ctx, self.name) };
    }

    #[inline(always)]
    fn dma(&mut self) -> (*mut u8, usize) {
        let Value::String(length @ 1..) = self.value else { return (ptr::null_mut(), 0) };
        if self.place.is_null() {
            let mode = match self.mode {
                Mode::Look => raw::REDISMODULE_READ,
                Mode::Change => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
            };
            let mut there = 0;
            // SAFETY: the key is open and holds a string; `there` is written before it is read.
            let bytes = unsafe { (self.api.string_dma)(self.key, &mut there, mode.cast_signed()) };
            if there != length {
                return (ptr::null_mut(), 0);
            }
            self.place = bytes.cast();
        }
        (self.place, length)
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, or null, which the server takes too.
        unsafe { (self.api.close_key)(self.key) };
    }
}
