//! Word ids of one vocabulary as those of another.

use thiserror::Error;

use crate::corpus::{BuildError, Corpus, CorpusBuilder, Vocabulary};
use crate::model::TopicModel;

/// A corpus and a model whose word ids may mean different words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TranslationError {
    /// Only one of them names its words.
    #[error(
        "the {named} names its words and the {unnamed}, of {words} words, does not: give it a \
         vocabulary, or make sure that word ids are the same and take the names away"
    )]
    OneSided {
        /// `corpus` or `model`.
        named: &'static str,
        /// The other.
        unnamed: &'static str,
        /// Words of the other.
        words: usize,
    },
    /// Neither names its words, and there are more of them than the model has.
    #[error(
        "the corpus has {corpus} words without names and the model {model}: they are not the same \
         words"
    )]
    Unnamed {
        /// Words of the corpus.
        corpus: usize,
        /// Words of the model.
        model: usize,
    },
    /// They have no word in common, and the corpus is too large for that to be chance.
    #[error(
        "none of the corpus's {words} words is the model's, as in {corpus:?} and {model:?}: they are \
         of other languages or were cut into words by other rules"
    )]
    Disjoint {
        /// Distinct words of the corpus.
        words: usize,
        /// A word of the corpus.
        corpus: String,
        /// A word of the model.
        model: String,
    },
}

/// Which word of a model each word of a corpus is.
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
    /// By the corpus's ids; `None` where ids are the same.
    words: Option<Vec<u32>>,
    model_words: u32,
}

/// Fewer words than this may all be unknown.
const FEW: usize = 100;
/// The id of a word that the model does not have.
const UNKNOWN: u32 = u32::MAX;

impl Translation {
    /// By names where both have them, by ids where neither does.
    ///
    /// # Errors
    /// [`TranslationError`], where it cannot be told which word is which, or where not one of a
    /// hundred words or more is known. A few unknown words are no error, be they all there are.
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

    /// The model's word for a word of the corpus.
    pub fn word(&self, word: u32) -> Option<u32> {
        let translated = match &self.words {
            Some(words) => words.get(word as usize).copied(),
            None => Some(word),
        };
        translated.filter(|&word| word < self.model_words)
    }

    /// The corpus in the model's words. Words that it does not have are kept, as ids that it does
    /// not have either, so that they are counted.
    ///
    /// # Errors
    /// [`BuildError`], where a corpus of so many words cannot be.
    pub fn apply(&self, corpus: &Corpus) -> Result<Corpus, BuildError> {
        let mut builder = CorpusBuilder::new();
        for document in corpus.documents() {
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
