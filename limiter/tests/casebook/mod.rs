//! The casebook: what broke rate limiters elsewhere, as inputs with the right answers.
//!
//! `tests/casebook/casebook.json` holds the cases as they were collected from public reports. Here they are read
//! ([`case`]), replies are held against them ([`expectation`]) and against what this project decided where a case
//! leaves a choice ([`contract`]). They run on the crate alone ([`shelf`], [`trial`]) and, elsewhere, on real servers;
//! a [`ledger`] keeps account of what ran and of what did not.

// Two test programs share this, and neither needs all of it.
#![allow(dead_code)]

pub mod case;
pub mod contract;
pub mod expectation;
pub mod ledger;
pub mod shelf;
pub mod trial;
