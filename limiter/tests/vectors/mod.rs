//! Conformance vectors: what every implementation of the commands must reply. `vectors/README.md` says what they are.

mod asked;
pub mod file;
mod oracle;
mod render;
mod scenarios;
mod script;
mod shelf;

pub use render::render;
pub use scenarios::{all, mixed};
pub use shelf::Shelf;
