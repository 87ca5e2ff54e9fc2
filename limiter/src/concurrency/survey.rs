//! The holders as one call sees them.

use super::plan::{Change, Plan};
use super::waiting::end_of;
use super::{Kept, Place, State};
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
    pub(super) first: (u64, u64),
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
    /// Looks at every row; again only where one has expired or is moved.
    pub(super) fn of(state: Option<State<'a>>, now: Micros, holder: Option<Name<'_>>) -> Self {
        let none = Self {
            now,
            own: None,
            others: 0,
            first: (Sum::NONE.first, 0),
            last: now,
            live: 0,
            expired: false,
            later: 0,
        };
        let Some(state) = state else { return none };
        let own = holder.and_then(|holder| state.place_of(Sought::new(holder), now));
        let but = own.map_or(usize::MAX, |(index, _)| index);
        let mut moved = false;
        let all = Sum::of(state.kept(now, but).map(|(row, kept)| {
            moved |= kept.ends_later(row) > 0;
            kept
        }));
        let is_live = |kept: &Kept| kept.until > now.get();
        let others = if all.first <= now.get() {
            Sum::of(state.kept(now, but).map(|(_, kept)| kept).filter(is_live))
        } else {
            all
        };
        let mut later =
            own.and_then(|(index, _)| state.rows.get(index)).map_or(0, |row| Kept::seen(row, now).ends_later(row));
        if moved {
            let live = state.kept(now, but).filter(|(_, kept)| is_live(kept));
            later = live.map(|(row, kept)| kept.ends_later(row)).fold(later, u64::max);
        }
        Self {
            own,
            others: u64::try_from(others.units).unwrap_or(u64::MAX),
            first: (others.first, others.units_of_first),
            last: Micros::new(others.last).unwrap_or(Micros::MAX).max(now),
            live: others.count + usize::from(own.is_some()),
            expired: others.count < all.count,
            later,
            ..none
        }
    }

    /// What a call that takes nothing does: holders keep their places when the clock went back, for their ttl from now at most.
    pub(super) fn only_seen(&self, state: Option<State<'a>>) -> Option<Plan> {
        let state = state.filter(|_| self.later > 0)?;
        let last = self.own.map_or(self.last, |(_, place)| self.last.max(place.expiry));
        Some(Plan::new(Some(state), self, state.limit, Change::Nothing, last))
    }

    /// Milliseconds, rounded up, until the others have given back so many units by expiring.
    pub(super) fn wait(&self, state: Option<State<'a>>, units: u64) -> u64 {
        let own = self.own.map_or(usize::MAX, |(index, _)| index);
        let end = match state {
            // Mostly the first that expires is enough.
            Some(state) if self.first.1 < units => {
                let places = state.kept(self.now, own).map(|(_, kept)| (kept.until, kept.units));
                end_of(&places, self.first.0..=self.last.get(), units)
            }
            _ => self.first.0,
        };
        millis(end.min(self.last.get()).saturating_sub(self.now.get()))
    }
}

/// What places come to.
#[derive(Clone, Copy)]
struct Sum {
    count: usize,
    units: u128,
    first: u64,
    units_of_first: u64,
    last: u64,
}

impl Sum {
    const NONE: Self = Self { count: 0, units: 0, first: u64::MAX, units_of_first: 0, last: 0 };

    fn of(places: impl Iterator<Item = Kept>) -> Self {
        places.fold(Self::NONE, |sum, kept| Self {
            count: sum.count + 1,
            units: sum.units + u128::from(kept.units),
            first: sum.first.min(kept.until),
            units_of_first: if kept.until < sum.first { kept.units } else { sum.units_of_first },
            last: sum.last.max(kept.until),
        })
    }
}
