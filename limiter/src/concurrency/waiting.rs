//! How long it takes until enough has come back.

use std::ops::RangeInclusive;

/// Parts that a range of time is cut into, as a power of two.
const BITS: u32 = 8;
const PARTS: usize = 1 << BITS;
/// So few places are put in order.
const FEW: usize = 32;

/// The moment at which so many units (at least 1) have come back, of places with an end and units each, all of whose ends lie in the range; its
/// end if there are not so many units.
///
/// Nothing is sorted or allocated, as there may be thousands: each round looks at all places once, adds up the units that end in each part of the
/// range, and goes on with the part in which the last one needed does, until few places are left there. Mostly that is one round.
pub(super) fn end_of(
    places: &(impl Iterator<Item = (u64, u64)> + Clone),
    range: RangeInclusive<u64>,
    mut units: u64,
) -> u64 {
    let (mut from, mut to) = range.into_inner();
    while from < to {
        // As long as a power of two, so that a shift tells the part.
        let shift = (u64::BITS - (to - from).leading_zeros()).saturating_sub(BITS);
        let mut parts = [0_u64; PARTS];
        let inside = places.clone().filter(|(end, _)| (from..=to).contains(end));
        inside.for_each(|(end, units)| {
            let sum = &mut parts[((end - from) >> shift) as usize % PARTS];
            *sum = sum.saturating_add(units);
        });
        let Some(part) = (0..).zip(&parts).find_map(|(part, &sum)| {
            if units <= sum {
                return Some(part);
            }
            units -= sum;
            None
        }) else {
            return to;
        };
        from = from.saturating_add(part << shift);
        to = from.saturating_add((1 << shift) - 1).min(to);
        let inside = places.clone().filter(|(end, _)| (from..=to).contains(end));
        if let Some(end) = end_of_few(inside, units) {
            return end;
        }
    }
    from
}

/// The same of at most [`FEW`] places; `None` if there are more, or not so many units.
fn end_of_few(places: impl Iterator<Item = (u64, u64)>, mut units: u64) -> Option<u64> {
    let mut few = [(0, 0); FEW];
    let mut count = 0;
    for place in places {
        *few.get_mut(count)? = place;
        count += 1;
    }
    let few = few.get_mut(..count)?;
    few.sort_unstable();
    few.iter().find_map(|&(end, given)| {
        if units <= given {
            return Some(end);
        }
        units -= given;
        None
    })
}

#[cfg(test)]
mod tests {
    use super::end_of;

    /// Numbers that look random: an LCG's high bits.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 20
    }

    #[test]
    fn it_is_the_end_at_which_the_sum_in_order_is_reached() {
        let mut state = 1;
        for round in 0..3_000 {
            // From all at one moment to all over the time that there is.
            let spread = 1_u64 << (round % 45);
            let of_all = |state: &mut u64| (1 << 61) + next(state) % spread;
            let mut places: Vec<_> = (0..1 + round % 400).map(|_| (of_all(&mut state), next(&mut state) % 5)).collect();
            // Most of them close together.
            if round % 3 == 0 {
                places.iter_mut().skip(1).for_each(|place| place.0 = (1 << 61) + (place.0 & 7));
            }
            let total: u64 = places.iter().map(|place| place.1).sum();
            let given = places.clone();
            places.sort_unstable();
            let (Some(first), Some(last)) = (places.first(), places.last()) else { continue };
            for units in [1, total / 2, total, next(&mut state) % (total + 1)].into_iter().filter(|&units| units > 0) {
                let mut left = units;
                let expected = places.iter().find(|place| {
                    let is_it = left <= place.1;
                    left = left.saturating_sub(place.1);
                    is_it
                });
                let expected = expected.map_or(last.0, |place| place.0);
                assert_eq!(end_of(&given.iter().copied(), first.0..=last.0, units), expected, "round {round}");
            }
        }
    }
}
