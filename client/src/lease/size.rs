//! How much a node leases, and for how long.

use std::time::Duration;

use rl_limiter::TokenBucket;

/// No lease is meant to last shorter, unless the bucket refills faster than that, …
const SHORTEST: Duration = Duration::from_millis(50);
/// … and none longer.
const LONGEST: Duration = Duration::from_secs(1);
/// The bounds of a row's ttl.
const TTL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// What the size of a lease depends on, beside the bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Units a second that are asked for here.
    pub demand: f64,
    /// How long a call to Redis takes.
    pub round_trip: Duration,
    /// Nodes that lease of the same bucket, this one included.
    pub nodes: u64,
}

/// The size of a lease.
///
/// With the demand λ, the capacity C, the rate R and K nodes its length is T = clamp(max(50 ms, 4 / λ), 2 round trips, min(C / 4R, 1 s)):
/// long enough to be worth a call, and so short that what the nodes hold leaves the bucket room to refill. The tokens are
/// n = clamp(λT, 1, C / 2K), so that all nodes together hold half of the bucket at most. Where a lower bound exceeds the upper one, the
/// upper one holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    /// For how long the tokens are meant to last.
    pub length: Duration,
    /// The tokens to have; 0 if the bucket is too small for its nodes.
    pub tokens: u64,
    /// The most to have, C / 2K.
    pub most: u64,
    /// Fewer tokens are not worth a call: a node's part of what refills while the lease lasts.
    pub least: u64,
    /// How long the server keeps them for a node that is silent.
    pub ttl: Duration,
    /// Requests that one lease answers, λT.
    worth: f64,
    /// Tokens of the bucket for each node, C / K.
    per_node: f64,
    /// Whether what is granted arrives long before its time has passed.
    is_in_time: bool,
}

impl Size {
    pub fn of(bucket: TokenBucket, conditions: Conditions) -> Self {
        let Conditions { demand, round_trip, nodes } = conditions;
        let nodes = nodes.max(1) as f64;
        let capacity = bucket.capacity().get() as f64;
        let rate = bucket.rate().units() as f64 * 1e6 / bucket.rate().micros() as f64;
        let longest = (capacity / (4.0 * rate)).min(LONGEST.as_secs_f64());
        let wished = SHORTEST.as_secs_f64().max(4.0 / demand).max(2.0 * round_trip.as_secs_f64());
        let length = wished.min(longest);
        let worth = demand * length;
        let most = capacity / (2.0 * nodes);
        // A cast rounds down and saturates.
        let (tokens, most) = (worth.max(1.0).min(most) as u64, most as u64);
        let least = (tokens as f64).min(rate * length / nodes) as u64;
        let length = Duration::from_secs_f64(length);
        let ttl = (4 * length).clamp(TTL.0, TTL.1);
        let is_in_time = round_trip.saturating_mul(4) <= ttl;
        Self { length, tokens, most, least, ttl, worth, per_node: capacity / nodes, is_in_time }
    }

    /// Whether a lease pays: it answers two requests at least, and the bucket has four tokens for each node. One that is there already pays
    /// down to half of both, so that it does not come and go. None pays whose call takes more than a quarter of its ttl.
    pub fn pays(&self, is_there: bool) -> bool {
        let part = if is_there { 0.5 } else { 1.0 };
        self.is_in_time && self.tokens > 0 && self.worth >= 2.0 * part && self.per_node >= 4.0 * part
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use rl_limiter::{Capacity, Rate, TokenBucket};

    use super::{Conditions, Size};

    fn bucket(capacity: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(Capacity::new(capacity).unwrap(), Rate::parse("rate", rate.as_bytes()).unwrap())
    }

    fn size(capacity: u64, rate: &str, demand: f64, round_trip: u64, nodes: u64) -> Size {
        let round_trip = Duration::from_millis(round_trip);
        Size::of(bucket(capacity, rate), Conditions { demand, round_trip, nodes })
    }

    fn millis(size: &Size) -> u128 {
        size.length.as_millis()
    }

    #[test]
    fn everyday_numbers() {
        // 40 000 at once, 100 000 a second: at most 100 ms long.
        let hot = size(40_000, "100000", 25_000.0, 1, 4);
        assert_eq!((millis(&hot), hot.tokens, hot.least, hot.ttl.as_millis()), (50, 1_250, 1_250, 500));
        assert!(hot.pays(false));
        let calm = size(40_000, "100000", 40.0, 1, 4);
        assert_eq!((millis(&calm), calm.tokens, calm.ttl.as_millis()), (100, 4, 500), "4 / λ");
        let far = size(40_000, "10000", 25_000.0, 80, 4);
        assert_eq!((millis(&far), far.tokens, far.ttl.as_millis()), (160, 4_000, 640), "2 round trips");
        let long = size(1_000, "100/m", 5.0, 1, 4);
        assert_eq!((millis(&long), long.tokens, long.ttl.as_millis()), (800, 4, 3_200));
        let longest = size(1_000, "100/m", 0.5, 1, 4);
        assert_eq!((millis(&longest), longest.tokens, longest.ttl.as_millis()), (1_000, 1, 4_000));
    }

    #[test]
    fn all_nodes_together_hold_half_of_the_bucket_at_most() {
        let scarce = size(200, "1000", 1e6, 1, 10);
        assert_eq!((millis(&scarce), scarce.tokens), (50, 10));
        assert_eq!(scarce.least, 5, "its part of what refills meanwhile, 1000 / s × 50 ms / 10");
    }

    #[test]
    fn where_a_lower_bound_exceeds_the_upper_one_the_upper_one_holds() {
        let small = size(10, "1", 1e6, 1, 20);
        assert_eq!(small.tokens, 0, "half of 10 for 20 nodes");
        assert!(!small.pays(false) && !small.pays(true));
        let fast = size(100, "1000000", 1e6, 5, 1);
        assert_eq!((fast.length, fast.tokens), (Duration::from_micros(25), 25), "it refills within a round trip");
        assert_eq!(fast.ttl, Duration::from_millis(500));
    }

    #[test]
    fn nothing_is_leased_where_it_does_not_pay() {
        assert!(!size(40_000, "100000", 0.0, 1, 4).pays(false), "nobody asks");
        assert!(!size(0, "1", 1e6, 1, 1).pays(true), "nothing is ever allowed");
        let (near, far) = (size(4_000, "10000", 1e4, 125, 1), size(4_000, "10000", 1e4, 126, 1));
        assert_eq!((near.pays(false), far.pays(true)), (true, false), "what arrives late is of no use for long");
        // T = 1 s: two requests in it pay, and one keeps it.
        for (demand, begins, stays) in [(2.0, true, true), (1.9, false, true), (1.0, false, true), (0.9, false, false)]
        {
            let size = size(1_000, "1", demand, 1, 1);
            assert_eq!((size.pays(false), size.pays(true)), (begins, stays), "{demand} a second");
        }
        for (nodes, begins, stays) in [(10, true, true), (11, false, true), (20, false, true), (21, false, false)] {
            let size = size(40, "1", 1e3, 1, nodes);
            assert_eq!((size.pays(false), size.pays(true)), (begins, stays), "40 for {nodes} nodes");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_numbers_the_bounds_hold(
            capacity in prop_oneof![0..100_u64, 0..1_u64 << 53],
            units in 1..1_000_000_000_000_000_u64,
            window in prop::sample::select(vec!["1ms", "250ms", "1s", "1h", "36500d"]),
            demand in prop_oneof![Just(0.0), 0.0..10.0, 0.0..1e18],
            round_trip in 0..3_600_000_u64,
            nodes in prop_oneof![Just(0), 1..2_000_u64, Just(u64::MAX)],
        ) {
            let rate = format!("{units}/{window}");
            let bucket = bucket(capacity, &rate);
            let size = size(capacity, &rate, demand, round_trip, nodes);
            prop_assert!(size.length <= Duration::from_secs(1));
            prop_assert!(Duration::from_millis(500) <= size.ttl && size.ttl <= Duration::from_secs(5));
            let all = u128::from(size.tokens) * u128::from(nodes.max(1));
            prop_assert!(size.tokens <= 1 || all <= u128::from(capacity / 2) + u128::from(nodes) , "{all} of {capacity}");
            prop_assert!(size.tokens > 0 || capacity < nodes.max(1).saturating_mul(2) || !size.pays(true));
            prop_assert!(size.least <= size.tokens);
            let refilled = bucket.rate().units() as f64 * size.length.as_secs_f64() * 1e6 / bucket.rate().micros() as f64;
            prop_assert!(refilled <= capacity as f64 / 4.0 + bucket.rate().units() as f64 / 1e3 / bucket.rate().micros() as f64 + 1e-6);
        }
    }
}
