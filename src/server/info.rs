//! The module's section of `INFO`.

use std::ffi::{CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use redis_module::raw::{self, RedisModuleCtx, RedisModuleInfoCtx};

use super::api::{self, Api};

/// What a module tells in `INFO`.
pub trait Inform {
    /// Tells all numbers.
    fn tell(info: &mut Section<'_>);
}

/// The function that the server calls for a module's section.
#[derive(Clone, Copy)]
pub struct Informer(extern "C" fn(*mut RedisModuleInfoCtx, c_int));

impl Informer {
    /// The one that leads to `I`.
    pub const fn of<I: Inform>() -> Self {
        Self(enter::<I>)
    }
}

/// The section, while the server asks for it.
pub struct Section<'a> {
    api: &'a Api,
    ctx: *mut RedisModuleInfoCtx,
}

impl Section<'_> {
    /// Tells a number. The server puts the name of the module and an underscore in front of its name.
    pub fn number(&mut self, name: &str, value: u64) {
        if let Ok(name) = CString::new(name) {
            // SAFETY: the context is that of the callback in which we are; the server copies the name, which ends with
            // a NUL.
            unsafe { (self.api.info_add_number)(self.ctx, name.as_ptr(), value) };
        }
    }
}

/// Registers what the server calls.
pub fn register(api: &Api, ctx: *mut RedisModuleCtx, informer: Informer) -> Result<(), String> {
    // SAFETY: the server passed this context for loading; the function lives as long as the module.
    let registered = unsafe { (api.register_info_func)(ctx, Some(informer.0)) };
    if registered == raw::REDISMODULE_OK as c_int { Ok(()) } else { Err("the server refuses a section".to_owned()) }
}

/// What the server calls when somebody asks for `INFO`, and when it writes its report of a crash.
extern "C" fn enter<I: Inform>(ctx: *mut RedisModuleInfoCtx, for_crash_report: c_int) {
    // A crash report is written by a signal's handler, wherever the signal came: within the allocator, or under a lock.
    // What this module counts is not worth a report that never ends.
    if for_crash_report != 0 {
        return;
    }
    let Some(api) = api::get() else { return };
    // Without a name of its own the section has the module's, and so have users: `# rl`, `INFO rl`.
    // SAFETY: the context is that of the callback in which we are; the server copies the name, which ends with a NUL.
    if unsafe { (api.info_add_section)(ctx, c"".as_ptr()) } == raw::REDISMODULE_OK as c_int {
        // A panic ends the section; its message is in the log.
        let _ = catch_unwind(AssertUnwindSafe(|| I::tell(&mut Section { api, ctx })));
    }
}
