//! What the edge of the module counts: calls that were answered with an error, and panics.

use super::counter::Counter;

/// Calls that were answered with an error.
pub static ERRORS: Counter = Counter::new();
/// Those of them whose code is `OOM`.
pub static OUT_OF_MEMORY: Counter = Counter::new();
/// Those of them whose code is `WRONGTYPE`.
pub static WRONG_TYPE: Counter = Counter::new();
/// Panics that the guard has caught.
pub static PANICS: Counter = Counter::new();

/// Counts an error by its text.
pub fn count_error(text: &[u8]) {
    ERRORS.add_one();
    if text.starts_with(b"OOM ") {
        OUT_OF_MEMORY.add_one();
    } else if text.starts_with(b"WRONGTYPE ") {
        WRONG_TYPE.add_one();
    }
}
