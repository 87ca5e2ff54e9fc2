//! The holders as one call sees them.

use super::plan::{Change, Plan};
use super::waiting::end_of;
use super::{Place, State};
use crate::decision::millis;
use crate::quantity::{Micros, Name};
use crate::rows::Sought;

/// The holders as a call sees them.
pub(super) struct Survey<'a> {
    pub(super) now: Micros,
    /// The caller's place, and its index.
    pub(super) own: Option<(usize, Place<'a>)>,
    /// Units of all others.
    pub(super) others: u64,
    /// When the first place of the others expires, and its units.
    pub(super) first: (Micros, u64),
    /// When the last place of the others expires.
    pub(super) last: Micros,
    /// Places that are held, the caller's among them.
    pub(super) live: usize,
    /// Whether some have expired.
    pub(super) expired: bool,
    /// Microseconds by which one ends later than its ttl from now, at most.
    pub(super) later: u64,
}

impl<'a> Survey<'a> {
    pub(super) fn of(state: Option<State<'a>>, now: Micros, holder: Option<Name<'_>>) -> Self {
        let mut survey =
            Self { now, own: None, others: 0, first: (Micros::MAX, 0), last: now, live: 0, expired: false, later: 0 };
        let Some(state) = state else { return survey };
        let sought = holder.map(Sought::new);
        for (index, row) in state.rows.iter().enumerate() {
            let place = Place::seen(row, now);
            if place.expiry <= now {
                survey.expired = true;
                continue;
            }
            survey.later = survey.later.max(place.ends_later(row));
            survey.live += 1;
            if survey.own.is_none() && sought.is_some_and(|sought| row.is(sought)) {
                survey.own = Some((index, place));
                continue;
            }
            survey.others = survey.others.saturating_add(place.units);
            survey.last = survey.last.max(place.expiry);
            if place.expiry < survey.first.0 {
                survey.first = (place.expiry, place.units);
            }
        }
        survey
    }

    /// What a call that takes nothing does: holders keep their places when the clock went back, for their ttl from now at most.
    pub(super) fn only_seen(&self, state: Option<State<'a>>) -> Option<Plan> {
        let state = state.filter(|_| self.later > 0)?;
        let last = self.own.map_or(self.last, |(_, place)| self.last.max(place.expiry));
        Some(Plan::new(Some(state), self, state.limit, Change::Nothing, last))
    }

    /// Milliseconds, rounded up, until the others have given back so many units by expiring.
    pub(super) fn wait(&self, state: Option<State<'a>>, units: u64) -> u64 {
        let own = self.own.map(|(index, _)| index);
        let end = match state {
            // Mostly the first that expires is enough.
            Some(state) if self.first.1 < units => {
                let others = state.rows.iter().enumerate().filter(move |&(index, _)| Some(index) != own);
                let places = others.map(|(_, row)| Place::seen(row, self.now));
                let places = places.map(|place| (place.expiry.get(), place.units));
                let end = end_of(&places, self.first.0.get()..=self.last.get(), units);
                Micros::new(end).unwrap_or(self.last)
            }
            _ => self.first.0,
        };
        millis(end.since(self.now))
    }
}
