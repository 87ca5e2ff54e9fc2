//! Settings of the module: `rl.…` among those of the server.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::raw::{self, RedisModuleCtx, RedisModuleString};

use super::api::Api;

/// A setting that is a number. `CONFIG SET` changes it at any time.
pub struct Setting {
    name: &'static CStr,
    default: i64,
    most: i64,
    value: AtomicI64,
}

impl Setting {
    /// A setting from 1 to `most`. The server puts the name of the module in front of its name.
    pub const fn new(name: &'static CStr, default: i64, most: i64) -> Self {
        Self { name, default, most, value: AtomicI64::new(default) }
    }

    /// What it is set to.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

const OK: c_int = raw::REDISMODULE_OK as c_int;

/// Registers settings, and sets them to what the server's configuration or the call that loads the module says.
pub fn register(api: &Api, ctx: *mut RedisModuleCtx, settings: &'static [&'static Setting]) -> Result<(), String> {
    for setting in settings {
        // SAFETY: the server passed this context for loading. The name ends with a NUL and is copied; the functions and the setting,
        // which they are passed, live as long as the module.
        let registered = unsafe {
            (api.register_numeric_config)(
                ctx,
                setting.name.as_ptr(),
                setting.default,
                raw::REDISMODULE_CONFIG_DEFAULT,
                1,
                setting.most,
                Some(get),
                Some(set),
                None,
                ptr::from_ref(*setting).cast_mut().cast(),
            )
        };
        if registered != OK {
            return Err(format!("the server refuses the setting {}", setting.name.to_string_lossy()));
        }
    }
    // SAFETY: the server passed this context for loading.
    if unsafe { (api.load_configs)(ctx) } == OK { Ok(()) } else { Err("the server refuses the settings".to_owned()) }
}

/// What the server calls to read a setting.
extern "C" fn get(_name: *const c_char, setting: *mut c_void) -> c_longlong {
    // SAFETY: it is the setting for which this function was registered.
    unsafe { &*setting.cast::<Setting>() }.get()
}

/// What the server calls to change a setting. It has checked the range.
extern "C" fn set(
    _name: *const c_char,
    value: c_longlong,
    setting: *mut c_void,
    _error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { &*setting.cast::<Setting>() }.value.store(value, Ordering::Relaxed);
    OK
}
