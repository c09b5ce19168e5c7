//! Phrases: words that belong together, such as *new york*, as one word of the vocabulary.
//!
//! A corpus of texts is searched for them while it is read ([`PhraseOptions`]), and those that are found
//! become [rules](super::TokenizerOptions::phrases) of the tokenizer. Both use the same code to join
//! them, so that texts for a model have the phrases that it was trained with.

mod find;
mod matcher;

use std::fmt;

use super::ReadError;

pub(super) use find::PhraseFinder;
pub(super) use matcher::PhraseMatcher;

/// A word of a text in its normalised form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Word(&'a str),
    /// It is dropped unless it is part of a phrase.
    StopWord(&'a str),
    Dropped,
}

/// Words of a phrase, with single spaces between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase(String);

impl Phrase {
    /// Reads a phrase; `normalise` gives the normalised form of a word.
    ///
    /// # Errors
    /// [`ReadError::Option`] if it has fewer than two words.
    pub(super) fn new(text: &str, normalise: impl Fn(&str) -> String) -> Result<Self, ReadError> {
        let words: Vec<String> = text.split_whitespace().map(normalise).collect();
        match words.len() {
            0 | 1 => Err(ReadError::Option {
                name: "phrases",
                value: format!("{text:?}"),
                remedy: "a phrase has two or more words, with spaces between them",
            }),
            _ => Ok(Self(words.join(" "))),
        }
    }

    /// The words of the phrase.
    fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ')
    }

    /// The phrase as a word of the vocabulary.
    fn joined(&self) -> String {
        self.0.replace(' ', "_")
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
