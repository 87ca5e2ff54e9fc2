//! Counts replies in what a server sends, in whatever pieces it comes.

use crate::Fallible;

/// Where in a reply the last piece ended.
#[derive(Default)]
pub struct Replies {
    /// A line that has not ended.
    line: Vec<u8>,
    /// Bytes of text still to come, its line's end included.
    text: usize,
    /// Values still to come of the reply that has begun; 0 between replies.
    values: u64,
}

impl Replies {
    /// How many replies end in this piece.
    ///
    /// # Errors
    ///
    /// With its text, if one is an error or holds one.
    pub fn count(&mut self, mut piece: &[u8]) -> Fallible<u64> {
        let mut ended = 0;
        while !piece.is_empty() {
            if self.text > 0 {
                let passed = self.text.min(piece.len());
                self.text -= passed;
                piece = &piece[passed..];
                ended += if self.text == 0 { self.value_ended(0) } else { 0 };
                continue;
            }
            let Some(end) = piece.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(piece);
                break;
            };
            let (start, rest) = piece.split_at(end + 1);
            piece = rest;
            ended += if self.line.is_empty() {
                self.line_ended(start)?
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(start);
                let ended = self.line_ended(&line)?;
                line.clear();
                self.line = line;
                ended
            };
        }
        Ok(ended)
    }

    fn line_ended(&mut self, line: &[u8]) -> Fallible<u64> {
        let size = || std::str::from_utf8(&line[1..]).ok().and_then(|text| text.trim_end().parse::<i64>().ok());
        let not_understood = || format!("a line of no reply: {}", String::from_utf8_lossy(line).trim_end());
        match line[0] {
            b'+' | b':' => Ok(self.value_ended(0)),
            b'-' => Err(String::from_utf8_lossy(&line[1..]).trim_end().to_owned().into()),
            b'$' | b'*' => match (u64::try_from(size().ok_or_else(not_understood)?), line[0]) {
                // A null.
                (Err(_), _) => Ok(self.value_ended(0)),
                (Ok(values), b'*') => Ok(self.value_ended(values)),
                (Ok(bytes), _) => {
                    self.text = usize::try_from(bytes)? + 2;
                    Ok(0)
                }
            },
            _ => Err(not_understood().into()),
        }
    }

    /// After a value that so many more belong to: 1 if the reply ends with it.
    fn value_ended(&mut self, inner: u64) -> u64 {
        self.values = self.values.max(1) - 1 + inner;
        u64::from(self.values == 0)
    }
}
