//! Calls as bytes: all of one length, made by writing numbers into a copy of a pattern.

use std::time::{SystemTime, UNIX_EPOCH};

/// What numbers are written for, and in how many digits. A rising one is made of microseconds since 1970, and stays below
/// 10^16 for centuries.
const MARKS: [(&str, usize, Number); 4] = [
    ("{random}", 12, Number::Random),
    ("{next}", 12, Number::Next),
    ("{turn}", 6, Number::Turn),
    ("{rising}", 16, Number::Rising),
];

#[derive(Clone, Copy)]
enum Number {
    Random,
    Next,
    Turn,
    Rising,
}

/// An endless row of calls.
pub struct Calls {
    pattern: Vec<u8>,
    /// Where in the pattern how many digits of which number go.
    places: Vec<(usize, usize, Number)>,
    /// Commands, and so replies, of a call.
    pub commands: u64,
    keys: u64,
    made: u64,
    first: u64,
    draw: u64,
}

impl Calls {
    pub fn new(commands: &[Vec<String>], keys: u64) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut calls = Self {
            pattern: Vec::new(),
            places: Vec::new(),
            commands: commands.len() as u64,
            keys,
            made: 0,
            first: u64::try_from(since_1970.as_micros()).unwrap_or(0),
            // The same keys on every run.
            draw: 0x2545_F491_4F6C_DD1D,
        };
        for command in commands {
            calls.pattern.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
            for word in command {
                calls.add_word(word);
            }
        }
        calls
    }

    fn add_word(&mut self, word: &str) {
        let (mut bytes, mut places, mut rest) = (Vec::new(), Vec::new(), word);
        while let Some(next) = rest.chars().next() {
            if let Some((mark, digits, number)) = MARKS.iter().find(|(mark, ..)| rest.starts_with(mark)) {
                places.push((bytes.len(), *digits, *number));
                bytes.resize(bytes.len() + digits, b'0');
                rest = &rest[mark.len()..];
            } else {
                let (start, end) = rest.split_at(next.len_utf8());
                bytes.extend_from_slice(start.as_bytes());
                rest = end;
            }
        }
        self.pattern.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
        let start = self.pattern.len();
        self.places.extend(places.iter().map(|(at, digits, number)| (start + at, *digits, *number)));
        self.pattern.extend_from_slice(&bytes);
        self.pattern.extend_from_slice(b"\r\n");
    }

    /// Appends the next call.
    pub fn write_next(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.pattern);
        let random = self.drawn() % self.keys;
        for &(at, digits, number) in &self.places {
            let mut value = match number {
                Number::Random => random,
                Number::Next => self.made % self.keys,
                Number::Turn => self.made / self.keys,
                Number::Rising => self.first + self.made,
            };
            for digit in out[start + at..start + at + digits].iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        }
        self.made += 1;
    }

    /// Marsaglia's xorshift64*: even enough to draw keys by.
    fn drawn(&mut self) -> u64 {
        self.draw ^= self.draw >> 12;
        self.draw ^= self.draw << 25;
        self.draw ^= self.draw >> 27;
        self.draw.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }
}
