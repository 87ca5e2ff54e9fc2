//! Random values that can be had again.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

/// Checks something for random values. A failure names the simplest value that it finds to fail, and a seed that repeats
/// the run. `PROPTEST_RNG_SEED` in the environment sets the seed, `PROPTEST_CASES` the number of values.
pub fn check<S: Strategy>(cases: u32, values: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: Debug,
{
    let mut config = Config { failure_persistence: None, max_shrink_iters: 5_000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into(),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    if let Err(failure) = TestRunner::new(config).run(&values, test) {
        panic!("{failure}\nTo repeat it: PROPTEST_RNG_SEED={seed}");
    }
}
