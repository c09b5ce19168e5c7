//! Words of a text that the options dropped, by reason.

use std::fmt;

/// Numbers of words that [`TextOptions`](super::TextOptions) and
/// [`TokenizerOptions`](super::TokenizerOptions) dropped, by the option that did so.
///
/// Displayed as a list of the options with their numbers, for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedWords {
    /// Words without letters: `numbers` keeps them.
    pub numbers: u64,
    /// Words shorter than `min_length`.
    pub short: u64,
    /// Words longer than `max_length`.
    pub long: u64,
    /// Stop words.
    pub stop_words: u64,
    /// Words in too few documents, or in too large a share of them.
    pub by_frequency: u64,
}

impl DroppedWords {
    /// Number of words that were dropped for any reason.
    pub fn all(&self) -> u64 {
        let Self { numbers, short, long, stop_words, by_frequency } = *self;
        numbers + short + long + stop_words + by_frequency
    }
}

impl fmt::Display for DroppedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.numbers, "are numbers (`numbers` keeps them)"),
            (self.short, "are shorter than `min_length`"),
            (self.long, "are longer than `max_length`"),
            (self.stop_words, "are stop words (`stop_words` none keeps them)"),
            (
                self.by_frequency,
                "are in fewer documents than `min_document_frequency`, or more than `max_document_frequency`",
            ),
        ];
        let given = reasons.iter().filter(|(count, _)| *count > 0);
        for (at, (count, what)) in given.enumerate() {
            write!(f, "{}{count} {what}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
