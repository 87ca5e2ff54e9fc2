//! What remains of a limit, as an exact fraction.

use std::cmp::Ordering;

/// The share of a limit that remains: `(limit − used) / limit`, unrounded, so that limits of different size and kind
/// can be compared. Of a limit of 0 nothing remains.
///
/// Shares are ordered by their value; equal fractions are equal whatever their terms.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    left: u128,
    /// Above 0.
    whole: u128,
}

impl Share {
    /// `left` out of `whole`, in any unit. Nothing, if `whole` is 0.
    pub const fn new(left: u128, whole: u128) -> Self {
        if whole == 0 { Self { left: 0, whole: 1 } } else { Self { left, whole } }
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        product(self.left, other.whole).cmp(&product(other.left, self.whole))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Share {}

/// `a × b` in full: what exceeds 128 bits, then the rest. A bucket's amounts take up to 117 bits.
fn product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    if a <= LOW && b <= LOW {
        return (0, a * b);
    }
    let ((a1, a0), (b1, b0)) = ((a >> 64, a & LOW), (b >> 64, b & LOW));
    let (high, middle, other, low) = (a1 * b1, a1 * b0, a0 * b1, a0 * b0);
    let carried = (low >> 64) + (middle & LOW) + (other & LOW);
    (high + (middle >> 64) + (other >> 64) + (carried >> 64), carried << 64 | low & LOW)
}
