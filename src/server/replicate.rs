//! What replicas and the append-only file are told: results, as plain Redis commands.
//!
//! The server propagates nothing of a module's command by itself. A reader of these needs no module, and no clock.

use std::ffi::c_longlong;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

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

/// Offsets as the server's strings: each is shared by many calls, which spares the server to make and free one a call. Kinds of a
/// few numbers change behind their parameters, and the bytes of others behind their heads.
static OFFSETS: [Kept; 64] = [const { Kept { string: AtomicPtr::new(ptr::null_mut()), uses: Uses::new() } }; 64];

/// A string that is kept; null before it is needed.
struct Kept {
    string: AtomicPtr<RedisModuleString>,
    uses: Uses,
}

impl Kept {
    /// The offset as a string; null if it is none of those that are kept.
    fn of(api: &Api, offset: usize) -> *mut RedisModuleString {
        let Some(kept) = OFFSETS.get(offset) else { return ptr::null_mut() };
        if kept.uses.is_spent() {
            kept.renew(api, offset);
        }
        kept.string.load(Ordering::Relaxed)
    }

    #[cold]
    fn renew(&self, api: &Api, offset: usize) {
        // SAFETY: without a context the string is ours until it is freed.
        let string = unsafe { (api.create_string_from_long_long)(ptr::null_mut(), offset as c_longlong) };
        self.replace(api, string);
    }

    fn replace(&self, api: &Api, string: *mut RedisModuleString) {
        let old = self.string.swap(string, Ordering::Relaxed);
        if !old.is_null() {
            // SAFETY: it was made without a context, and is given up once. Who else uses it has counted himself.
            unsafe { (api.free_string)(ptr::null_mut(), old) };
        }
    }
}

/// How often a string has been handed out. Commands run one at a time, and nothing else counts.
///
/// Until a transaction or script ends, the server keeps a reference for each of its effects, in a count of 31 bits or fewer (23 in
/// sources of Redis from 2026 on), and ends where that is full. So a string is replaced long before.
struct Uses(AtomicU32);

impl Uses {
    const MOST: u32 = 1 << 14;

    const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether the string must be made, for this use and those that follow.
    #[inline]
    fn is_spent(&self) -> bool {
        let uses = self.0.load(Ordering::Relaxed);
        self.0.store(uses.wrapping_add(1), Ordering::Relaxed);
        uses.is_multiple_of(Self::MOST)
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Gives the strings back that are kept, before the module is unloaded.
pub fn forget(api: &Api) {
    for kept in &OFFSETS {
        kept.replace(api, ptr::null_mut());
        kept.uses.reset();
    }
}

/// # Safety
///
/// The context and the name must be valid.
#[inline]
unsafe fn send_range(api: &Api, ctx: *mut RedisModuleCtx, name: *mut RedisModuleString, offset: usize, bytes: &[u8]) {
    let (command, at) = (c"SETRANGE".as_ptr(), Kept::of(api, offset));
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

#[cfg(test)]
mod tests {
    use super::{Ordering, Uses};

    #[test]
    fn a_string_is_made_for_its_first_use_and_then_for_one_of_so_many() {
        let uses = Uses::new();
        let spent: Vec<u32> = (0..3 * Uses::MOST).filter(|_| uses.is_spent()).collect();
        assert_eq!(spent, [0, Uses::MOST, 2 * Uses::MOST]);
        uses.reset();
        assert!(uses.is_spent() && !uses.is_spent());
    }

    #[test]
    fn a_count_that_begins_anew_makes_a_string() {
        let uses = Uses::new();
        uses.0.store(u32::MAX, Ordering::Relaxed);
        assert!(!uses.is_spent() && uses.is_spent());
    }
}
