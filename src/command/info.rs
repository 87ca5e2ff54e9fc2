//! What `INFO rl` tells: flat numbers, since the module was loaded.

use super::algorithm::Algorithm;
use super::store::CLOCK_STEPS_BACK;
use crate::server::{Inform, Section, audience, stats};

/// The section.
pub struct Info;

impl Inform for Info {
    fn tell(info: &mut Section<'_>) {
        info.number("version", crate::VERSION.unsigned_abs().into());
        let tallies = || Algorithm::ALL.iter().map(|algorithm| algorithm.tally());
        info.number("allowed", tallies().map(|tally| tally.allowed.get()).sum());
        info.number("denied", tallies().map(|tally| tally.denied.get()).sum());
        for algorithm in Algorithm::ALL {
            info.number(&format!("{}_allowed", algorithm.name()), algorithm.tally().allowed.get());
            info.number(&format!("{}_denied", algorithm.name()), algorithm.tally().denied.get());
        }
        info.number("errors", stats::ERRORS.get());
        info.number("errors_oom", stats::OUT_OF_MEMORY.get());
        info.number("errors_wrongtype", stats::WRONG_TYPE.get());
        info.number("clock_steps_back", CLOCK_STEPS_BACK.get());
        info.number("panics_caught", stats::PANICS.get());
        info.number("effects_propagated", audience::is_there().into());
    }
}
