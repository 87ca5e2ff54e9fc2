//! Settings of the module: `rl.…` among those of the server.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::fmt;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::raw::{self, RedisModuleCtx, RedisModuleString};

use super::api::Api;

/// A setting. `CONFIG SET` changes it at any time, between two calls of commands.
pub struct Setting {
    name: &'static CStr,
    kind: Kind,
    default: i64,
    /// 0 and 1 are no and yes.
    value: AtomicI64,
    changed: Option<fn(i64)>,
}

/// What a setting may be.
#[derive(Clone, Copy)]
enum Kind {
    Number { least: i64, most: i64 },
    YesOrNo,
}

impl Setting {
    /// A number from 1 to `most`. The server puts the name of the module in front of its name.
    pub const fn new(name: &'static CStr, default: i64, most: i64) -> Self {
        Self::of(name, default, Kind::Number { least: 1, most })
    }

    /// A number from 0, which switches something off, to `most`.
    pub const fn or_off(name: &'static CStr, default: i64, most: i64) -> Self {
        Self::of(name, default, Kind::Number { least: 0, most })
    }

    /// `no` or `yes`; `no` by default.
    pub const fn no_or_yes(name: &'static CStr) -> Self {
        Self::of(name, 0, Kind::YesOrNo)
    }

    const fn of(name: &'static CStr, default: i64, kind: Kind) -> Self {
        Self { name, kind, default, value: AtomicI64::new(default), changed: None }
    }

    /// Calls a function whenever it is set, with what it is set to: on loading too, and with 0 on unloading.
    #[must_use]
    pub const fn telling(self, changed: fn(i64)) -> Self {
        Self { changed: Some(changed), ..self }
    }

    /// What it is set to.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Whether it is set to `yes`, or to a number above 0.
    pub fn is_on(&self) -> bool {
        self.get() != 0
    }

    fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
        if let Some(changed) = self.changed {
            // The server is calling, so no panic may get out; what it was is in the log.
            let _ = catch_unwind(|| changed(value));
        }
    }
}

/// Its name without that of the module, and what it is set to, as in a configuration file.
impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.to_string_lossy();
        match (self.kind, self.get()) {
            (Kind::Number { .. }, number) => write!(out, "{name} {number}"),
            (Kind::YesOrNo, 0) => write!(out, "{name} no"),
            (Kind::YesOrNo, _) => write!(out, "{name} yes"),
        }
    }
}

const OK: c_int = raw::REDISMODULE_OK as c_int;

/// Registers settings, and sets them to what the server's configuration or the call that loads the module says.
pub fn register(api: &Api, ctx: *mut RedisModuleCtx, settings: &'static [&'static Setting]) -> Result<(), String> {
    for setting in settings {
        let (name, this) = (setting.name.as_ptr(), ptr::from_ref(*setting).cast_mut().cast());
        let flags = raw::REDISMODULE_CONFIG_DEFAULT;
        let registered = match setting.kind {
            // SAFETY: the server passed this context for loading. The name ends with a NUL and is copied; the functions
            // and the setting, which they are passed, live as long as the module.
            Kind::Number { least, most } => unsafe {
                let (get, set) = (Some(get_number as _), Some(set_number as _));
                (api.register_numeric_config)(ctx, name, setting.default, flags, least, most, get, set, None, this)
            },
            // SAFETY: as above.
            Kind::YesOrNo => unsafe {
                let (get, set) = (Some(get_flag as _), Some(set_flag as _));
                (api.register_bool_config)(ctx, name, setting.default as c_int, flags, get, set, None, this)
            },
        };
        if registered != OK {
            return Err(format!("the server refuses the setting {}", setting.name.to_string_lossy()));
        }
    }
    // SAFETY: the server passed this context for loading.
    if unsafe { (api.load_configs)(ctx) } == OK { Ok(()) } else { Err("the server refuses the settings".to_owned()) }
}

/// Gives back what settings hold, before the module is unloaded.
pub fn forget(settings: &'static [&'static Setting]) {
    for setting in settings {
        setting.set(0);
    }
}

/// The setting that a function was registered for.
///
/// # Safety
///
/// `setting` must be what was registered with it.
unsafe fn of<'a>(setting: *mut c_void) -> &'a Setting {
    // SAFETY: the caller vouches for it; settings live as long as the module.
    unsafe { &*setting.cast::<Setting>() }
}

/// What the server calls to read a number.
extern "C" fn get_number(_name: *const c_char, setting: *mut c_void) -> c_longlong {
    // SAFETY: it is the setting for which this function was registered.
    unsafe { of(setting) }.get()
}

/// What the server calls to change a number. It has checked the range.
extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    setting: *mut c_void,
    _error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { of(setting) }.set(value);
    OK
}

/// What the server calls to read yes or no.
extern "C" fn get_flag(_name: *const c_char, setting: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { of(setting) }.is_on().into()
}

/// What the server calls to change yes or no.
extern "C" fn set_flag(
    _name: *const c_char,
    value: c_int,
    setting: *mut c_void,
    _error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { of(setting) }.set(value.into());
    OK
}
