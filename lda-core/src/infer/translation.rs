//! Mapping of a corpus's word ids to a model's word ids.

use thiserror::Error;

use crate::corpus::{BuildError, Corpus, CorpusBuilder, Vocabulary};
use crate::model::TopicModel;

/// Error of matching the words of a corpus with those of a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TranslationError {
    /// Only one of them has a vocabulary.
    #[error(
        "the {named} names its words and the {unnamed}, of {words} words, does not: give it a \
         vocabulary, or make sure that word ids are the same and take the names away"
    )]
    OneSided {
        /// `corpus` or `model`.
        named: &'static str,
        /// The one without a vocabulary.
        unnamed: &'static str,
        /// Number of words of the one without a vocabulary.
        words: usize,
    },
    /// Neither has a vocabulary, and the corpus has more words than the model.
    #[error(
        "the corpus has {corpus} words without names and the model {model}: they are not the same \
         words"
    )]
    Unnamed {
        /// Number of words of the corpus.
        corpus: usize,
        /// Number of words of the model.
        model: usize,
    },
    /// They have no word in common, and the corpus has too many words for that to be chance.
    #[error(
        "none of the corpus's {words} words is the model's, as in {corpus:?} and {model:?}: they are \
         of other languages or were cut into words by other rules"
    )]
    Disjoint {
        /// Number of distinct words of the corpus.
        words: usize,
        /// A word of the corpus.
        corpus: String,
        /// A word of the model.
        model: String,
    },
}

/// Map from the word ids of a corpus to those of a model.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::infer::Translation;
/// use lda_core::train::{EpochReport, Flow, Lda};
///
/// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "wave"]])?;
/// let model = Lda::topics(2).train(&corpus, |_: &EpochReport| Flow::Stop)?.model;
/// let other = Corpus::from_words([["wave", "foam", "tree"]])?;
/// let translation = Translation::new(&other, &model)?;
/// assert_eq!([0, 1, 2].map(|word| translation.word(word)), [Some(3), None, Some(0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Model's id by corpus id; `None` if the ids are the same.
    words: Option<Vec<u32>>,
    model_words: u32,
}

/// A corpus with fewer words than this may consist of unknown words only.
const FEW: usize = 100;
/// Id of a word that is not in the model.
const UNKNOWN: u32 = u32::MAX;

impl Translation {
    /// Matches words by name if both have a vocabulary, by id if neither has one.
    ///
    /// # Errors
    /// [`TranslationError`], if the words cannot be matched, or if none of a hundred or more words
    /// is in the model. Fewer words may all be unknown.
    pub fn new(corpus: &Corpus, model: &TopicModel) -> Result<Self, TranslationError> {
        let model_words = model.num_words() as u32;
        let words = match (corpus.vocabulary(), model.vocabulary()) {
            (Some(from), Some(to)) => Some(by_name(from, to)?),
            (None, None) if corpus.num_words() <= model.num_words() => None,
            (None, None) => {
                let (corpus, model) = (corpus.num_words(), model.num_words());
                return Err(TranslationError::Unnamed { corpus, model });
            }
            (Some(_), None) => {
                let (named, unnamed, words) = ("corpus", "model", model.num_words());
                return Err(TranslationError::OneSided { named, unnamed, words });
            }
            (None, Some(_)) => {
                let (named, unnamed, words) = ("model", "corpus", corpus.num_words());
                return Err(TranslationError::OneSided { named, unnamed, words });
            }
        };
        Ok(Self { words, model_words })
    }

    /// Model's id of a word of the corpus; `None` if the model lacks the word.
    pub fn word(&self, word: u32) -> Option<u32> {
        let translated = match &self.words {
            Some(words) => words.get(word as usize).copied(),
            None => Some(word),
        };
        translated.filter(|&word| word < self.model_words)
    }

    /// Converts the corpus to the model's word ids. Words that are not in the model get an id
    /// beyond its vocabulary, so that inference counts them as unknown. Documents keep their names.
    ///
    /// # Errors
    /// [`BuildError`], if the converted corpus is too large.
    pub fn apply(&self, corpus: &Corpus) -> Result<Corpus, BuildError> {
        let mut builder = CorpusBuilder::new();
        for (d, document) in corpus.documents().enumerate() {
            if let Some(name) = corpus.document_name(d) {
                builder.push_name(name);
            }
            let translate = |(word, count)| (self.word(word).unwrap_or(self.model_words), count);
            builder.push_pairs(document.iter().map(translate))?;
        }
        builder.build()
    }
}

fn by_name(from: &Vocabulary, to: &Vocabulary) -> Result<Vec<u32>, TranslationError> {
    let words: Vec<u32> = from.iter().map(|name| to.id(name).unwrap_or(UNKNOWN)).collect();
    if words.len() >= FEW && !to.is_empty() && words.iter().all(|&word| word == UNKNOWN) {
        let (corpus, model) = (from.word(0).to_owned(), to.word(0).to_owned());
        return Err(TranslationError::Disjoint { words: words.len(), corpus, model });
    }
    Ok(words)
}
