//! Whether what was admitted keeps within `capacity + rate × time`, over every interval.
//!
//! A virtual bucket is drained by everything that anybody admits, and goes below empty rather than refuse. The most that any
//! interval which ends now has had beyond `rate × time` is, with each admission, that of the one before less `rate × time`
//! since, or nothing if that is less (an interval that begins later is worse), and the admission. So this one number judges
//! all intervals, and what it ever exceeds the capacity by is the excess of the worst.

use rl_limiter::TokenBucket;

/// The virtual bucket. Amounts are in parts of a token, as many as the rate's denominator.
pub struct Budget {
    bucket: TokenBucket,
    at: u64,
    drained: u128,
    worst: u128,
}

impl Budget {
    pub fn new(bucket: TokenBucket, at: u64) -> Self {
        Self { bucket, at, drained: 0, worst: 0 }
    }

    /// So many tokens are admitted at a time, in microseconds.
    pub fn admit(&mut self, at: u64, tokens: u64) {
        let rate = self.bucket.rate();
        let refilled = u128::from(rate.units()) * u128::from(at - self.at);
        self.drained = self.drained.saturating_sub(refilled) + u128::from(tokens) * u128::from(rate.micros());
        self.at = at;
        self.worst = self.worst.max(self.drained);
    }

    /// Whole tokens, rounded up, that the worst interval had beyond its allowance.
    pub fn excess(&self) -> u64 {
        let allowed = u128::from(self.bucket.capacity().get()) * u128::from(self.bucket.rate().micros());
        u64::try_from(self.worst.saturating_sub(allowed).div_ceil(self.bucket.rate().micros().into())).unwrap()
    }
}
