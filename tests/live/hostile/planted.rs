//! What is planted: states as calls leave them, changed by all the ways in which a client can change a string.

use redis_rl::command::TABLE;

use super::arguments::valid;
use super::session::Session;
use crate::traffic::random::Random;

/// Keys that are planted, over and over.
const KEYS: usize = 64;
/// Lengths that some limiter has.
const LENGTHS: [usize; 10] = [36, 44, 48, 52, 96, 103, 152, 250, 376, 502];
/// The kinds of a state, as its fourth byte has them in the high four bits.
const KINDS: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];

/// States of all kinds, by calls of all commands: some hundred calls for one key, so that some are long.
pub fn real_states(session: &mut Session<'_>, random: &mut Random) -> Vec<Vec<u8>> {
    let mut states: Vec<Vec<u8>> = Vec::new();
    for command in TABLE {
        for calls in [1, 1, 1, 5, 5, 20, 100, 400] {
            let words = valid(&command, b"real", random);
            for _ in 0..calls {
                session.call(&words);
            }
            states.extend(session.value_of(b"real").filter(|state| !state.is_empty()));
            session.send(&[b"DEL", b"real"]);
        }
    }
    for rows in [3, 30, 300] {
        for call in ["RL.CONCURRENT real 9007199254740991 1h", "RL.LEASE real 9007199254740991 1"] {
            states.extend(with_rows(session, call, rows));
        }
    }
    states.sort_unstable();
    states.dedup();
    for kind in KINDS {
        assert!(states.iter().any(|state| state.get(3).is_some_and(|byte| byte >> 4 == kind)), "none of kind {kind}");
    }
    assert!(states.len() > TABLE.len(), "{} states", states.len());
    states
}

/// A state with so many rows: the call is repeated under as many names, short and long ones.
fn with_rows(session: &mut Session<'_>, call: &str, rows: usize) -> Option<Vec<u8>> {
    for row in 0..rows {
        let name = format!("{row:0width$}", width = row % 64);
        let words = format!("{call} {name}{}", if call.starts_with("RL.LEASE") { " 1 0 5 1h" } else { "" });
        session.call(&words.split(' ').map(|word| word.as_bytes().to_vec()).collect());
    }
    let state = session.value_of(b"real");
    session.send(&[b"DEL", b"real"]);
    state
}

/// Plants a state and lets every command meet it.
pub fn plant(session: &mut Session<'_>, random: &mut Random, real: &[Vec<u8>], number: usize) {
    let key = format!("planted-{}", number % KEYS).into_bytes();
    let mut state = real[random.below(real.len() as u64) as usize].clone();
    match random.below(10) {
        0 => state = (0..random.pick(&LENGTHS)).map(|_| random.below(256) as u8).collect(),
        1..4 => change(&mut state, random),
        4 => {
            // The front of one and the back of another.
            let other = &real[random.below(real.len() as u64) as usize];
            let cut = random.below(state.len().min(other.len()) as u64) as usize;
            state = [&state[..cut], &other[cut..]].concat();
        }
        _ => {}
    }
    match random.below(4) {
        0 => session.send(&[b"SET", &key, &state, b"PX", b"1"]),
        1 => session.send(&[b"SET", &key, &state, b"PXAT", b"99999999999999"]),
        _ => session.send(&[b"SET", &key, &state]),
    }
    for _ in 0..random.below(3) {
        let (at, byte) = (random.below(state.len() as u64 + 8), [random.below(256) as u8]);
        match random.below(6) {
            0 => session.send(&[b"APPEND", &key, &byte.repeat(1 + random.below(20) as usize)]),
            1 | 2 => session.send(&[b"SETRANGE", &key, at.to_string().as_bytes(), &byte]),
            _ => session.send(&[
                b"SETBIT",
                &key,
                (at * 8 + random.below(8)).to_string().as_bytes(),
                &[b'0' + byte[0] % 2],
            ]),
        }
    }
    // Some meet what others have left of it, so each comes first now and then.
    for nth in 0..TABLE.len() {
        let command = &TABLE[(number + nth) % TABLE.len()];
        session.call(&valid(command, &key, random));
    }
}

/// Overwrites some bytes: any, or a field with a number that is the end of some range.
fn change(state: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(state.len() as u64) as usize;
        match random.below(3) {
            0 => state[at] ^= 1 << random.below(8),
            1 => state[at] = random.below(256) as u8,
            _ => {
                let edge = [0, 1, (1 << 53) - 1, 1 << 53, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, u64::MAX];
                let field = random.pick(&edge).to_le_bytes();
                let end = state.len().min(at + field.len());
                state[at..end].copy_from_slice(&field[..end - at]);
            }
        }
    }
}
