//! Lines of a text, counted, of bounded length.

use std::io::{BufRead, BufReader, Read};

use super::InteropError;
use crate::corpus::read::Source;

/// Bytes of a line at most: α of a million topics, written out, fit in.
const LONGEST: u64 = 1 << 26;

pub(super) struct Lines<'a> {
    reader: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    /// Of what `reader` gives, unpacked.
    pub fn new(reader: impl Read + 'a) -> Result<Self, InteropError> {
        let source = Source::new(reader, None)?;
        Ok(Self { reader: BufReader::new(source.reader), line: Vec::new(), number: 0 })
    }

    /// The next line without its end; `None` behind the last.
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
            Err(_) => Err(self.wrong("it is no UTF-8 text".to_owned())),
        }
    }

    /// Something is wrong with the line last read, or the first is missing.
    pub fn wrong(&self, reason: String) -> InteropError {
        InteropError::Line { line: self.number.max(1), reason }
    }

    /// Number of the line last read.
    pub fn number(&self) -> u64 {
        self.number
    }
}
