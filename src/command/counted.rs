//! The one place through which decisions pass on their way to a reply, where they are counted.

use rl_limiter::{Cost, Decision};

use super::NOTIFY_DENIED;
use super::algorithm::Algorithm;
use super::top;
use crate::server::Call;

/// A decision that has been counted, or must not be. Decisions are replied as nothing else, so no command can forget to
/// count.
#[derive(Clone, Copy, Debug)]
pub struct Counted(Decision);

impl Counted {
    /// A call of `cost` was decided on the key that the argument at `index` names, which must be closed by now. Of cost
    /// 0 it only looked.
    pub fn decided(call: &Call<'_>, index: usize, by: Algorithm, cost: Cost, decision: Decision) -> Self {
        if cost > Cost::ZERO {
            record(call, index, by, decision.allowed);
        }
        Self(decision)
    }

    /// Nothing was decided: a call looked, gave back, or took what was there.
    pub fn told(decision: Decision) -> Self {
        Self(decision)
    }

    /// What the caller is told.
    pub fn decision(self) -> Decision {
        self.0
    }
}

/// Counts a decision of a call that asked for something, and tells those who listen about a denied one.
fn record(call: &Call<'_>, index: usize, by: Algorithm, allowed: bool) {
    if allowed {
        by.tally().allowed.add_one();
    } else {
        by.tally().denied.add_one();
        if NOTIFY_DENIED.is_on() {
            call.notify(c"rl.denied", index);
        }
        top::note_denied(call, index);
    }
}
