//! What replicas and the append-only file are told: results, as plain Redis commands.
//!
//! The server propagates nothing of a module's command by itself. A reader of these needs no module, and no clock.

use std::ffi::c_longlong;
use std::ops::Range;

use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::api::Api;
use super::audience;
use super::key::Key;

impl Key<'_> {
    /// `SET key value PXAT at`.
    pub fn replicate_set(&self, value: &[u8], at: i64) {
        if audience::is_away() {
            return;
        }
        // SAFETY: the context and the name live as long as the key; the format names what follows: the name, a buffer with
        // its length, a C string, an integer. The server copies them all.
        unsafe {
            (self.api.replicate)(
                self.ctx,
                c"SET".as_ptr(),
                c"sbcl".as_ptr(),
                self.name,
                value.as_ptr(),
                value.len(),
                c"PXAT".as_ptr(),
                at as c_longlong,
            );
        }
    }

    /// `DEL key`.
    pub fn replicate_delete(&self) {
        if audience::is_away() {
            return;
        }
        // SAFETY: as above: the name.
        unsafe { (self.api.replicate)(self.ctx, c"DEL".as_ptr(), c"s".as_ptr(), self.name) };
    }

    /// `PEXPIREAT key at`.
    pub fn replicate_expiry(&self, at: i64) {
        if audience::is_away() {
            return;
        }
        // SAFETY: as above: the name, an integer.
        unsafe {
            (self.api.replicate)(self.ctx, c"PEXPIREAT".as_ptr(), c"sl".as_ptr(), self.name, at as c_longlong);
        }
    }

    /// `SETRANGE key offset bytes` with the bytes that the value has there.
    pub fn replicate_value(&mut self, range: Range<usize>) {
        if audience::is_away() {
            return;
        }
        let (api, ctx, name, offset) = (self.api, self.ctx, self.name, range.start);
        if let Some(bytes) = self.bytes().get(range) {
            // SAFETY: the context and the name live as long as the key.
            unsafe { send_range(api, ctx, name, offset, bytes) };
        }
    }

    /// `SETRANGE key offset bytes`.
    pub fn replicate_range(&self, offset: usize, bytes: &[u8]) {
        if audience::is_away() {
            return;
        }
        // SAFETY: the context and the name live as long as the key.
        unsafe { send_range(self.api, self.ctx, self.name, offset, bytes) };
    }
}

/// # Safety
///
/// The context and the name must be valid.
unsafe fn send_range(api: &Api, ctx: *mut RedisModuleCtx, name: *mut RedisModuleString, offset: usize, bytes: &[u8]) {
    // SAFETY: the caller vouches for the context and the name; the format names what follows: the name, an integer, a buffer with
    // its length.
    unsafe {
        (api.replicate)(
            ctx,
            c"SETRANGE".as_ptr(),
            c"slb".as_ptr(),
            name,
            offset as c_longlong,
            bytes.as_ptr(),
            bytes.len(),
        );
    }
}
