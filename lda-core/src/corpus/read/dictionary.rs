//! Dictionaries: files that name words by their ids, with the counts of the words.
//!
//! gensim and LightLDA write lines `id<TAB>word<TAB>count`, in any order; newer versions of gensim
//! write the number of documents before them.

use hashbrown::HashMap;

use super::error::{Place, ReadError};
use crate::corpus::Vocabulary;

/// Words without a name for each one with a name, at most; a wrong id must not cost memory.
const MAX_GAPS: usize = 16;

/// Id and word of a line; `None` if it is no line of a dictionary.
pub(super) fn entry(line: &str) -> Option<(u32, &str)> {
    let mut columns = line.split('\t');
    let (id, word, count) = (columns.next()?, columns.next()?.trim(), columns.next()?);
    let is_entry = columns.next().is_none() && !word.is_empty() && count.parse::<u64>().is_ok();
    let id = id.parse().ok().filter(|_| is_entry)?;
    Some((id, word))
}

/// Whether the words before the first entry are no words: none, or the number of documents.
pub(super) fn may_follow(before: &Vocabulary) -> bool {
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    before.is_empty() || before.len() == 1 && is_number(before.word(0))
}

/// The words of a dictionary, by id.
#[derive(Default)]
pub(super) struct Dictionary {
    words: HashMap<u32, Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

impl Dictionary {
    /// Adds a line.
    ///
    /// # Errors
    /// [`ReadError::Syntax`] if it is not of a dictionary, or repeats an id or a word.
    pub fn add(&mut self, line: &str, at: &Place) -> Result<(), ReadError> {
        let wrong = |expected: &'static str, found: String| {
            Err(ReadError::Syntax { at: at.clone(), expected, found })
        };
        let Some((id, word)) = entry(line) else {
            return wrong("id, word and count with tabs between, as before", format!("`{line}`"));
        };
        if let Some(before) = self.words.insert(id, word.into()) {
            return wrong("each id once", format!("id {id} for `{word}` and for `{before}`"));
        }
        match self.ids.insert(word.into(), id) {
            Some(before) => wrong("each word once", format!("`{word}` with ids {before} and {id}")),
            None => Ok(()),
        }
    }

    /// The words by id; ids without a name have the empty word.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] if most ids have no name.
    pub fn finish(self, at: Place) -> Result<Vocabulary, ReadError> {
        let largest = self.words.keys().max().map_or(0, |&id| u64::from(id));
        let limit = (self.words.len() * MAX_GAPS) as u64;
        if largest > limit {
            let stated_by = "give ids to words without such gaps";
            let what = "the largest id of the dictionary,";
            let (first, last) = (0, limit);
            return Err(ReadError::OutOfRange { at, what, found: largest, first, last, stated_by });
        }
        let mut vocabulary = Vocabulary::new();
        for id in 0..=largest as u32 {
            let word = self.words.get(&id).map_or("", |word| word);
            vocabulary
                .push(word)
                .map_err(|error| ReadError::Build { at: at.clone(), source: error.into() })?;
        }
        Ok(vocabulary)
    }
}

/// Checks that all words of the tokens have names.
pub(super) fn check_names(
    vocabulary: &Vocabulary,
    used: &[u32],
    at: Place,
) -> Result<(), ReadError> {
    let nameless =
        |&&id: &&u32| (id as usize) >= vocabulary.len() || vocabulary.word(id).is_empty();
    match used.iter().find(nameless) {
        None => Ok(()),
        Some(&id) => Err(ReadError::Syntax {
            at,
            expected: "a name for each word of the documents",
            found: format!("none for id {id} (from 0)"),
        }),
    }
}
