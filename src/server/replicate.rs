//! What replicas and the append-only file are told: results, as plain Redis commands.
//!
//! The server propagates nothing of a module's command by itself. A reader of these needs no module, and no clock.

use std::ffi::c_longlong;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

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
    #[inline]
    pub fn replicate_range(&self, offset: usize, bytes: &[u8]) {
        if audience::is_away() {
            return;
        }
        // SAFETY: the context and the name live as long as the key.
        unsafe { send_range(self.api, self.ctx, self.name, offset, bytes) };
    }
}

/// Offsets as the server's strings: each is made once and then shared by all calls, which spares the server to make and free
/// one a call. Kinds of a few numbers change behind their parameters, and the bytes of others behind their heads.
static OFFSETS: [AtomicPtr<RedisModuleString>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// The offset as a string that is kept; null if offsets as large as this are not.
fn kept(api: &Api, offset: usize) -> *mut RedisModuleString {
    let Some(place) = OFFSETS.get(offset) else { return ptr::null_mut() };
    // Commands run one at a time, and nothing else is here.
    let mut string = place.load(Ordering::Relaxed);
    if string.is_null() {
        // SAFETY: without a context the string is ours until it is freed.
        string = unsafe { (api.create_string_from_long_long)(ptr::null_mut(), offset as c_longlong) };
        place.store(string, Ordering::Relaxed);
    }
    string
}

/// Gives the strings back that are kept, before the module is unloaded.
pub fn forget(api: &Api) {
    for place in &OFFSETS {
        let string = place.swap(ptr::null_mut(), Ordering::Relaxed);
        if !string.is_null() {
            // SAFETY: it was made without a context, and is freed once. Who else uses it has counted himself.
            unsafe { (api.free_string)(ptr::null_mut(), string) };
        }
    }
}

/// # Safety
///
/// The context and the name must be valid.
#[inline]
unsafe fn send_range(api: &Api, ctx: *mut RedisModuleCtx, name: *mut RedisModuleString, offset: usize, bytes: &[u8]) {
    let (command, at) = (c"SETRANGE".as_ptr(), kept(api, offset));
    // SAFETY: the caller vouches for the context and the name; the format names what follows: the name, the offset as a
    // string or an integer, a buffer with its length.
    unsafe {
        if at.is_null() {
            let format = c"slb".as_ptr();
            (api.replicate)(ctx, command, format, name, offset as c_longlong, bytes.as_ptr(), bytes.len());
        } else {
            (api.replicate)(ctx, command, c"ssb".as_ptr(), name, at, bytes.as_ptr(), bytes.len());
        }
    }
}
