//! The bounds of what a limiter works with: nothing outside them can be made, so nothing inside has to fear them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod random;

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;
use random::check;
use rl_limiter::{Cost, Micros, Rate, Window};

/// 2^63, which no term of a rate reaches.
const TERMS_END: u64 = 1 << 63;

#[test]
fn units_end_at_the_largest_exact_double() {
    let most = (1 << 53) - 1;
    assert_eq!(Cost::new(0).unwrap().get(), 0);
    assert_eq!(Cost::new(most).unwrap().get(), most);
    assert_eq!(Cost::new(most + 1), None);
    assert_eq!(Cost::new(u64::MAX), None);
    assert_eq!(Cost::ONE, Cost::new(1).unwrap());
}

#[test]
fn moments_saturate_as_a_clock_reads_them_and_are_refused_as_a_state_holds_them() {
    let last = (1 << 62) - 1;
    assert_eq!(Micros::MAX.get(), last);
    assert_eq!(Micros::new(last), Some(Micros::MAX));
    assert_eq!(Micros::new(last + 1), None);
    assert_eq!(Micros::new(u64::MAX), None);
    for (clock, moment) in
        [(i64::MIN, 0), (-1, 0), (0, 0), (1, 1), (1 << 61, 1 << 61), (1 << 62, last), (i64::MAX, last)]
    {
        assert_eq!(Micros::saturating(clock).get(), moment, "{clock}");
    }
}

#[test]
fn windows_are_a_millisecond_to_a_century() {
    let longest = 36_500 * 86_400_000_000;
    for (micros, fits) in
        [(0, false), (999, false), (1_000, true), (longest, true), (longest + 1, false), (u64::MAX, false)]
    {
        assert_eq!(Window::from_micros(micros).map(Window::as_micros), fits.then_some(micros));
    }
}

#[test]
fn rates_are_kept_in_lowest_terms_below_2_to_the_63() {
    let edge = || prop_oneof![Just(0), Just(1), Just(TERMS_END - 1), Just(TERMS_END), Just(u64::MAX)];
    let term = move || prop_oneof![2 => 0..1_000_u64, 2 => any::<u64>(), 1 => edge()];
    let common = prop_oneof![Just(1), 2..1_000_u64];
    check(10_000, (term(), term(), common), |(units, micros, common)| {
        let [units, micros] = [units, micros].map(|term| term.checked_mul(common).unwrap_or(term));
        let kept = Rate::new(units, micros).map(|rate| (rate.units(), rate.micros()));
        prop_assert_eq!(kept, lowest_terms(units, micros), "{} every {} µs", units, micros);
        Ok(())
    });
}

fn lowest_terms(units: u64, micros: u64) -> Option<(u64, u64)> {
    if units == 0 || micros == 0 {
        return None;
    }
    let rate = BigRational::new(BigInt::from(units), BigInt::from(micros));
    let terms: (u64, u64) = (rate.numer().try_into().ok()?, rate.denom().try_into().ok()?);
    (terms.0 < TERMS_END && terms.1 < TERMS_END).then_some(terms)
}
