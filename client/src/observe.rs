//! What is told to operators: metrics and log lines, each behind its feature. Never a subject or a key.

use std::time::Duration;

use crate::decision::Decision;
use crate::error::Error;

/// Reports what happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer;

impl Observer {
    /// A check was decided.
    pub fn decided(&self, decision: &Decision) {
        let _ = decision;
    }

    /// Redis was asked, whatever came of it.
    pub fn asked(&self, took: Duration) {
        let _ = took;
    }

    /// Redis did not decide.
    pub fn failed(&self, error: &Error) {
        let _ = error;
    }

    /// The number of nodes is not known.
    pub fn nodes_unknown(&self) {}
}
