//! The server, made safe.
//!
//! All unsafe code of the module is in this folder, one concept a file, each block with its reason. What it offers
//! outside is safe to use whatever a command does with it. Nothing here knows what a limiter is.
#![allow(unsafe_code)]

mod alloc;
mod api;
pub mod audience;
mod call;
mod config;
mod counter;
mod guard;
mod info;
mod key;
mod load;
mod log;
mod register;
mod replicate;
pub mod stats;

pub use alloc::ServerAllocator;
pub use call::{Call, Error, Field};
pub use config::Setting;
pub use counter::Counter;
pub use info::{Inform, Informer, Section};
pub use key::{Key, Mode, Value};
pub use load::{Module, load, unload};
pub use log::RareLine;
pub use register::{Access, Argument, ArgumentKind, Command, EntryPoint, Handler, Keys};
