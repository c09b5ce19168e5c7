//! `index:count`, the pair that SVMlight and LDA-C share.

use super::error::ReadError;
use super::scan::Scanner;
use crate::corpus::MAX_WORD;

/// How indices are counted, and how far.
pub(super) struct Indices {
    base: u64,
    /// The first index that is too large.
    end: u64,
    stated_by: &'static str,
    /// Counts may be written as real numbers.
    real: bool,
}

impl Indices {
    pub(super) fn new(base: u32, num_words: Option<u32>, real: bool) -> Self {
        let (num_words, stated_by) = match num_words {
            Some(num_words) => (num_words, "raise the option `num_words`"),
            None => (MAX_WORD + 1, "number the words without gaps"),
        };
        Self { base: u64::from(base), end: u64::from(base) + u64::from(num_words), stated_by, real }
    }

    /// The next pair, its word counted from 0.
    #[inline]
    pub(super) fn read(&self, input: &mut Scanner<'_>) -> Result<(u32, u32), ReadError> {
        let index = input.number("an index, a colon and a count")?;
        if index < self.base || index >= self.end {
            return Err(self.out_of_range(input, index));
        }
        input.byte(b':', "a colon after the index")?;
        let count = input.count(self.real)?;
        Ok(((index - self.base) as u32, count))
    }

    #[cold]
    fn out_of_range(&self, input: &Scanner<'_>, found: u64) -> ReadError {
        let at = input.place();
        if found == 0 && self.base == 1 {
            return ReadError::IndexZero { at };
        }
        let Self { base: first, end, stated_by, .. } = *self;
        let last = end.saturating_sub(1);
        ReadError::OutOfRange { at, what: "index", found, first, last, stated_by }
    }
}
