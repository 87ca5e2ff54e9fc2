//! Real states, from which fuzzing starts: made by calls, and what releases have stored.

use rl_limiter::concurrency::Request;
use rl_limiter::layout::{State, Stored};
use rl_limiter::lease::{self, Ask, Seq, Ttl};
use rl_limiter::{
    Concurrency, Cost, FixedWindow, LeakyBucket, Limit, Limiter, Micros, Name, Plan, Rate, SlidingLog, SlidingWindow,
    TokenBucket, Window,
};

const NOW: u64 = 1_796_040_000_123_456;

/// What releases have stored: append-only files, and single states in hexadecimal.
const STORED: [&[u8]; 2] = [
    include_bytes!("../../tests/golden/layout-1/append-only/appendonly.aof.2.incr.aof"),
    include_bytes!("../../tests/golden/layout-1/append-only-commands/appendonly.aof.3.base.aof"),
];
/// A state of more bytes differs from one of fewer in what it holds many of.
const MOST_LIED_ABOUT: usize = 200;
const IN_HEX: [&str; 2] = [
    include_str!("../../limiter/tests/layout/small_log.hex"),
    include_str!("../../limiter/tests/layout/wrapped_ring.hex"),
];

/// Texts that are numbers, windows or rates.
pub const ARGUMENTS: [&str; 24] = [
    "0",
    "1",
    "9007199254740991",
    "9007199254740992",
    "60",
    "1ms",
    "250ms",
    "1h",
    "36500d",
    "5214w",
    "0.001",
    "1.500000",
    "0.0000000000001",
    "100/60",
    "5/h",
    "0.5",
    "1000/250ms",
    "1/36500d",
    "999999999999999/ms",
    "0.001/36500d",
    "1e3",
    "01",
    "18446744073709551616",
    "1/",
];

/// Real states, and inputs of the target `states` made of them.
pub fn inputs() -> Vec<Vec<u8>> {
    let mut states = made();
    let logs: Vec<Vec<u8>> = IN_HEX.iter().map(|hex| from_hex(hex)).collect();
    let lies: Vec<Vec<u8>> =
        states.iter().filter(|state| state.len() <= MOST_LIED_ABOUT).chain(&logs).flat_map(|s| lies(s)).collect();
    states.extend(STORED.iter().flat_map(|file| in_file(file)));
    states.extend(logs);
    states.extend(lies);
    let calls = calls();
    let inputs = states.iter().enumerate().map(|(number, state)| {
        let call = &calls[number % calls.len()];
        [call.as_slice(), &[0, 0], state].concat()
    });
    inputs.collect()
}

/// The bytes of calls that take, look, give back, come late or early, by the remembered parameters or others.
fn calls() -> Vec<Vec<u8>> {
    let number = |value: u64| [&[0_u8][..], &value.to_le_bytes()].concat();
    let call = |what: u8, how: u8, time: u64, units: u64| {
        let own = [time, units, 10, 60_000_000, 3, 1_000_000].map(number).concat();
        [&[what, how][..], &own, &1_000_u16.to_le_bytes()].concat()
    };
    let (before, after, unused) = (0x10, 0x20, 0x28);
    let [by_remembered, by_others] = [0, 3];
    let three = [
        [call(0, after | by_remembered, 1, 1), call(0, after, 60_000_000, 5), call(1, after, 0, 1)],
        [call(1, after | 4, 1_000, 2), call(0, after | by_others, 2_000, 1), call(2, before, 9, 1)],
        [call(0, before | by_remembered, 1_000_000, 1), call(0, unused, 0, 1), call(0, after, 1, 0)],
        [call(2, before | by_others, 7, u64::MAX >> 11), call(2, after, 7, 3), call(1, after, 1_000_000, 1)],
        // Of one who has a row already: the first, the last, one between.
        [call(0, before | 0x40, 1_000_000, 2), call(0, before | 0x80 | 4, 9, 7), call(1, before | 0xC0, 5, 1)],
    ];
    three.into_iter().map(|calls| calls.concat()).collect()
}

/// States of every kind as calls leave them.
fn made() -> Vec<Vec<u8>> {
    let units = |units| Limit::new(units).unwrap_or(Limit::ONE);
    let most = units((1 << 53) - 1);
    let window = Window::parse("window", b"1h").unwrap_or_else(|error| panic!("{error}"));
    let rate = |text: &str| Rate::parse("rate", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let (ten, narrow, wide) = (units(10), rate("5/h"), rate("0.001/36500d"));
    let mut states: Vec<Vec<u8>> = (1..=3_u64)
        .flat_map(|cost| {
            [
                state(FixedWindow::new(ten, window), cost),
                state(SlidingWindow::new(ten, window), cost),
                state(TokenBucket::new(ten, narrow), cost),
                state(TokenBucket::new(most, wide), cost),
                state(LeakyBucket::new(ten, narrow), cost),
                state(LeakyBucket::new(most, wide), cost),
            ]
        })
        .collect();
    states.extend([1, 4, 12, 44, 62, 130, 700, 2_100].map(|entries| log(SlidingLog::new(most, window), entries)));
    for rows in [1, 3, 20, 300] {
        for longest in [1, 20, 64] {
            states.push(holders(Concurrency::new(units(1_000), window), rows, longest));
            states.push(leases(TokenBucket::new(units(1_000), narrow), rows, longest));
        }
    }
    states.push(leases(TokenBucket::new(most, wide), 3, 8));
    states
}

/// The same state cut, extended, and with each field of its head at the ends of what some field may hold: so that what
/// a check of the layout refuses is tried at once.
fn lies(state: &[u8]) -> Vec<Vec<u8>> {
    let mut lies = vec![[state, &[0; 8]].concat(), state[..state.len() - 8].to_vec()];
    for at in (4..state.len().min(62)).filter(|at| (at - 4) % 8 == 0 || *at > 20 && state.len() > 52) {
        for value in [0, 1 << 31, 1 << 53, 1 << 62, 1 << 63, u64::MAX] {
            let mut lie = state.to_vec();
            let end = (at + 8).min(lie.len());
            lie[at..end].copy_from_slice(&u64::to_le_bytes(value)[..end - at]);
            lies.push(lie);
        }
    }
    lies
}

fn state<L: Limiter>(limiter: L, cost: u64) -> Vec<u8> {
    let outcome = limiter.decide(None, Micros::saturating(NOW.cast_signed()), Cost::new(cost).unwrap_or(Cost::ONE));
    outcome.next.map(|next| next.into().encode().to_vec()).unwrap_or_default()
}

fn log(limiter: SlidingLog, entries: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in 0..entries {
        let now = Micros::saturating((NOW + entry * 1_000_003).cast_signed());
        let cost = Cost::new(1 + entry % 5).unwrap_or(Cost::ONE);
        let state = match Stored::read(&bytes) {
            Ok(Stored::SlidingLog(log)) => Some(log),
            _ => None,
        };
        let Some(plan) = limiter.decide(state, now, cost, u32::MAX).ok().and_then(|outcome| outcome.next) else {
            break;
        };
        carry_out(&plan, &mut bytes);
    }
    bytes
}

/// So many holders, of names up to so long.
fn holders(limiter: Concurrency, rows: u64, longest: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in 0..rows {
        let now = Micros::saturating((NOW + row * 1_003).cast_signed());
        let name = name(row, longest);
        let Some(holder) = Name::new(&name) else { break };
        let cost = Cost::new(1 + row % 3).unwrap_or(Cost::ONE);
        let state = match Stored::read(&bytes) {
            Ok(Stored::Concurrency(holders)) => Some(holders),
            _ => None,
        };
        let outcome = limiter.decide(state, now, Request { holder, cost, renew_only: false }, usize::MAX);
        let Some(plan) = outcome.ok().and_then(|outcome| outcome.next) else { break };
        carry_out(&plan, &mut bytes);
    }
    bytes
}

/// A bucket of which so many nodes, of names up to so long, hold slices.
fn leases(limiter: TokenBucket, rows: u64, longest: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in 0..rows {
        let now = Micros::saturating((NOW + row * 1_003).cast_signed());
        let name = name(row, longest);
        let parts = (Name::new(&name), Seq::new(1 + row), Ttl::from_micros(10_000_000 + row));
        let (Some(node), Some(seq), Some(ttl)) = parts else { break };
        let want = Cost::new(1 + row % 9).unwrap_or(Cost::ONE);
        let state = match Stored::read(&bytes) {
            Ok(Stored::Leases(leases)) => Some(leases),
            Ok(Stored::State(State::TokenBucket(state))) => Some(lease::State::from(state)),
            _ => None,
        };
        let ask = Ask { node, seq, have: Cost::ZERO, want, ttl, min: Cost::ZERO };
        let Some(plan) = limiter.lease(state, now, &ask).next else { break };
        carry_out(&plan, &mut bytes);
    }
    bytes
}

/// Names that are short, or so long.
fn name(of: u64, longest: usize) -> Vec<u8> {
    let mut name = format!("{of:x}").into_bytes();
    if of.is_multiple_of(2) && name.len() < longest {
        name.resize(longest, b'-');
    }
    name
}

fn carry_out(plan: &impl Plan, bytes: &mut Vec<u8>) {
    if plan.fits() {
        plan.carry_out(bytes);
    } else {
        *bytes = plan.make(bytes);
    }
}

/// The arguments in an append-only file that are states.
fn in_file(file: &[u8]) -> Vec<Vec<u8>> {
    let mut states: Vec<Vec<u8>> = Vec::new();
    for (at, tag) in file.windows(4).enumerate() {
        // Before an argument stands its length: `$36`, CR, LF.
        let length = file[..at].strip_suffix(b"\r\n").and_then(|before| {
            let digits = before.rsplit(|&byte| byte == b'$').next()?;
            str::from_utf8(digits).ok()?.parse::<usize>().ok()
        });
        if tag.starts_with(b"\xf5L")
            && let Some(state) = length.and_then(|length| file.get(at..at + length))
            && Stored::read(state).is_ok()
        {
            states.push(state.to_vec());
        }
    }
    states.sort_unstable();
    states.dedup();
    states
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    digits.chunks(2).filter_map(byte).collect()
}
