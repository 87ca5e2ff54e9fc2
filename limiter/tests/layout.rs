//! States as bytes: what is written is read back, everything else is no limiter, and what only looks like one does no
//! harm.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod random;
#[path = "layout/states.rs"]
mod states;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use random::check;
use rl_limiter::layout::{State, Stored, Unreadable};
use rl_limiter::{
    Age, Decision, FixedWindow, Limiter, LimiterState, Micros, RetryAfter, TokenBucket, fixed_window, token_bucket,
};
use states::{any_state, bucket, fixed, wide_and_narrow};

/// The largest number that a reply holds.
const MOST: u64 = (1 << 53) - 1;

/// Bytes in the head: tag, version, kind and form.
const HEAD: usize = 4;

fn decode(bytes: &[u8]) -> Result<State, Unreadable> {
    State::decode(bytes)
}

/// What servers have stored stays readable, so these bytes never change; another layout is another version.
#[test]
fn version_1_is_these_bytes() {
    let window = fixed((100, 60_000_000), 1_796_040_000_123_456, 42);
    let narrow = bucket((10, 7, 3_000_000), 1_796_040_000_123_456, 29_999_993);
    let wide = bucket(((1 << 53) - 1, 1, i64::MAX.unsigned_abs()), 1_796_040_000_123_456, (5 << 64) + 6);
    let sliding = states::sliding((100, 60_000_000), 1_796_040_000_123_456, 42, 100);
    let leaky = states::leaky((10, 7, 3_000_000), 1_796_040_000_123_456, 9).unwrap();
    let wide_leaky = states::leaky((MOST, 1, i64::MAX.unsigned_abs()), 1_796_040_000_123_456, MOST - 1).unwrap();
    let expected: [(State, &[&[u8]]); 6] = [
        (
            window,
            &[
                b"\xf5L\x01\x10",
                b"\x64\0\0\0\0\0\0\0",
                b"\x00\x87\x93\x03\0\0\0\0",
                b"\x40\xb2\x35\x26\x7d\x61\x06\0",
                b"\x2a\0\0\0\0\0\0\0",
            ],
        ),
        (
            narrow,
            &[
                b"\xf5L\x01\x20",
                b"\x0a\0\0\0\0\0\0\0",
                b"\x07\0\0\0\0\0\0\0",
                b"\xc0\xc6\x2d\0\0\0\0\0",
                b"\x40\xb2\x35\x26\x7d\x61\x06\0",
                b"\x79\xc3\xc9\x01\0\0\0\0",
            ],
        ),
        (
            wide,
            &[
                b"\xf5L\x01\x21",
                b"\xff\xff\xff\xff\xff\xff\x1f\0",
                b"\x01\0\0\0\0\0\0\0",
                b"\xff\xff\xff\xff\xff\xff\xff\x7f",
                b"\x40\xb2\x35\x26\x7d\x61\x06\0",
                b"\x06\0\0\0\0\0\0\0",
                b"\x05\0\0\0\0\0\0\0",
            ],
        ),
        (
            sliding,
            &[
                b"\xf5L\x01\x30",
                b"\x64\0\0\0\0\0\0\0",
                b"\x00\x87\x93\x03\0\0\0\0",
                b"\x40\xb2\x35\x26\x7d\x61\x06\0",
                b"\x2a\0\0\0\0\0\0\0",
                b"\x64\0\0\0\0\0\0\0",
            ],
        ),
        (
            leaky,
            &[
                b"\xf5L\x01\x40",
                b"\x0a\0\0\0\0\0\0\0",
                b"\x07\0\0\0\0\0\0\0",
                b"\xc0\xc6\x2d\0\0\0\0\0",
                b"\x40\xb2\x35\x26\x7d\x61\x06\0",
                b"\xc0\xfc\x9b\x01\0\0\0\0",
            ],
        ),
        (
            wide_leaky,
            &[
                b"\xf5L\x01\x41",
                b"\xff\xff\xff\xff\xff\xff\x1f\0",
                b"\x01\0\0\0\0\0\0\0",
                b"\xff\xff\xff\xff\xff\xff\xff\x7f",
                b"\x40\xb2\x35\x26\x7d\x61\x06\0",
                b"\x02\0\0\0\0\0\xe0\xff",
                b"\xfe\xff\xff\xff\xff\xff\x0f\0",
            ],
        ),
    ];
    for (state, fields) in expected {
        assert_eq!(*state.encode(), fields.concat(), "{state:?}");
        assert_eq!(decode(&fields.concat()), Ok(state));
    }
}

/// As an error says it that names what a key holds.
#[test]
fn states_know_what_users_call_them() {
    assert_eq!(fixed((1, 1_000), 0, 1).kind(), "fixed window");
    assert_eq!(wide_and_narrow().map(|state| state.kind()), ["token bucket"; 6]);
    assert_eq!(states::sliding((1, 1_000), 0, 1, 0).kind(), "sliding window");
    assert_eq!(states::leaky((1, 1, 1), 0, 1).map(|state| state.kind()), Some("leaky bucket"));
}

#[test]
fn small_states_fit_small_allocations() {
    check(1_000, any_state(), |state| {
        let length = state.encode().len();
        prop_assert!(Stored::has_length(length));
        match state {
            State::FixedWindow(_) => prop_assert_eq!(length, 36),
            State::SlidingWindow(_) => prop_assert_eq!(length, 44),
            State::LeakyBucket(_) => prop_assert!(length == 44 || length == 52),
            State::TokenBucket(bucket) => {
                let limiter = rl_limiter::LimiterState::limiter(&bucket);
                let most_spent = 2 * u128::from(limiter.capacity().get()) * u128::from(limiter.rate().micros());
                // 44 bytes are the most of a string in Redis' allocations of 48.
                prop_assert_eq!(length, if most_spent < 1 << 64 { 44 } else { 52 });
            }
        }
        Ok(())
    });
    assert_eq!([35, 37, 43, 45, 51, 53, 0, 4].map(Stored::has_length), [false; 8]);
}

#[test]
fn what_is_written_is_read_back() {
    check(2_000, any_state(), |state| {
        prop_assert_eq!(decode(&state.encode()), Ok(state));
        Ok(())
    });
    wide_and_narrow().into_iter().for_each(|state| assert_eq!(decode(&state.encode()), Ok(state)));
}

#[test]
fn a_cut_or_extended_state_is_no_limiter() {
    check(200, (any_state(), vec(any::<u8>(), 1..=20)), |(state, more)| {
        let bytes = state.encode();
        for cut in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..cut]), Err(Unreadable::NoLimiter));
            prop_assert!(decode(&bytes[bytes.len() - cut..]).is_err());
        }
        for extent in 1..=more.len() {
            prop_assert_eq!(decode(&[&bytes, &more[..extent]].concat()), Err(Unreadable::NoLimiter));
            prop_assert_eq!(decode(&[&bytes[..], &vec![0; extent]].concat()), Err(Unreadable::NoLimiter));
            prop_assert!(decode(&[&more[..extent], &bytes].concat()).is_err());
        }
        prop_assert_eq!(decode(&[&bytes[..], &bytes].concat()), Err(Unreadable::NoLimiter));
        Ok(())
    });
}

/// Every tag, version, kind and form but the state's own.
#[test]
fn another_head_is_another_thing() {
    for state in [wide_and_narrow().as_slice(), &[fixed((5, 1_000), 0, 5), fixed((1, 1_000), 1 << 61, 0)]].concat() {
        let bytes = state.encode().to_vec();
        for (at, byte) in (0..HEAD).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
            if bytes[at] == byte {
                continue;
            }
            let mut other = bytes.clone();
            other[at] = byte;
            // Both buckets keep the same fields, so there another kind is another limiter.
            if at == 3 && bytes[at] ^ byte == 0x20 ^ 0x40 && matches!(state, State::TokenBucket(_)) {
                assert!(matches!(decode(&other), Ok(State::LeakyBucket(_))));
                continue;
            }
            let expected = if at == 2 && byte > 1 { Unreadable::Newer } else { Unreadable::NoLimiter };
            assert_eq!(decode(&other), Err(expected), "byte {at} is {byte:#x}");
        }
    }
}

/// A newer version may have any form and length. It is told apart so that a user learns why.
#[test]
fn a_newer_version_says_so() {
    check(500, (2..=u8::MAX, vec(any::<u8>(), 1..=100)), |(version, rest)| {
        let newer = [&[0xf5, b'L', version], &rest[..]].concat();
        prop_assert_eq!(decode(&newer), Err(Unreadable::Newer));
        Ok(())
    });
    assert_eq!(decode(b"\xf5L\x00\x10"), Err(Unreadable::NoLimiter));
    assert_eq!(decode(b"L\xf5\x02\x10"), Err(Unreadable::NoLimiter));
}

/// A state has one form: with a half put in or taken out it is none, even where the number would be the same.
#[test]
fn a_bucket_in_the_other_form_is_no_limiter() {
    for state in wide_and_narrow() {
        let bytes = state.encode();
        let mut other = if bytes.len() == 44 { [&bytes[..], &[0; 8]].concat() } else { bytes[..44].to_vec() };
        other[3] ^= 1;
        assert_eq!(decode(&other), Err(Unreadable::NoLimiter), "{state:?}");
    }
}

/// Fields outside their range, one at a time, at the first value that is.
#[test]
fn implausible_fields_are_no_limiter() {
    let windows: &[(usize, u64)] = &[
        (0, 0),
        (0, 41),
        (0, MOST + 1),
        (1, 0),
        (1, 999),
        (1, 36_500 * 86_400_000_000 + 1),
        (2, 1 << 62),
        (2, u64::MAX),
        (3, 101),
        (3, u64::MAX),
    ];
    refuse_fields(&fixed((100, 60_000_000), 1, 42), windows);

    let terms = 1 << 63;
    let narrow: &[(usize, u64)] =
        &[(0, 0), (0, 4), (1, 0), (1, terms), (2, 0), (2, 429_999), (3, 1 << 62), (4, 20_000_001), (4, u64::MAX)];
    refuse_fields(&bucket((10, 7, 1_000_000), 1, 8_600_000), narrow);

    let wide: &[(usize, u64)] =
        &[(0, 0), (0, MOST + 1), (1, 0), (1, terms), (2, 0), (2, terms), (3, 1 << 62), (5, 0x0020_0000_0000_0000)];
    refuse_fields(&bucket((MOST, 3, (1 << 63) - 1), 1, 5 << 100), wide);

    // 0 admits nothing, so nobody who took something leaves it, not even where nothing is left of that.
    refuse_fields(&fixed((100, 60_000_000), 1, 0), &[(0, 0)]);
    refuse_fields(&bucket((10, 7, 1_000_000), 1, 0), &[(0, 0)]);
}

fn refuse_fields(state: &State, fields: &[(usize, u64)]) {
    let bytes = state.encode();
    for &(field, value) in fields {
        let mut other = bytes.to_vec();
        let at = HEAD + 8 * field;
        other[at..at + 8].copy_from_slice(&value.to_le_bytes());
        assert_eq!(decode(&other), Err(Unreadable::NoLimiter), "field {field} is {value} in {state:?}");
    }
}

/// Parts of two states in one string.
#[test]
fn spliced_states_do_no_harm() {
    check(100, (any_state(), any_state()), |(one, other)| {
        let (one, other) = (one.encode(), other.encode());
        for at in 1..one.len().min(other.len()) {
            let spliced = [&one[..at], &other[at..]].concat();
            if one.len() != other.len() && at >= HEAD {
                prop_assert_eq!(decode(&spliced), Err(Unreadable::NoLimiter));
            }
            harmless(&spliced)?;
        }
        Ok(())
    });
}

#[test]
fn flipped_bits_do_no_harm() {
    check(30, any_state(), |state| {
        let bytes = state.encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(decode(&flipped), Ok(state));
            harmless(&flipped)?;
        }
        Ok(())
    });
}

#[test]
fn random_bytes_do_no_harm() {
    check(5_000, vec(any::<u8>(), 0..=80), |bytes| {
        prop_assert!(decode(&bytes).is_err());
        Ok(())
    });
    let heads = prop::sample::select(vec![(0x10, 32), (0x20, 40), (0x21, 48)]);
    let planted = heads.prop_flat_map(|(form, length)| (Just(form), states::any_fields(length / 8)));
    check(2_000, planted, |(form, fields)| {
        let mut bytes = vec![0xf5, b'L', 1, form];
        fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
        harmless(&bytes)
    });
}

/// Only what changed is written: from the counts on while the parameters stay, from behind the head where they change.
#[test]
fn what_changed_is_enough_to_write() {
    check(1_000, (any_state(), any_state()), |(old, new)| {
        let (old, new) = (old.encode(), new.encode());
        if old.len() != new.len() {
            return Ok(());
        }
        let from = new.changed_from(&old);
        let mut bytes = old.to_vec();
        bytes[from..].copy_from_slice(&new[from..]);
        prop_assert_eq!(&*bytes, &*new);
        Ok(())
    });
    let window = fixed((5, 1_000), 7, 2);
    let from = |state: &State| state.encode().changed_from(&window.encode());
    assert_eq!(from(&fixed((5, 1_000), 8, 3)), 20);
    assert_eq!(from(&window), 20);
    assert_eq!(from(&fixed((6, 1_000), 7, 2)), 4);
    let mut another_kind = window.encode().to_vec();
    another_kind[3] ^= 0x40;
    assert_eq!(window.encode().changed_from(&another_kind), 0);
    let narrow = bucket((5, 1, 3), 7, 2);
    assert_eq!(bucket((5, 1, 3), 7, 1).encode().changed_from(&narrow.encode()), 28);
    assert_eq!(bucket((5, 1, 2), 7, 2).encode().changed_from(&narrow.encode()), 4);
}

/// Whatever these bytes are, they are refused, or every answer from them keeps to its bounds, and what is stored next can
/// be read.
fn harmless(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(state) = decode(bytes) else {
        return Ok(());
    };
    prop_assert_eq!(&*state.encode(), bytes, "two strings for {:?}", state);
    match state {
        State::FixedWindow(state) => {
            states::extreme_windows().into_iter().try_for_each(|limiter| judge_window(limiter, state))?
        }
        State::TokenBucket(state) => {
            states::extreme_buckets().into_iter().try_for_each(|limiter| judge_bucket(limiter, state))?
        }
        State::SlidingWindow(state) => {
            states::extreme_sliding_windows().into_iter().try_for_each(|limiter| judge(limiter, state, state.last()))?
        }
        State::LeakyBucket(state) => states::extreme_leaky_buckets()
            .into_iter()
            .try_for_each(|limiter| judge(limiter, state, LimiterState::unused_at(&state)))?,
    }
    for now in moments(state.unused_at()) {
        for age in [None, Some(Age::ZERO), Age::from_micros(86_400_000_000)] {
            for amount in states::costs() {
                if let Ok(Some(next)) = state.refund(now, amount, age) {
                    prop_assert!(decode(&next.encode()).is_ok(), "{:?} after a refund", next);
                }
            }
        }
    }
    for now in moments(state.unused_at()) {
        let _ = state.is_unused(now);
        states::costs().into_iter().try_for_each(|cost| within_bounds(state.peek(now, cost)))?;
    }
    Ok(())
}

fn judge_window(limiter: FixedWindow, state: fixed_window::State) -> Result<(), TestCaseError> {
    judge(limiter, state, state.last())
}

fn judge_bucket(limiter: TokenBucket, state: token_bucket::State) -> Result<(), TestCaseError> {
    judge(limiter, state, state.last())
}

fn judge<L: Limiter>(limiter: L, state: L::State, last: Micros) -> Result<(), TestCaseError> {
    for now in moments(last) {
        for cost in states::costs() {
            let outcome = limiter.decide(Some(state), now, cost);
            within_bounds(outcome.decision)?;
            if let Some(next) = outcome.next {
                let bytes = next.into().encode();
                prop_assert_eq!(decode(&bytes).map(|next| *next.encode() == *bytes), Ok(true));
            }
            within_bounds(limiter.peek(Some(state), now, cost))?;
        }
    }
    Ok(())
}

fn moments(near: Micros) -> [Micros; 6] {
    let at = near.get();
    [0, at.saturating_sub(1), at, at + 1, at + 86_400_000_000, u64::MAX]
        .map(|at| Micros::new(at.min(Micros::MAX.get())).unwrap())
}

fn within_bounds(decision: Decision) -> Result<(), TestCaseError> {
    let Decision { allowed, limit, remaining, retry_after, reset_after } = decision;
    prop_assert!(remaining <= limit && limit <= MOST && reset_after <= MOST, "{decision:?}");
    match retry_after {
        RetryAfter::Never => prop_assert!(!allowed, "{decision:?}"),
        RetryAfter::Millis(millis) => {
            // A call that is allowed may have to wait for its turn in a queue.
            prop_assert!(millis <= MOST && (allowed || millis > 0), "{decision:?}")
        }
    }
    Ok(())
}
