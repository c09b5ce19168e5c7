//! Words and their ids.
//!
//! The strings lie one after another in a single arena; a word costs its bytes, 4 bytes for where
//! it ends and 5 to 10 bytes in the hash table that finds it again: about 20 bytes a word of
//! English, where a vector of strings takes 24 besides the string and its allocation.

use std::fmt;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use thiserror::Error;

use crate::container::FileError;

/// The vocabulary has no room for another word: ids are 32 bits, and so are places in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the vocabulary is full: at most 2^32 - 1 words and 2^32 - 1 bytes of them are held")]
pub struct VocabularyFull;

/// Strings with dense ids, `0..len()`, in order of arrival.
///
/// ```
/// use lda_core::corpus::Vocabulary;
///
/// let mut words = Vocabulary::new();
/// assert_eq!(words.intern("topic")?, 0);
/// assert_eq!(words.intern("model")?, 1);
/// assert_eq!(words.intern("topic")?, 0);
/// assert_eq!(words.id("model"), Some(1));
/// assert_eq!(words.word(0), "topic");
/// assert_eq!(words.iter().collect::<Vec<_>>(), ["topic", "model"]);
/// # Ok::<(), lda_core::corpus::VocabularyFull>(())
/// ```
#[derive(Clone, Default)]
pub struct Vocabulary {
    arena: String,
    /// Word `w` ends before byte `ends[w]` of the arena.
    ends: Vec<u32>,
    /// Ids of the distinct strings, placed by the hash of the string.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Vocabulary {
    /// An empty vocabulary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word of an id.
    ///
    /// # Panics
    /// If `id` is not below [`len`](Self::len).
    pub fn word(&self, id: u32) -> &str {
        word(&self.arena, &self.ends, id)
    }

    /// The word of an id, or `None` where there is no such id.
    pub fn get(&self, id: u32) -> Option<&str> {
        ((id as usize) < self.len()).then(|| self.word(id))
    }

    /// The id of a word; the first one, where [`push`](Self::push) gave the same word several.
    pub fn id(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.ids.find(hash, |&id| word(&self.arena, &self.ends, id) == text).copied()
    }

    /// The id of a word, which is added where it is new.
    ///
    /// # Errors
    /// [`VocabularyFull`] where the word is new and 2^32 - 1 words, or bytes, are there already.
    pub fn intern(&mut self, text: &str) -> Result<u32, VocabularyFull> {
        let hash = self.hasher.hash_one(text);
        let known = self.ids.find(hash, |&id| word(&self.arena, &self.ends, id) == text);
        match known {
            Some(&id) => Ok(id),
            None => self.append(text, hash, true),
        }
    }

    /// Gives a word the next id even where it has one already, as a vocabulary file that repeats
    /// a line does: ids must stay line numbers.
    ///
    /// # Errors
    /// [`VocabularyFull`] where 2^32 - 1 words, or bytes, are there already.
    pub fn push(&mut self, text: &str) -> Result<u32, VocabularyFull> {
        let hash = self.hasher.hash_one(text);
        let known = self.ids.find(hash, |&id| word(&self.arena, &self.ends, id) == text);
        let first = known.is_none();
        self.append(text, hash, first)
    }

    fn append(&mut self, text: &str, hash: u64, first: bool) -> Result<u32, VocabularyFull> {
        let id = u32::try_from(self.ends.len()).map_err(|_| VocabularyFull)?;
        let end = self.arena.len() + text.len();
        let end = u32::try_from(end).map_err(|_| VocabularyFull)?;
        if id == u32::MAX {
            return Err(VocabularyFull);
        }
        self.arena.push_str(text);
        self.ends.push(end);
        if first {
            let Self { arena, ends, ids, hasher } = self;
            ids.insert_unique(hash, id, |&id| hasher.hash_one(word(arena, ends, id)));
        }
        Ok(id)
    }

    /// All words one after the other, and where each ends.
    pub(crate) fn parts(&self) -> (&str, &[u32]) {
        (&self.arena, &self.ends)
    }

    /// The text of such [parts](Self::parts) of a file, if they are some.
    pub(crate) fn check_parts<'a>(bytes: &'a [u8], ends: &[u32]) -> Result<&'a str, FileError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            FileError::malformed("word-names", format!("it is not UTF-8: {error}"))
        })?;
        let divide = ends.is_sorted()
            && ends.last().map_or(0, |&end| end as usize) == text.len()
            && ends.iter().all(|&end| text.is_char_boundary(end as usize));
        if divide {
            Ok(text)
        } else {
            Err(FileError::malformed("word-ends", "they do not divide the names"))
        }
    }

    /// From such [parts](Self::parts), which must be some.
    ///
    /// # Panics
    /// If ends do not ascend, or do not lie on borders of characters of `text`.
    pub(crate) fn from_parts(text: &str, ends: &[u32]) -> Self {
        let mut words = Self::new();
        words.arena.reserve_exact(text.len());
        words.ends.reserve_exact(ends.len());
        words.ids.reserve(ends.len(), |_| unreachable!("there is no word yet"));
        for id in 0..ends.len() as u32 {
            words.push(word(text, ends, id)).expect("as many ids and bytes as before");
        }
        words
    }

    /// The words in order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|id| self.word(id as u32))
    }

    /// The words for which `keep` holds, in the same order.
    #[cfg(any(feature = "text", test))]
    pub(super) fn retain(&self, mut keep: impl FnMut(u32) -> bool) -> Self {
        let mut kept = Self::new();
        for id in 0..self.ends.len() as u32 {
            if keep(id) {
                kept.push(self.word(id)).expect("a part of a vocabulary fits where all of it did");
            }
        }
        kept.shrink();
        kept
    }

    pub(super) fn shrink(&mut self) {
        let Self { arena, ends, ids, hasher } = self;
        arena.shrink_to_fit();
        ends.shrink_to_fit();
        ids.shrink_to_fit(|&id| hasher.hash_one(word(arena, ends, id)));
    }

    /// Bytes of heap memory held.
    pub fn memory(&self) -> usize {
        self.arena.capacity() + 4 * self.ends.capacity() + self.ids.allocation_size()
    }
}

fn word<'a>(arena: &'a str, ends: &[u32], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &arena[start as usize..ends[id] as usize]
}

/// The same words with the same ids.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.arena == other.arena && self.ends == other.ends
    }
}

impl Eq for Vocabulary {}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary").field("words", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repeated_lines_keep_their_ids() {
        let mut words = Vocabulary::new();
        for line in ["a", "", "a", "b"] {
            words.push(line).unwrap();
        }
        assert_eq!(words.len(), 4);
        assert_eq!(words.id("a"), Some(0));
        assert_eq!(words.id(""), Some(1));
        assert_eq!(words.word(2), "a");
        assert_eq!(words.id("b"), Some(3));
        assert_eq!(words.get(4), None);
        assert_eq!(words.intern("c"), Ok(4));
    }

    proptest! {
        #[test]
        fn behaves_as_a_vector_of_strings(texts in prop::collection::vec("[a-cä]{0,2}", 0..60)) {
            let mut words = Vocabulary::new();
            let mut model: Vec<&str> = Vec::new();
            for text in &texts {
                let expected = model.iter().position(|known| known == text).unwrap_or_else(|| {
                    model.push(text);
                    model.len() - 1
                });
                prop_assert_eq!(words.intern(text), Ok(expected as u32));
            }
            prop_assert_eq!(words.iter().collect::<Vec<_>>(), model.clone());
            for (id, text) in model.iter().enumerate() {
                prop_assert_eq!(words.id(text), Some(id as u32));
            }
            let odd = words.retain(|id| id % 2 == 1);
            let expected = model.iter().copied().skip(1).step_by(2).collect::<Vec<_>>();
            prop_assert_eq!(odd.iter().collect::<Vec<_>>(), expected);
        }
    }
}
