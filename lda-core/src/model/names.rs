//! Names of words, built lazily for a mapped model.

use std::sync::OnceLock;

use crate::container::{Array, FileError};
use crate::corpus::Vocabulary;
use crate::corpus::read::TokenizerOptions;

/// A vocabulary, or the sections to build it from at the first use.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    vocabulary: OnceLock<Vocabulary>,
    stored: Option<Stored>,
}

/// Sections of a file, already validated.
#[derive(Clone, Debug)]
struct Stored {
    ends: Array<u32>,
    bytes: Array<u8>,
    tokenizer: Option<TokenizerOptions>,
}

impl From<Option<Vocabulary>> for Names {
    fn from(vocabulary: Option<Vocabulary>) -> Self {
        let cell = OnceLock::new();
        if let Some(vocabulary) = vocabulary {
            cell.get_or_init(|| vocabulary);
        }
        Self { vocabulary: cell, stored: None }
    }
}

impl Names {
    /// Checks that `bytes` are UTF-8 and that `ends` are character boundaries.
    pub fn stored(
        ends: Array<u32>,
        bytes: Array<u8>,
        tokenizer: Option<TokenizerOptions>,
    ) -> Result<Self, FileError> {
        Vocabulary::check_parts(&bytes, &ends)?;
        Ok(Self { vocabulary: OnceLock::new(), stored: Some(Stored { ends, bytes, tokenizer }) })
    }

    pub fn get(&self) -> Option<&Vocabulary> {
        match &self.stored {
            None => self.vocabulary.get(),
            Some(Stored { ends, bytes, tokenizer }) => Some(self.vocabulary.get_or_init(|| {
                let text = std::str::from_utf8(bytes).expect("validated by `stored`");
                let mut vocabulary = Vocabulary::from_parts(text, ends);
                vocabulary.set_tokenizer(tokenizer.clone());
                vocabulary
            })),
        }
    }

    pub fn memory(&self) -> usize {
        let stored = self.stored.as_ref().map_or(0, |s| s.ends.memory() + s.bytes.memory());
        stored + self.vocabulary.get().map_or(0, Vocabulary::memory)
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}
