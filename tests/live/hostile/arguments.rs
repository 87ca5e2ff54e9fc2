//! Arguments of every command of the table: such as are taken, and any others.

use redis_rl::command::TABLE;
use redis_rl::server::{Argument, ArgumentKind, Command};

use crate::traffic::random::Random;

/// The words of a call.
pub type Words = Vec<Vec<u8>>;

const INTEGERS: [&str; 9] = ["1", "2", "5", "10", "100", "1000", "0", "4503599627370496", "9007199254740991"];
const DURATIONS: [&str; 8] = ["1ms", "250ms", "1", "60", "1h", "1d", "1w", "36500d"];
const RATES: [&str; 8] = ["1", "10", "0.5", "100/60", "5/h", "1/w", "999999999999999/ms", "0.001/36500d"];
/// What other texts may be: names, kinds, keywords.
const TEXTS: [&str; 8] = ["n", "worker-1", "FIXED", "tokenbucket", "XX", "MIN", "AGE", "10"];

/// What somebody hopes that a reader of numbers or a writer of logs trips over.
const ODD: [&[u8]; 28] = [
    b"",
    b" ",
    b"\0",
    b"1\0",
    b"%n%n%n%n",
    b"%s%s%s%s",
    b"%99999999d",
    b"-1",
    b"+1",
    b"1e9",
    b"nan",
    b"inf",
    b"0x10",
    b"01",
    b"9007199254740992",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"0.0000000000001",
    b"1/0",
    b"1/",
    b"/1",
    b"36501d",
    b"0ms",
    b"\r\n",
    b"$-1\r\n",
    b"\xff\xfe\xfd",
    b"{}",
];
/// A few of the largest take longer to send than all else.
const LONGEST: u64 = 1 << 20;

/// A call of `command` for a key with arguments that its grammar takes, as far as the table tells it; the optional
/// ones now and then.
pub fn valid(command: &Command, key: &[u8], random: &mut Random) -> Words {
    let mut words = vec![command.name.to_bytes().to_vec()];
    push_all(&mut words, command.arguments, key, random);
    words
}

fn push_all(words: &mut Words, arguments: &[Argument], key: &[u8], random: &mut Random) {
    for argument in arguments {
        if argument.optional && random.percent(50) {
            break;
        }
        push(words, argument, key, random);
    }
}

fn push(words: &mut Words, argument: &Argument, key: &[u8], random: &mut Random) {
    let text = match (argument.kind, argument.name.to_bytes()) {
        (ArgumentKind::OneOf(arguments), _) => {
            let argument = random.pick(arguments);
            return push(words, &argument, key, random);
        }
        (ArgumentKind::Repeated(arguments), _) => {
            // The key itself, and then others.
            for nth in 0..1 + random.below(3) as usize {
                push_all(words, arguments, &[key, &b"+".repeat(nth)].concat(), random);
            }
            return;
        }
        (ArgumentKind::Keyword(keyword), _) => keyword.to_bytes(),
        (ArgumentKind::Key, _) => key,
        (ArgumentKind::Integer, _) => random.pick(&INTEGERS).as_bytes(),
        (_, b"rate") => random.pick(&RATES).as_bytes(),
        (_, b"window" | b"ttl" | b"duration" | b"p2") => random.pick(&DURATIONS).as_bytes(),
        _ => random.pick(&TEXTS).as_bytes(),
    };
    if let ArgumentKind::TextAfter(keyword) = argument.kind {
        words.push(keyword.to_bytes().to_vec());
    }
    words.push(text.to_vec());
}

/// A call of some command of which some arguments, or their number, are anything.
pub fn damaged(random: &mut Random) -> Words {
    let command = &TABLE[random.below(TABLE.len() as u64) as usize];
    let mut words = valid(command, b"k", random);
    for _ in 0..1 + random.below(3) {
        let at = 1 + random.below(words.len() as u64) as usize;
        match random.below(8) {
            0 => words.truncate(at),
            1 => words.extend((0..random.below(200)).map(|_| any_word(random))),
            2 => words.insert(at.min(words.len()), any_word(random)),
            _ if at < words.len() => words[at] = any_word(random),
            _ => {}
        }
    }
    words
}

fn any_word(random: &mut Random) -> Vec<u8> {
    match random.below(400) {
        0 => vec![random.pick(b"0195.%\0\xff"); random.below(LONGEST) as usize],
        1..100 => random.pick(&ODD).to_vec(),
        100..200 => random.pick(&[INTEGERS[8], DURATIONS[7], RATES[7], TEXTS[2]]).as_bytes().to_vec(),
        200..300 => (0..random.below(20)).map(|_| random.pick(b"0159./-+ eEmsShdw")).collect(),
        _ => (0..random.below(40)).map(|_| random.below(256) as u8).collect(),
    }
}
