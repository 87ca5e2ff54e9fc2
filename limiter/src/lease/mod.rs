//! The lease: nodes that take slices of one token bucket and decide alone until a slice is used up.
//!
//! A call is a statement: "node N still has `have` unspent tokens; make it `want`". What a node is granted leaves the bucket
//! at once and stands in a row of its own until it is reported as spent, given back, or expires; an expired row's tokens are
//! gone, and refill makes new ones. Rows and bucket live under one key.
//!
//! **At every moment the free tokens and those in rows are together at most `capacity`**: refill stops there. Hence, over
//! every interval `(s, t]`, nodes and direct callers together admit at most `capacity + rate × (t − s)`: what they spend was
//! either in a row at `s`, or free at `s`, or refilled since, and the first two were at most `capacity`. Nothing that is lost,
//! late, repeated or crashes adds to that, as long as nodes spend only what is in their rows: [`Holding`] is what they owe.
//! Without that stop a quiet spell lets nodes spend their slices and a full bucket on top.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `ask` | what a call says |
//! | `row` | what is kept of a node |
//! | `refill` | how a bucket refills beside rows |
//! | `crest` | what rows that expire one after the other do to it |
//! | `state` | a bucket with rows, and what the commands of a token bucket make of it |
//! | `seen` | what one call sees of it |
//! | `grant` | what a node gets |
//! | `plan` | what a call does to the bytes |
//! | `holding` | the node's side |
//!
//! Source: the idea is that of C. Gray, D. Cheriton, "Leases: an efficient fault-tolerant mechanism for distributed file
//! cache consistency", SOSP 1989, applied to tokens.

mod ask;
mod crest;
mod grant;
mod holding;
mod plan;
mod refill;
mod row;
mod seen;
mod state;

pub use ask::{Ask, Seq, Ttl};
pub use grant::{Answer, Leased};
pub use holding::{Holding, Statement};
pub use plan::Plan;
pub use row::{MAX_ROWS, Row};
pub use state::{Debit, Lease, State};
