//! The guard at the edge: no panic may reach the server, which it would end, with everybody's data.

use std::any::Any;
use std::ffi::{CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use redis_module::raw::{RedisModuleCtx, RedisModuleString, Status};

use super::api;
use super::call::{Call, Error};
use super::register::Handler;

/// What the server calls for the command that `H` handles.
pub extern "C" fn enter<H: Handler>(
    ctx: *mut RedisModuleCtx,
    arguments: *mut *mut RedisModuleString,
    count: c_int,
) -> c_int {
    let (Some(api), Ok(count)) = (api::get(), usize::try_from(count)) else {
        return Status::Err as c_int;
    };
    // SAFETY: the server passes so many arguments, which live until this function returns.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, count) };
    // SAFETY: these are the context and the arguments of the call in which we are.
    let call = unsafe { Call::new(api, ctx, arguments) };

    let result = guarded(|| H::run(&call)).unwrap_or_else(|panic| {
        call.log_warning(&panic);
        Err(Error::fixed(
            c"ERR internal error in redis-rl, please report it; the server's log says what it is",
        ))
    });
    if let Err(error) = result {
        call.reply_error(&error);
    }
    Status::Ok as c_int
}

/// Runs a handler; a panic becomes the line to log.
///
/// What the handler was at work on can't be seen half done: it writes last, and what it writes is copied in one piece.
fn guarded<T>(handler: impl FnOnce() -> T) -> Result<T, CString> {
    catch_unwind(AssertUnwindSafe(handler)).map_err(|panic| {
        let line = format!("a command panicked: {}", message(panic.as_ref()));
        CString::new(line.replace('\0', " ")).unwrap_or_default()
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_becomes_a_line_for_the_log() {
        let line = guarded(|| -> u8 { panic!("seven {}\0", "dwarfs") });
        assert_eq!(line, Err(c"a command panicked: seven dwarfs ".into()));
        let line = guarded(|| -> u8 { std::panic::panic_any(7) });
        assert_eq!(line, Err(c"a command panicked: no message".into()));
    }

    #[test]
    fn what_does_not_panic_passes() {
        assert_eq!(guarded(|| 7), Ok(7));
    }
}
