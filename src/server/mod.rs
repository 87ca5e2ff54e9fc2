//! The server, made safe.
//!
//! All unsafe code of the module is in this folder, one concept a file, each block with its reason. What it offers
//! outside is safe to use whatever a command does with it. Nothing here knows what a limiter is.
#![allow(unsafe_code)]

mod alloc;
mod api;
mod call;
mod config;
mod guard;
mod key;
mod load;
mod register;
mod replicate;

pub use alloc::ServerAllocator;
pub use call::{Call, Error, Field};
pub use config::Setting;
pub use key::{Key, Mode, Value};
pub use load::{Module, load, unload};
pub use register::{Access, Argument, ArgumentKind, Command, EntryPoint, Handler, Keys};
