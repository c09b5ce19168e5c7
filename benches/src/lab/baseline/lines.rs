//! Bounded reading of lines from untrusted files.

use std::io::{BufRead, Read};

/// Reads line by line, never more bytes than the caller's limit.
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, number: 0, line: Vec::new() }
    }

    /// Next line without its end, `None` after the last. `most` is the limit in bytes.
    ///
    /// # Errors
    /// The problem, with the number of the line.
    pub(super) fn next(&mut self, most: usize) -> Result<Option<&str>, String> {
        self.line.clear();
        self.number += 1;
        let number = self.number;
        // One byte more for the end of the line.
        let limit = (most as u64).saturating_add(1);
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| format!("line {number}: {error}"))?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > most {
            return Err(format!("line {number}: longer than the maximum of {most} bytes"));
        }
        let text = std::str::from_utf8(&self.line);
        text.map(Some).map_err(|_| format!("line {number}: not UTF-8"))
    }

    /// Next line, which must exist.
    pub(super) fn expect(&mut self, most: usize, what: &str) -> Result<&str, String> {
        let number = self.number + 1;
        let line = self.next(most)?;
        line.ok_or_else(|| format!("line {number}: the file ends before {what}"))
    }

    /// Checks that only blanks follow.
    pub(super) fn end(&mut self) -> Result<(), String> {
        match self.next(0) {
            Ok(None | Some("")) => Ok(()),
            _ => Err(format!("line {}: more lines than expected", self.number)),
        }
    }

    /// Number of the last line read, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_numbered() {
        let mut lines = Lines::new(&b"abc\nabcd\n"[..]);
        assert_eq!(lines.next(3), Ok(Some("abc")));
        assert_eq!(lines.next(3).unwrap_err(), "line 2: longer than the maximum of 3 bytes");
        let mut lines = Lines::new(&b"abc\nabc"[..]);
        assert_eq!(lines.next(9), Ok(Some("abc")));
        assert_eq!(lines.number(), 1);
        assert_eq!(lines.expect(3, "its end"), Ok("abc"));
        assert_eq!(lines.end(), Ok(()));
        assert!(lines.expect(3, "its end").unwrap_err().contains("ends before its end"));
        assert!(Lines::new(&b"\xff\n"[..]).next(9).unwrap_err().contains("line 1: not UTF-8"));
        assert!(Lines::new(&b"x\n"[..]).end().unwrap_err().contains("line 1: more"));
    }
}
