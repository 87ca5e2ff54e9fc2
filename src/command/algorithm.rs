//! The algorithms by which calls are decided, and how often each allowed and denied.

use crate::server::Counter;

/// Lists the algorithms. A row is: the name in the program, the name in `INFO`, and the limiter if it has a type of its
/// own.
macro_rules! algorithms {
    ($($variant:ident, $name:literal $(, $limiter:ty)?;)*) => {
        /// An algorithm by which calls are decided.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Algorithm {
            $(#[doc = concat!("`", $name, "` in `INFO`.")] $variant,)*
        }

        impl Algorithm {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in `INFO`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        $($(
            impl Decides for $limiter {
                const BY: Algorithm = Algorithm::$variant;
            }
        )?)*
    };
}

algorithms! {
    FixedWindow, "fixed_window", rl_limiter::FixedWindow;
    SlidingWindow, "sliding_window", rl_limiter::SlidingWindow;
    SlidingLog, "sliding_log", rl_limiter::SlidingLog;
    TokenBucket, "token_bucket", rl_limiter::TokenBucket;
    LeakyBucket, "leaky_bucket", rl_limiter::LeakyBucket;
    Concurrency, "concurrency", rl_limiter::Concurrency;
}

/// A limiter, by whose type one knows the algorithm.
pub trait Decides {
    /// The algorithm.
    const BY: Algorithm;
}

/// How often an algorithm allowed and denied.
pub struct Tally {
    /// Calls that were allowed.
    pub allowed: Counter,
    /// Calls that were denied.
    pub denied: Counter,
}

static TALLIES: [Tally; Algorithm::ALL.len()] =
    [const { Tally { allowed: Counter::new(), denied: Counter::new() } }; Algorithm::ALL.len()];

impl Algorithm {
    /// How often it allowed and denied.
    pub fn tally(self) -> &'static Tally {
        &TALLIES[self as usize]
    }
}
