//! Exact rate-limiting algorithms as pure functions.
//!
//! A limiter here is a value, and deciding is a function (a [log](sliding_log) and [holders](concurrency) are too big for that and work on bytes): the state that was stored goes in, with the time and the cost
//! of the call; a [`Decision`] and the state to store come out. Nothing in this crate reads a clock, does I/O or uses floating
//! point, and only what grows allocates, so whoever holds the state (a Redis module, a process's own memory, a test) gets the same
//! answer to the last unit.
//!
//! ```
//! use rl_limiter::{Capacity, Cost, Limiter, Micros, Rate, RetryAfter, TokenBucket};
//!
//! // Three at once, then one a second.
//! let bucket = TokenBucket::new(Capacity::new(3).unwrap(), Rate::parse("rate", b"1").unwrap());
//! let noon = Micros::new(1_796_040_000_000_000).unwrap();
//!
//! let first = bucket.decide(None, noon, Cost::ONE);
//! assert!(first.decision.allowed);
//! assert_eq!(first.decision.remaining, 2);
//!
//! // The state that came out goes into the next call. What is denied brings no new state: there is nothing to store.
//! let second = bucket.decide(first.next, noon, Cost::new(3).unwrap());
//! assert!(!second.decision.allowed);
//! assert_eq!(second.decision.retry_after, RetryAfter::Millis(1_000));
//! assert!(second.next.is_none());
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`quantity`] | limits, costs, windows, rates and times, each checked when it is made; their parsers are the command line's grammar |
//! | [`decision`] | the answer to a call |
//! | [`limiter`] | what every algorithm has in common |
//! | [`fixed_window`], [`sliding_window`], [`sliding_log`], [`token_bucket`], [`leaky_bucket`], [`concurrency`] | the algorithms, one a file |
//! | [`several`] | several limits in one call: all or nothing |
//! | [`share`] | what remains of a limit as an exact fraction |
//! | [`lease`] | slices of a token bucket for nodes that decide alone until theirs is used up |
//! | [`plan`] | changes to states that are too big to be values |
//! | [`layout`] | states as bytes, which trusts none of them |

#![forbid(unsafe_code)]

mod allocation;
pub mod concurrency;
pub mod decision;
pub mod fixed_window;
pub mod layout;
pub mod leaky_bucket;
pub mod lease;
pub mod limiter;
mod page;
pub mod plan;
pub mod quantity;
mod rows;
pub mod several;
pub mod share;
pub mod sliding_log;
pub mod sliding_window;
pub mod token_bucket;

pub use concurrency::{Concurrency, TooManyHolders};
pub use decision::{Decision, Outcome, RetryAfter, Taken};
pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use limiter::{Fact, Limiter, LimiterState, Look, Refundable};
pub use page::Touched;
pub use plan::Plan;
pub use quantity::{Age, ArgumentError, Capacity, Cost, Limit, Micros, Name, Rate, Window};
pub use several::{JointVerdict, Vote};
pub use share::Share;
pub use sliding_log::{SlidingLog, TooManyEntries};
pub use sliding_window::SlidingWindow;
pub use token_bucket::{Debit, TokenBucket};
