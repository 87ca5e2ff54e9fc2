//! What a string of so many bytes is given: servers that keep states as strings count in the classes of their allocator.

/// The most that Redis puts around the bytes of a string.
pub(crate) const MOST_AROUND: usize = 10;

/// What Redis puts around so many bytes of a string: a head of 3, 5 or 9 bytes by their number, and 1 behind.
pub(crate) const fn around(bytes: usize) -> usize {
    match bytes {
        0..=0xFF => 4,
        0x100..=0xFFFF => 6,
        _ => MOST_AROUND,
    }
}

/// What an allocator with classes a quarter of a power of two apart gives for so many bytes, from 33 on (jemalloc's classes,
/// which Redis is built with).
pub(crate) fn allocated(bytes: usize) -> usize {
    let step = 1 << bytes.saturating_sub(1).max(32).ilog2().saturating_sub(2);
    bytes.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::{allocated, around};

    #[test]
    fn classes_are_those_of_jemalloc() {
        let given = [
            (33, 40),
            (52, 56),
            (65, 80),
            (113, 128),
            (129, 160),
            (160, 160),
            (500, 512),
            (513, 640),
            (8_192, 8_192),
            (8_193, 10_240),
            (700_000, 786_432),
        ];
        for (bytes, class) in given {
            assert_eq!(allocated(bytes), class);
        }
    }

    #[test]
    fn heads_of_strings_grow_with_them() {
        let heads = [255, 256, 65_535, 65_536].map(around);
        assert_eq!(heads, [4, 6, 6, 10]);
    }
}
