//! How subjects and policies become keys.

use sha2::{Digest as _, Sha256};

/// Longer escaped subjects are replaced by their hash: a key is an entry in Redis' memory and a line in its logs.
const LONGEST: usize = 160;

/// `prefix:{subject}:policy`. In a cluster the part in braces alone chooses the slot, so all limits of one subject share it.
///
/// The subject is escaped so that it can't end the braces early or leave them empty, and so that no two subjects share a key:
/// bytes other than printable ASCII, and `{`, `}`, `%` and space, become `%XX`; no bytes at all become `%`, which is no escape; and what is
/// longer than 160 bytes then becomes `%sha256-` and its SHA-256, in which `s` is no hexadecimal digit.
pub(crate) fn key(prefix: &str, subject: &[u8], policy: &str) -> String {
    let mut key = String::with_capacity(prefix.len() + subject.len().min(LONGEST) + policy.len() + 4);
    key.push_str(prefix);
    key.push_str(":{");
    let begins = key.len();
    if subject.is_empty() {
        key.push('%');
    }
    match std::str::from_utf8(subject) {
        // Nearly all of them, and one copy.
        Ok(text) if subject.len() <= LONGEST && subject.iter().all(|&byte| is_plain(byte)) => key.push_str(text),
        _ => escape(&mut key, begins, subject),
    }
    if key.len() - begins > LONGEST {
        key.truncate(begins);
        key.push_str("%sha256-");
        push_hex(&mut key, &Sha256::digest(subject));
    }
    key.push_str("}:");
    key.push_str(policy);
    key
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b'%')
}

/// What is beyond the longest is left out.
fn escape(key: &mut String, begins: usize, subject: &[u8]) {
    for &byte in subject {
        if key.len() - begins > LONGEST {
            break;
        }
        if is_plain(byte) {
            key.push(char::from(byte));
        } else {
            key.push('%');
            push_hex(key, &[byte]);
        }
    }
}

fn push_hex(key: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for byte in bytes {
        key.push(DIGITS[usize::from(byte >> 4)]);
        key.push(DIGITS[usize::from(byte & 0xF)]);
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, key};
    use proptest::prelude::*;

    /// What Redis hashes to find the slot of a key, by the words of its cluster specification: what is between the first `{`
    /// and the first `}` behind it, if that is anything.
    fn hash_tag(key: &str) -> Option<&str> {
        let (_, behind) = key.split_once('{')?;
        let (tag, _) = behind.split_once('}')?;
        (!tag.is_empty()).then_some(tag)
    }

    #[test]
    fn keys_look_as_documented() {
        for (subject, expected) in [
            (&b"user:42"[..], "rl:{user:42}:api"),
            (b"", "rl:{%}:api"),
            (b"%", "rl:{%25}:api"),
            (b"{}", "rl:{%7B%7D}:api"),
            (b"a b\r\n\0", "rl:{a%20b%0D%0A%00}:api"),
            ("é".as_bytes(), "rl:{%C3%A9}:api"),
        ] {
            assert_eq!(key("rl", subject, "api"), expected);
        }
        let megabyte = key("rl", &vec![b'a'; 1 << 20], "api");
        assert_eq!(megabyte, "rl:{%sha256-9BC1B2A288B26AF7257A36277AE3816A7D4F16E89C1E7E77D0A5C48BAD62B360}:api");
        assert_eq!(key("rl", &[b'a'; LONGEST], "api"), format!("rl:{{{}}}:api", "a".repeat(LONGEST)));
        assert!(key("rl", &[b'a'; LONGEST + 1], "api").contains("%sha256-"));
    }

    /// Subjects that are likely to collide under a careless escape.
    fn subjects() -> impl Strategy<Value = Vec<u8>> {
        let tricky = prop::sample::select(b"{}%2B7d sha56-:\0\xff".to_vec());
        prop_oneof![
            prop::collection::vec(tricky, 0..12),
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| key("rl", &bytes, "p").into_bytes()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn different_subjects_have_different_keys_each_with_a_tag_of_its_own(a in subjects(), b in subjects()) {
            let (key_a, key_b) = (key("rl", &a, "api"), key("rl", &b, "api"));
            prop_assert_eq!(a == b, key_a == key_b);
            let (tag_a, tag_b) = (hash_tag(&key_a), hash_tag(&key_b));
            prop_assert_eq!(format!("rl:{{{}}}:api", tag_a.unwrap_or_default()), key_a.clone());
            prop_assert_eq!(tag_a == tag_b, a == b);
        }
    }
}
