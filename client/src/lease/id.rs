//! By what Redis knows this process.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// 32 hexadecimal digits that nobody else has: the standard library's hashers are seeded by the operating system.
pub(crate) fn fresh_id() -> String {
    // Of one thread they differ by a count, which they mix in.
    let part = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", part(), part())
}

#[cfg(test)]
mod tests {
    use super::fresh_id;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_equal() {
        let ids: HashSet<String> = (0..10_000).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 32));
    }
}
