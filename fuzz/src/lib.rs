//! What the fuzz targets check. `scripts/fuzz` runs them.
//!
//! A command is its arguments, what is stored, the clock, and a decision. The first two are anybody's to choose, so
//! here they are any bytes: [`arguments`] reads them by every parser, [`states`] as what is stored, and does to those
//! that are believed whatever commands do. What the server's functions see of them is tested in real servers
//! (`tests/live/hostile`).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `arguments` | the target of that name |
//! | `states` | the target of that name; one arm a kind |
//! | `states/call` | a call with arbitrary parameters |
//! | `states/facts` | what a state tells about itself |
//! | `states/numbers` | what is done to kinds that keep a few numbers |
//! | `states/log` | what is done to a sliding window log |
//! | `states/holders` | what is done to holders |
//! | `states/leases` | what is done to a token bucket of which nodes hold slices |
//! | `states/joint` | several limits in one call |
//! | `states/changed` | what is left of a state that is too big to be a value |
//! | `states/answer` | what holds for every answer |
//! | `seeds` | real states, from which fuzzing starts |

pub mod arguments;
pub mod seeds;
pub mod states;

/// The grammar, read naively.
#[path = "../../limiter/tests/grammar/reading.rs"]
mod reading;
