//! What replicas and the append-only file are told: results, as plain Redis commands.
//!
//! The server propagates nothing of a module's command by itself. A reader of these needs no module, and no clock.

use std::ffi::c_longlong;

use super::key::Key;

impl Key<'_> {
    /// `SET key value PXAT at`.
    pub fn replicate_set(&self, value: &[u8], at: i64) {
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

    /// `SETRANGE key offset bytes`.
    pub fn replicate_range(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: as above: the name, an integer, a buffer with its length.
        unsafe {
            (self.api.replicate)(
                self.ctx,
                c"SETRANGE".as_ptr(),
                c"slb".as_ptr(),
                self.name,
                offset as c_longlong,
                bytes.as_ptr(),
                bytes.len(),
            );
        }
    }
}
