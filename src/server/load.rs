//! Loading and unloading: the oldest server, the commands that results are replicated by, options, our commands.

use std::ffi::{CStr, c_int};

use redis_module::raw::{self, RedisModuleCtx, Status};

use super::api::{self, Api};
use super::audience;
use super::config::{self, Setting};
use super::guard::log_panics;
use super::info::{self, Informer};
use super::log::{self, Level};
use super::register::{Command, register};
use super::replicate;

/// What the server is told about a module.
pub struct Module {
    /// Its name.
    pub name: &'static CStr,
    /// 10000 × major + 100 × minor + patch, as `MODULE LIST` shows it.
    pub version: c_int,
    /// Its commands.
    pub commands: &'static [Command],
    /// Its settings.
    pub settings: &'static [&'static Setting],
    /// What it tells in `INFO`.
    pub informer: Informer,
}

/// Defines what the server calls to load and unload a module, and the allocator. At the root of the crate, whose `server` this is.
#[macro_export]
macro_rules! entry {
    ($module:expr) => {
        #[global_allocator]
        static ALLOCATOR: $crate::server::ServerAllocator = $crate::server::ServerAllocator;

        /// What the server calls to load the module.
        ///
        /// # Safety
        ///
        /// Only a server may call it, to load the module.
        #[allow(unsafe_code, non_snake_case)]
        // SAFETY: no other symbol of this name can be in a file that a server loads as a module.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn RedisModule_OnLoad(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            _arguments: *mut *mut redis_module::raw::RedisModuleString,
            count: std::ffi::c_int,
        ) -> std::ffi::c_int {
            let module = &$module;
            // SAFETY: the server passes a context for loading.
            unsafe { $crate::server::load(ctx, count, module) }
        }

        /// What the server calls to unload the module.
        ///
        /// # Safety
        ///
        /// Only a server may call it, to unload the module.
        #[allow(unsafe_code, non_snake_case)]
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn RedisModule_OnUnload(ctx: *mut redis_module::raw::RedisModuleCtx) -> std::ffi::c_int {
            // SAFETY: the server passes a context for unloading.
            unsafe { $crate::server::unload(ctx, &$module) }
        }
    };
}

/// The oldest server that the module loads on.
const OLDEST_SERVER: (c_int, c_int) = (7, 0);

/// No "modified" signal on closing a key that was opened for writing: a denied call changes nothing, and must not break
/// a `WATCH`.
const NO_IMPLICIT_SIGNAL_MODIFIED: c_int = 1 << 1;
/// The server may serve reads while it loads a new data set from its primary. It would switch that off for everybody's
/// data unless each module says so; here nothing outside keys depends on what is in them.
const HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;
/// Valkey 9 moves slots only if each module says that it copes; other servers ignore the bit.
const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// Loads a module; `count` is how many arguments the server passed it.
///
/// # Safety
///
/// `ctx` must be the context of a server that is loading the module.
pub unsafe fn load(ctx: *mut RedisModuleCtx, count: c_int, module: &Module) -> c_int {
    let (name, version) = (module.name.as_ptr(), module.version);
    // SAFETY: the server passed this context for loading; the name ends with a NUL. Nothing of ours has run before.
    let joined = unsafe { raw::Export_RedisModule_Init(ctx, name, version, raw::REDISMODULE_APIVER_1.cast_signed()) };
    if joined == Status::Err as c_int {
        return joined;
    }
    match set_up(ctx, count, module) {
        Ok(()) => Status::Ok as c_int,
        Err(reason) => {
            write(ctx, Level::Warning, &format!("redis-rl {reason}. Not loaded."));
            Status::Err as c_int
        }
    }
}

/// The error is why the module can't be loaded.
fn set_up(ctx: *mut RedisModuleCtx, count: c_int, module: &Module) -> Result<(), String> {
    let (major, minor, patch) = api::server_version();
    if (major, minor) < OLDEST_SERVER {
        return Err(format!(
            "needs Redis 7.0 or later, or Valkey 8.0 or later; this server is {major}.{minor}.{patch}"
        ));
    }
    let api = api::look_up().map_err(|name| format!("needs {name}, which this server lacks"))?;
    if count > 0 {
        return Err("takes no arguments on loading".to_owned());
    }
    if let Some(name) = Api::REPLICATING.into_iter().find(|name| !api.has_command(ctx, name)) {
        let name = name.to_string_lossy();
        return Err(format!("replicates what it changes by {name}, which this server's configuration has renamed"));
    }
    log_panics();
    let options = NO_IMPLICIT_SIGNAL_MODIFIED | HANDLE_REPL_ASYNC_LOAD | HANDLE_ATOMIC_SLOT_MIGRATION;
    let name = module.name.to_string_lossy();
    // SAFETY: the server passed this context for loading.
    unsafe { (api.set_module_options)(ctx, options) };
    config::register(api, ctx, module.settings)?;
    info::register(api, ctx, module.informer)?;
    register(api, ctx, module.commands)?;
    audience::watch(api, ctx);
    let settings: String = module.settings.iter().map(|setting| format!(", {name}.{setting}")).collect();
    let [own_major, own_minor, own_patch] = [module.version / 10_000, module.version / 100 % 100, module.version % 100];
    let line = format!(
        "redis-rl: the module {name} {own_major}.{own_minor}.{own_patch} is loaded, \
         on a server of version {major}.{minor}.{patch}{settings}"
    );
    write(ctx, Level::Notice, &line);
    Ok(())
}

/// Unloads a module, where that is safe.
///
/// A server keeps pointers to the command that a client called last, or has sent but that was not yet run, and calls through
/// them after the module is gone. Redis 8.0 and 8.2 end so at the next call of any client that used the module; Valkey on
/// calls that were paused, sent in one batch with the unloading, or read by an I/O thread. Only on Redis 7.0 does it go well.
///
/// # Safety
///
/// `ctx` must be the context of a server that is unloading the module.
pub unsafe fn unload(ctx: *mut RedisModuleCtx, module: &Module) -> c_int {
    let (major, minor, _) = api::server_version();
    if (major, minor) == (7, 0) {
        config::forget(module.settings);
        if let Some(api) = api::get() {
            replicate::forget(api);
        }
        return Status::Ok as c_int;
    }
    write(
        ctx,
        Level::Warning,
        "redis-rl stays loaded until the server ends: this server may still call commands of a module that is gone",
    );
    Status::Err as c_int
}

fn write(ctx: *mut RedisModuleCtx, level: Level, text: &str) {
    // SAFETY: the pointer is written once, before the server hands control to the module.
    if let Some(log) = unsafe { raw::RedisModule_Log } {
        log::write(log, ctx, level, text);
    }
}
