//! Reader of text lines with line numbers and a length limit.

use std::io::{BufRead, BufReader, Read};

use super::InteropError;
use crate::corpus::read::Source;

/// Maximum length of a line in bytes; α of a million topics fits.
const LONGEST: u64 = 1 << 26;

/// Lines of a stream, decompressed.
pub(super) struct Lines<'a> {
    reader: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    /// Lines of `reader`, which may be compressed.
    pub fn new(reader: impl Read + 'a) -> Result<Self, InteropError> {
        let source = Source::new(reader, None)?;
        Ok(Self { reader: BufReader::new(source.reader), line: Vec::new(), number: 0 })
    }

    /// The next line without its line end; `None` after the last.
    pub fn next(&mut self) -> Result<Option<&str>, InteropError> {
        self.line.clear();
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let ended = self.line.pop_if(|byte| *byte == b'\n').is_some();
        if !ended && read as u64 == LONGEST {
            return Err(self.wrong(format!("it has more than {LONGEST} bytes")));
        }
        let _ = self.line.pop_if(|byte| *byte == b'\r');
        match std::str::from_utf8(&self.line) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.wrong("it is not UTF-8".to_owned())),
        }
    }

    /// An error for the last line read, or for line 1 if there is none.
    pub fn wrong(&self, reason: String) -> InteropError {
        InteropError::Line { line: self.number.max(1), reason }
    }

    /// Number of the last line read.
    pub fn number(&self) -> u64 {
        self.number
    }
}
