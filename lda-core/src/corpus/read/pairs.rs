//! Pairs `index:count`, for SVMlight and LDA-C.

use super::detect::{Sample, is_number};
use super::error::ReadError;
use super::scan::Scanner;
use crate::corpus::MAX_WORD;

/// Parser of pairs with indices in a range.
pub(super) struct Indices {
    base: u64,
    /// First index beyond the range.
    end: u64,
    stated_by: &'static str,
}

impl Indices {
    pub(super) fn new(base: u32, num_words: Option<u32>) -> Self {
        let (num_words, stated_by) = match num_words {
            Some(num_words) => (num_words, "raise `num_words`"),
            None => (MAX_WORD + 1, "number the words without gaps"),
        };
        Self { base: u64::from(base), end: u64::from(base) + u64::from(num_words), stated_by }
    }

    /// Parses the next pair; the word is converted to count from 0.
    #[inline]
    pub(super) fn read(&self, input: &mut Scanner<'_>) -> Result<(u32, u32), ReadError> {
        let index = input.number("an index, a colon and a count")?;
        if index < self.base || index >= self.end {
            return Err(self.out_of_range(input, index));
        }
        input.byte(b':', "a colon after the index")?;
        let count = input.count()?;
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

/// Meaning of the first word of each line of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// The number of pairs that follow, on every line: LDA-C.
    NumPairs,
    /// Something else, or missing: SVMlight.
    Any,
}

/// Whether the lines are `index:number` pairs after at most one other word; `None` if they are not.
pub(super) fn sniff(sample: &Sample<'_>) -> Option<Labels> {
    let (mut any, mut counted) = (false, true);
    for line in &sample.lines {
        let mut parts = line.split(|&byte| byte == b'#');
        let content = parts.next().unwrap_or_default().trim_ascii();
        let commented = parts.next().is_some();
        if content.is_empty() {
            counted &= !commented;
            continue;
        }
        let mut words = content.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let mut pairs = u64::from(is_pair(first));
        for word in words {
            if !is_pair(word) && !word.starts_with(b"qid:") {
                return None;
            }
            pairs += 1;
        }
        any |= pairs > 0;
        counted &= !commented && pairs.to_string().as_bytes() == first;
    }
    any.then_some(if counted { Labels::NumPairs } else { Labels::Any })
}

/// Whether `word` looks like `index:number`. The number is checked only roughly, so that an invalid
/// one is reported by the parser, with its line.
fn is_pair(word: &[u8]) -> bool {
    let Some(colon) = word.iter().position(|&byte| byte == b':') else { return false };
    let (index, value) = (&word[..colon], &word[colon + 1..]);
    let numeric = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    is_number(index) && value.first().is_some_and(numeric) && value.iter().all(numeric)
}
