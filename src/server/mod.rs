//! The server, made safe.
//!
//! All unsafe code of the module is in this folder, one concept a file, each block with its reason. What it offers
//! outside is safe to use whatever a command does with it. Nothing here knows what a limiter is.
#![allow(unsafe_code)]

mod alloc;
mod api;
mod call;
mod guard;
mod key;
mod load;
mod register;
mod replicate;

pub use alloc::ServerAllocator;
pub use call::{Call, Error};
pub use key::{Key, Mode, Value};
pub use load::{SERVER_CHECK, ServerCheck, may_unload, set_up};
pub use register::{Access, Argument, ArgumentKind, Command, EntryPoint, Handler};
