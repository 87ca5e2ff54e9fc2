//! Numbers by chance.

use std::hash::{BuildHasher, RandomState};

/// Another sequence in each run.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        Self(RandomState::new().hash_one(0) | 1)
    }

    /// The sequence that `RL_SEED` in the environment says, or another one, which is told: a failed test shows what it told.
    pub fn of_seed() -> Self {
        let seed = std::env::var("RL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| Self::new().0);
        println!("RL_SEED={seed}");
        Self(seed | 1)
    }

    /// One of `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
