//! Slots: which part of a cluster holds a key.

use crc16::{State, XMODEM};

/// So many slots has every cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a key: that of the part in the first braces, if that is anything, else of all of it.
///
/// Source: the Redis cluster specification, "Key distribution model" and "Hash tags".
pub(crate) fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, behind)| behind.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    State::<XMODEM>::calculate(hashed.as_bytes()) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::slot_of;

    /// The values are what `CLUSTER KEYSLOT` answers.
    #[test]
    fn slots_are_those_of_the_server() {
        for (key, slot) in [
            ("123456789", 12739),
            ("foo", 12182),
            ("user:42", 15880),
            ("rl:{user:42}:api", 15880),
            ("a}{b}c", 3300),
            ("{a", 10276),
            ("{{a}}b", 10276),
            ("{}foo", 9500),
            ("", 0),
        ] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }
}
