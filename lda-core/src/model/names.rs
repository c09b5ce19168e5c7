//! Names of words, which a mapped model finds only when it is asked.

use std::sync::OnceLock;

use crate::container::{Array, FileError};
use crate::corpus::Vocabulary;

/// A vocabulary, or what it can be made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    vocabulary: OnceLock<Vocabulary>,
    stored: Option<Stored>,
}

/// As it stands in a file; checked.
#[derive(Clone, Debug)]
struct Stored {
    ends: Array<u32>,
    bytes: Array<u8>,
}

impl From<Option<Vocabulary>> for Names {
    fn from(vocabulary: Option<Vocabulary>) -> Self {
        let held = OnceLock::new();
        if let Some(vocabulary) = vocabulary {
            held.get_or_init(|| vocabulary);
        }
        Self { vocabulary: held, stored: None }
    }
}

impl Names {
    /// Checks that `bytes` are text and `ends` divide it.
    pub fn stored(ends: Array<u32>, bytes: Array<u8>) -> Result<Self, FileError> {
        Vocabulary::check_parts(&bytes, &ends)?;
        Ok(Self { vocabulary: OnceLock::new(), stored: Some(Stored { ends, bytes }) })
    }

    pub fn get(&self) -> Option<&Vocabulary> {
        match &self.stored {
            None => self.vocabulary.get(),
            Some(Stored { ends, bytes }) => Some(self.vocabulary.get_or_init(|| {
                let text = std::str::from_utf8(bytes).expect("it was checked");
                Vocabulary::from_parts(text, ends)
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
