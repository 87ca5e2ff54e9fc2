//! Loading: the oldest server, the module's options, the commands.

use std::ffi::{CString, c_int};

use redis_module::raw::{self, RedisModuleCtx};
use redis_module::{Context, Status};

use super::api::{self, Api};
use super::guard::log_panics;
use super::register::{Command, register};

/// The oldest server that the module loads on.
const OLDEST_SERVER: (c_int, c_int) = (7, 0);

/// No "modified" signal on closing a key that was opened for writing: a denied call changes nothing, and must not break
/// a `WATCH`.
const NO_IMPLICIT_SIGNAL_MODIFIED: c_int = 1 << 1;
/// The server may serve reads while it loads a new data set from its primary. It would switch that off for everybody's
/// data unless each module says so; here no state lives outside keys.
const HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;
/// Valkey 9 moves slots only if each module says that it copes; other servers ignore the bit.
const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// Goes first of all in `redis_module!`, which would otherwise register commands and configurations on a server where that
/// ends the process.
pub struct ServerCheck;

/// For the place in `redis_module!` that runs first: its list of data types, of which the module has none.
pub static SERVER_CHECK: ServerCheck = ServerCheck;

impl ServerCheck {
    /// Refuses servers that are too old, and finds the functions that the module needs. The name is that of the step of
    /// `redis_module!` in whose place it runs.
    #[allow(clippy::result_unit_err, clippy::not_unsafe_ptr_arg_deref)]
    pub fn create_data_type(&self, ctx: *mut RedisModuleCtx) -> Result<(), ()> {
        let (major, minor, patch) = api::server_version();
        if (major, minor) < OLDEST_SERVER {
            warn(
                ctx,
                &format!(
                    "redis-rl needs Redis 7.0 or later, or Valkey 8.0 or later; this server is {major}.{minor}.{patch}. Not loaded."
                ),
            );
            return Err(());
        }
        api::look_up().map(|_| ()).map_err(|name| {
            warn(
                ctx,
                &format!("redis-rl needs {name}, which this server lacks. Not loaded."),
            );
        })
    }
}

/// Whether the module may be unloaded.
///
/// Redis 8.0 and later keep, for each client, a pointer to the command it called last, and call through it after the module
/// is gone: the next call of a client that has called one of ours ends the server. So there the module stays.
pub fn may_unload(context: &Context) -> Status {
    let (major, ..) = api::server_version();
    if major < 8 || api::is_valkey(context.ctx) {
        return Status::Ok;
    }
    warn(
        context.ctx,
        "redis-rl stays loaded: this server calls commands of unloaded modules, which would end it. Restart it to upgrade.",
    );
    Status::Err
}

/// Sets the module's options and registers its commands.
pub fn set_up(context: &Context, load_arguments: usize, commands: &[Command]) -> Status {
    let ctx = context.ctx;
    let result = match api::get() {
        Some(_) if load_arguments > 0 => Err("the module takes no arguments on loading".to_owned()),
        Some(api) => {
            log_panics(api);
            set_options(api, ctx);
            register(api, ctx, commands)
        }
        None => Err("the functions of the server were not looked up".to_owned()),
    };
    match result {
        Ok(()) => Status::Ok,
        Err(reason) => {
            warn(ctx, &format!("redis-rl: {reason}. Not loaded."));
            Status::Err
        }
    }
}

fn set_options(api: &Api, ctx: *mut RedisModuleCtx) {
    let options =
        NO_IMPLICIT_SIGNAL_MODIFIED | HANDLE_REPL_ASYNC_LOAD | HANDLE_ATOMIC_SLOT_MIGRATION;
    // SAFETY: the server passed this context for loading.
    unsafe { (api.set_module_options)(ctx, options) };
    // The redis-module crate has registered an INFO callback that allocates and walks the stack inside a crash report, where
    // neither is safe. The module takes it back.
    raw::register_info_function(ctx, None);
}

fn warn(ctx: *mut RedisModuleCtx, text: &str) {
    // SAFETY: the pointer is written once, before the server hands control to the module.
    let log = unsafe { raw::RedisModule_Log };
    if let (Some(log), Ok(text)) = (log, CString::new(text)) {
        // SAFETY: the server passed this context for loading; all three texts end with a NUL.
        unsafe { log(ctx, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
    }
}
