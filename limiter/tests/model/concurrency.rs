//! The concurrency limit by definition: a list of holders, each of which has its units until its end.
//!
//! It knows nothing of the crate but the types of its answers.

use rl_limiter::{Decision, RetryAfter, TooManyHolders};

/// A key.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The remembered limit.
    pub remembered: Option<u64>,
    pub holders: Vec<Holder>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    pub name: String,
    pub units: u64,
    pub ttl: u64,
    pub end: u64,
}

impl Model {
    /// The places that are held at `now`, none of which ends later than its ttl from then.
    pub fn seen(&self, now: u64) -> Vec<Holder> {
        let holders = self.holders.iter().cloned();
        let bounded = holders.map(|holder| Holder { end: holder.end.min(now + holder.ttl), ..holder });
        bounded.filter(|holder| now < holder.end).collect()
    }

    pub fn ends_too_late(&self, now: u64) -> bool {
        self.holders.iter().any(|holder| holder.end > now + holder.ttl)
    }

    pub fn decide(
        &mut self,
        (limit, ttl): (u64, u64),
        now: u64,
        name: &str,
        cost: u64,
        renew_only: bool,
        most: usize,
    ) -> Result<Decision, TooManyHolders> {
        let mut seen = self.seen(now);
        let asked = u128::from(cost.max(1));
        let place = seen.iter().position(|holder| holder.name == name);
        let has = place.map_or(0, |index| u128::from(seen[index].units));
        let others: Vec<_> = seen.iter().filter(|holder| holder.name != name).cloned().collect();
        let sum = |holders: &[Holder]| holders.iter().map(|holder| u128::from(holder.units)).sum::<u128>();
        let fits = |others: &[Holder]| sum(others) + asked <= u128::from(limit);
        let may = place.is_some() || !renew_only;
        let allowed = asked <= has || fits(&others) && may;
        let too_many = allowed && cost > 0 && place.is_none() && seen.len() >= most;
        if cost > 0 && !too_many {
            let next = Holder { name: name.to_owned(), units: cost, ttl, end: now + ttl };
            match place {
                Some(index) if allowed => seen[index] = next,
                Some(index) => seen[index] = Holder { units: seen[index].units, ..next },
                None if allowed => seen.push(next),
                None => {}
            }
        }
        let writes = cost > 0 && (place.is_some() || allowed && !too_many || self.ends_too_late(now));
        if writes {
            self.holders.clone_from(&seen);
        }
        if too_many {
            return Err(TooManyHolders);
        }
        if allowed && cost > 0 && limit > 0 {
            self.remembered = Some(limit);
        }
        let retry_after = if allowed {
            RetryAfter::Millis(0)
        } else {
            // The first moment at which enough others have expired, if there is one and the caller may then still ask.
            let ends = others
                .iter()
                .map(|holder| holder.end)
                .filter(|&end| fits(&others.iter().filter(|holder| holder.end > end).cloned().collect::<Vec<_>>()));
            let wait = ends.min().map(|end| (end - now).div_ceil(1_000));
            let own = seen.iter().find(|holder| holder.name == name).map(|holder| holder.end);
            let in_time = |wait: u64| !renew_only || own.is_some_and(|end| now + wait * 1_000 < end);
            wait.filter(|&wait| in_time(wait)).map_or(RetryAfter::Never, RetryAfter::Millis)
        };
        let remaining = u64::try_from(u128::from(limit).saturating_sub(sum(&seen))).unwrap();
        let reset_after = seen.iter().map(|holder| (holder.end - now).div_ceil(1_000)).max().unwrap_or(0);
        Ok(Decision { allowed, limit, remaining, retry_after, reset_after })
    }

    pub fn release(&mut self, now: u64, name: &str) -> u64 {
        let mut seen = self.seen(now);
        let place = seen.iter().position(|holder| holder.name == name);
        if place.is_some() || !seen.is_empty() && self.ends_too_late(now) {
            self.holders.clone_from(&seen);
        }
        let Some(index) = place else { return 0 };
        let units = seen.remove(index).units;
        self.holders = seen;
        units
    }
}
