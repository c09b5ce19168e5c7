//! Vocabulary: words and their ids.
//!
//! The strings are concatenated in one arena. A word takes its bytes, 4 bytes for its end and 5 to
//! 10 bytes in the hash table: about 20 bytes per English word, where a vector of strings takes 24
//! in addition to the string and its allocation.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use thiserror::Error;

use super::read::TokenizerOptions;
use crate::container::FileError;

/// Error: the vocabulary is full. Ids and positions in the arena have 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the vocabulary is full: it has at most 2^32 - 1 words and 2^32 - 1 bytes")]
pub struct VocabularyFull;

/// Strings with dense ids, `0..len()`, in order of insertion.
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
    /// Ids of the distinct strings, by the hash of the string.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    tokenizer: Option<Arc<TokenizerOptions>>,
}

impl Vocabulary {
    /// Creates an empty vocabulary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no words.
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

    /// The word of an id, or `None` if there is no such id.
    pub fn get(&self, id: u32) -> Option<&str> {
        ((id as usize) < self.len()).then(|| self.word(id))
    }

    /// The id of a word; the first one if [`push`](Self::push) added it several times.
    pub fn id(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.ids.find(hash, |&id| word(&self.arena, &self.ends, id) == text).copied()
    }

    /// The id of a word, which is added if it is new.
    ///
    /// # Errors
    /// [`VocabularyFull`] if the word is new and the limit of 2^32 - 1 words or bytes is reached.
    pub fn intern(&mut self, text: &str) -> Result<u32, VocabularyFull> {
        let hash = self.hasher.hash_one(text);
        let known = self.ids.find(hash, |&id| word(&self.arena, &self.ends, id) == text);
        match known {
            Some(&id) => Ok(id),
            None => self.append(text, hash, true),
        }
    }

    /// Adds a word under the next id, even if it exists already. Needed for vocabulary files with
    /// repeated lines, whose ids are line numbers.
    ///
    /// # Errors
    /// [`VocabularyFull`] if the limit of 2^32 - 1 words or bytes is reached.
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
            let Self { arena, ends, ids, hasher, .. } = self;
            ids.insert_unique(hash, id, |&id| hasher.hash_one(word(arena, ends, id)));
        }
        Ok(id)
    }

    /// The concatenated words and the end of each.
    pub(crate) fn parts(&self) -> (&str, &[u32]) {
        (&self.arena, &self.ends)
    }

    /// Checks [parts](Self::parts) from a file; returns the text.
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
            Err(FileError::malformed("word-ends", "they are not ends of names"))
        }
    }

    /// Builds a vocabulary from valid [parts](Self::parts).
    ///
    /// # Panics
    /// If ends do not ascend or are not character boundaries of `text`.
    pub(crate) fn from_parts(text: &str, ends: &[u32]) -> Self {
        let mut words = Self::new();
        words.arena.reserve_exact(text.len());
        words.ends.reserve_exact(ends.len());
        words.ids.reserve(ends.len(), |_| unreachable!("the table is empty"));
        for id in 0..ends.len() as u32 {
            words.push(word(text, ends, id)).expect("the parts are within the limits");
        }
        words
    }

    /// Rules by which texts were cut into these words, if the words come from a reader of text. A
    /// model carries them, so that texts for it are cut alike.
    ///
    /// ```
    /// use lda_core::corpus::{Format, ReadOptions};
    ///
    /// let mut options = ReadOptions::default();
    /// options.text.tokenizer.lowercase = false;
    /// let (corpus, _) = Format::Text.read_from(&b"Tree and Leaf"[..], "text", &options)?;
    /// assert!(!corpus.vocabulary().unwrap().tokenizer().unwrap().lowercase);
    /// # Ok::<(), lda_core::corpus::ReadError>(())
    /// ```
    pub fn tokenizer(&self) -> Option<&TokenizerOptions> {
        self.tokenizer.as_deref()
    }

    /// Sets the [rules](Self::tokenizer) by which texts were cut into these words.
    pub fn set_tokenizer(&mut self, tokenizer: Option<TokenizerOptions>) {
        self.tokenizer = tokenizer.map(Arc::new);
    }

    /// The words in order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|id| self.word(id as u32))
    }

    /// These words, followed by those of `other` that are not among them.
    pub(super) fn extended(&self, other: &Self) -> Result<Self, VocabularyFull> {
        let mut all = self.clone();
        other.iter().try_for_each(|word| all.intern(word).map(|_| ()))?;
        Ok(all)
    }

    /// The words for which `keep` is true, in the same order.
    pub(super) fn retain(&self, mut keep: impl FnMut(u32) -> bool) -> Self {
        let mut kept = Self { tokenizer: self.tokenizer.clone(), ..Self::new() };
        for id in 0..self.ends.len() as u32 {
            if keep(id) {
                kept.push(self.word(id)).expect("a part of a vocabulary fits where all of it did");
            }
        }
        kept.shrink();
        kept
    }

    pub(super) fn shrink(&mut self) {
        let Self { arena, ends, ids, hasher, .. } = self;
        arena.shrink_to_fit();
        ends.shrink_to_fit();
        ids.shrink_to_fit(|&id| hasher.hash_one(word(arena, ends, id)));
    }

    /// Heap memory in bytes.
    pub fn memory(&self) -> usize {
        self.arena.capacity() + 4 * self.ends.capacity() + self.ids.allocation_size()
    }
}

fn word<'a>(arena: &'a str, ends: &[u32], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &arena[start as usize..ends[id] as usize]
}

/// Equal if the same words have the same ids, and texts are cut by the same rules.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.arena == other.arena && self.ends == other.ends && self.tokenizer == other.tokenizer
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
