//! Lines `id id count`, for UCI and MatrixMarket.

use super::error::ReadError;
use super::scan::Scanner;

/// A range of ids, from 1 to a limit stated by the file.
pub(super) struct Ids {
    what: &'static str,
    last: u64,
    stated_by: &'static str,
}

impl Ids {
    pub(super) fn new(what: &'static str, last: u64, stated_by: &'static str) -> Self {
        Self { what, last, stated_by }
    }

    /// Whether an id is in range. One comparison covers both ends: 0 wraps to the largest number.
    #[inline]
    fn contain(&self, id: u64) -> bool {
        id.wrapping_sub(1) < self.last
    }

    /// The next id, counted from 0.
    fn read(&self, input: &mut Scanner<'_>) -> Result<u32, ReadError> {
        let found = input.number(self.what)?;
        if !self.contain(found) {
            let Self { what, last, stated_by } = *self;
            let at = input.place();
            return Err(ReadError::OutOfRange { at, what, found, first: 1, last, stated_by });
        }
        if input.peek()? > b' ' {
            return Err(input.syntax("a space after the id"));
        }
        Ok((found - 1) as u32)
    }
}

/// Notation of counts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Values {
    /// Each line has a count.
    Given,
    /// No counts in the file: each is 1.
    Absent,
}

/// Parser of lines with two ids and a count.
pub(super) struct Entries {
    pub(super) first: Ids,
    pub(super) second: Ids,
    pub(super) values: Values,
}

impl Entries {
    /// Parses the next line, which must exist: two ids, converted to count from 0, and the count.
    #[inline]
    pub(super) fn read(&self, input: &mut Scanner<'_>) -> Result<(u32, u32, u32), ReadError> {
        if let Some(([first, second, count], len)) = input.plain_triple()
            && self.first.contain(first)
            && self.second.contain(second)
            && self.values != Values::Absent
        {
            input.skip_plain_line(len);
            return Ok(((first - 1) as u32, (second - 1) as u32, count as u32));
        }
        self.read_any(input)
    }

    /// Parses a line of any valid notation, and finds the error in an invalid one.
    #[cold]
    #[inline(never)]
    fn read_any(&self, input: &mut Scanner<'_>) -> Result<(u32, u32, u32), ReadError> {
        let first = self.first.read(input)?;
        let second = self.second.read(input)?;
        let count = match self.values {
            Values::Given => input.count()?,
            Values::Absent => 1,
        };
        input.end_line()?;
        Ok((first, second, count))
    }
}
