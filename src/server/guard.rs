//! The guard at the edge: no panic may reach the server, which it would end, with everybody's data.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use redis_module::raw::{RedisModuleCtx, RedisModuleString, Status};

use super::api;
use super::call::{Call, Error};
use super::log::RareLine;
use super::register::Handler;
use super::stats;

/// What the server calls for the command that `H` handles.
pub extern "C" fn enter<H: Handler>(
    ctx: *mut RedisModuleCtx,
    arguments: *mut *mut RedisModuleString,
    count: c_int,
) -> c_int {
    let (Some(api), Ok(count)) = (api::get(), usize::try_from(count)) else {
        // The functions are looked up before a command is registered, so there is no call without them.
        return Status::Err as c_int;
    };
    // SAFETY: the server passes so many arguments, which live until this function returns.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, count) };
    // SAFETY: these are the context and the arguments of the call in which we are.
    let mut call = unsafe { Call::new(api, ctx, arguments) };

    if let Err(error) = guarded(|| H::run(&mut call)) {
        call.reply_error(&error);
    }
    Status::Ok as c_int
}

/// Runs a handler; a panic becomes an error.
///
/// Handlers decide before they write, write without code that could fail in between, and reply last; so there is no known way to
/// leave something half done.
fn guarded(handler: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    catch_unwind(AssertUnwindSafe(handler)).unwrap_or_else(|_| {
        Err(Error::fixed(c"ERR internal error in redis-rl, please report it; the server's log says what it is"))
    })
}

static PANIC: RareLine = RareLine::new();

/// Counts panics, and sends message and place to the server's log.
///
/// The standard hook writes to the standard error output, which a server in the background throws away. And where
/// the environment asks for a backtrace, it reads the module's debug information in a way that frees with one allocator
/// what another one gave, if the server brings its own: that ends the server (seen on Valkey 8.1).
pub fn log_panics() {
    set_hook(Box::new(|panic| {
        stats::PANICS.add_one();
        PANIC.warn(|| {
            format!(
                "a defect, {panic}. The call got an error, the server goes on. Please report this line and the call"
            )
        });
    }));
}

#[cfg(test)]
mod tests {
    use super::{Error, guarded};

    #[test]
    fn a_panic_becomes_an_error() {
        assert!(matches!(guarded(|| panic!("seven")), Err(Error::Text(_))));
    }

    #[test]
    fn what_does_not_panic_passes() {
        assert!(guarded(|| Ok(())).is_ok());
        assert!(matches!(guarded(|| Err(Error::WrongArity)), Err(Error::WrongArity)));
    }
}
