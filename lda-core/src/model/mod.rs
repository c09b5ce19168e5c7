//! Trained topic models: φ, the priors and the names of words.
//!
//! φ has two representations. [`Counts`] are the integers C_w and C_k that samplers produce;
//! training can continue from them. [`Weights`] are real numbers, for models of other programs and
//! methods. Both are sparse by word over a floor per topic, and both serve inference.
//!
//! # File format
//! Sections of a [model file](crate::container); those marked * are present only if they have
//! content.
//!
//! | section | element | content |
//! |---|---|---|
//! | `about` | u8 | pairs: `parameters` (`counts` or `weights`), `topics` K, `words` V, `beta` (counts); `option.NAME` for every option of the run, `epochs`, `log-joint` (per token), `documents`, `tokens`, `corpus` and `pseudo-counts` (fingerprints, hexadecimal), as far as they are known; `note.NAME` for notes that a program added; `tokenizer.NAME` for the [rules](crate::corpus::Vocabulary::tokenizer) by which texts were cut into words |
//! | `alpha` | f64 | α, one or K |
//! | `alpha-asked`* | f64 | α in the run's options, if it differs from `alpha` |
//! | `totals` | u64 | counts: C_k, K of them |
//! | `floors` | f64 | weights: the smallest φ_kw of each topic, K of them |
//! | `offsets` | u64 | V + 1: word w's entries are `offsets[w]` to `offsets[w + 1]` |
//! | `topics` | u16, u32 | topic of each entry, ascending in a word; u32 above 65,536 topics |
//! | `counts` | u32 | counts: C_wk of each entry, none 0 |
//! | `weights` | f32 | weights: φ_kw of each entry minus the floor, none 0 |
//! | `word-ends`* | u32 | V: the name of word w ends before byte `word-ends[w]` of `word-names` |
//! | `word-names`* | u8 | names of words, UTF-8, concatenated |
//!
//! Size: 6 bytes per non-zero (8 above 65,536 topics), 8 bytes per word and per topic, and the
//! vocabulary.
//!
//! [`TopicModel::load`] reads the file into memory, compares all checksums and checks every entry.
//! With the feature `mmap`, `TopicModel::map` uses the file in place, so that processes share one
//! copy; it is `unsafe`, because the file must not change meanwhile. `TopicModel::map_unverified`
//! opens a model of any size in the time that its words and topics take.

mod counts;
mod file;
mod fingerprint;
#[cfg(feature = "mmap")]
mod map;
mod merge;
mod names;
mod provenance;
mod remove;
mod rows;
#[cfg(test)]
mod tests;
mod weights;

pub use counts::Counts;
pub(crate) use counts::CountsBuilder;
pub use merge::Merged;
pub use provenance::Provenance;
pub use remove::RemoveError;
use rows::Values;
pub(crate) use rows::{AnyRows, Rows, Value, with_rows};
pub use rows::{Entries, Topics};
pub use weights::{Weights, WeightsError};

use crate::corpus::Vocabulary;
use crate::counts::WordCounts;
use crate::prior::Alpha;
use names::Names;

/// A trained model: φ with its priors, names of words and provenance. See the [module](self).
///
/// Immutable; threads and inference sessions share one model.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::model::TopicModel;
/// use lda_core::train::{EpochReport, Flow, Lda};
///
/// let corpus = Corpus::from_words([vec!["tree", "leaf", "tree"], vec!["sea", "wave", "sea"]])?;
/// let lda = Lda::topics(2).seed(42).epochs(50);
/// let model = lda.train(&corpus, |_: &EpochReport| Flow::Continue)?.model;
///
/// let path = std::env::temp_dir().join(format!("lda-model-{}.lda", std::process::id()));
/// model.save(&path)?;
/// let again = TopicModel::load(&path)?;
/// assert_eq!(again, model);
/// assert_eq!(again.provenance().epochs, Some(50));
/// assert_eq!(again.vocabulary().and_then(|words| words.id("wave")), Some(3));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TopicModel {
    parameters: Parameters,
    alpha: Alpha,
    names: Names,
    provenance: Provenance,
}

/// φ in one of its representations.
#[derive(Clone, Debug, PartialEq)]
enum Parameters {
    Counts(Counts),
    Weights(Weights),
}

impl TopicModel {
    /// Builds a model from a copy of the counts in `view`.
    pub fn from_counts(view: &impl WordCounts, alpha: Alpha, beta: f64) -> Self {
        Self::of(Parameters::Counts(Counts::from_view(view, beta)), alpha)
    }

    /// Builds a model from real numbers.
    pub fn from_weights(weights: Weights, alpha: Alpha) -> Self {
        Self::of(Parameters::Weights(weights), alpha)
    }

    /// Builds a model from counts, without a copy.
    pub(crate) fn of_counts(counts: Counts, alpha: Alpha) -> Self {
        Self::of(Parameters::Counts(counts), alpha)
    }

    fn of(parameters: Parameters, alpha: Alpha) -> Self {
        Self { parameters, alpha, names: Names::default(), provenance: Provenance::default() }
    }

    /// Attaches names of words.
    pub fn with_vocabulary(mut self, vocabulary: Option<Vocabulary>) -> Self {
        self.names = vocabulary.into();
        self
    }

    /// Attaches the provenance.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        match &self.parameters {
            Parameters::Counts(counts) => counts.num_topics(),
            Parameters::Weights(weights) => weights.num_topics(),
        }
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        match &self.parameters {
            Parameters::Counts(counts) => counts.num_words(),
            Parameters::Weights(weights) => weights.num_words(),
        }
    }

    /// Document-topic prior α.
    pub fn alpha(&self) -> &Alpha {
        &self.alpha
    }

    /// Names of words, if the corpus had them. For a mapped model the first call builds the lookup
    /// table, O(V).
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        self.names.get()
    }

    /// Provenance, as far as it is known.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Counts, or `None` if φ is stored as weights.
    pub fn counts(&self) -> Option<&Counts> {
        match &self.parameters {
            Parameters::Counts(counts) => Some(counts),
            Parameters::Weights(_) => None,
        }
    }

    /// Weights, or `None` if φ is stored as counts.
    pub fn weights(&self) -> Option<&Weights> {
        match &self.parameters {
            Parameters::Weights(weights) => Some(weights),
            Parameters::Counts(_) => None,
        }
    }

    /// φ_kw, the probability of `word` in `topic`: a binary search among the word's topics.
    ///
    /// # Panics
    /// If `topic` is not below K, or `word` not below V.
    pub fn phi(&self, topic: usize, word: usize) -> f64 {
        match &self.parameters {
            Parameters::Counts(counts) => counts.phi(topic, word),
            Parameters::Weights(weights) => weights.phi(topic, word),
        }
    }

    /// The smallest φ_kw of a topic: that of words without an entry for it.
    ///
    /// # Panics
    /// If `topic` is not below K.
    pub fn floor(&self, topic: usize) -> f64 {
        match &self.parameters {
            Parameters::Counts(counts) => counts.floor(topic),
            Parameters::Weights(weights) => weights.floor(topic),
        }
    }

    /// Whether the model knows a word: it was counted in training, or has a positive probability in
    /// a topic of a model of weights. Inference and perplexity leave out all other words.
    ///
    /// A word of the vocabulary may have no token in training, for example because a filter has
    /// removed it. Its φ_kw would be the [floor](Self::floor) of each topic, which is largest in the
    /// topic with the fewest tokens and says nothing about the word.
    pub fn knows(&self, word: u32) -> bool {
        let is_there = (word as usize) < self.num_words();
        is_there && (self.knows_words_at_the_floor() || !self.topics(word as usize).is_empty())
    }

    /// Whether a word without an entry may still have a known probability: in a model of weights
    /// whose topics have floors, where the entries do not tell which words were trained.
    pub(crate) fn knows_words_at_the_floor(&self) -> bool {
        self.weights().is_some_and(|weights| weights.floors().iter().any(|&floor| floor > 0.0))
    }

    /// Topics with an entry for `word`, ascending; in all others its φ_kw is their
    /// [floor](Self::floor).
    ///
    /// # Panics
    /// If `word` is not below V.
    pub fn topics(&self, word: usize) -> Topics<'_> {
        match &self.parameters {
            Parameters::Counts(counts) => counts.topics(word),
            Parameters::Weights(weights) => weights.topics(word),
        }
    }

    /// Calls `f(topic, φ_kw)` for the [topics](Self::topics) of `word`.
    ///
    /// # Panics
    /// If `word` is not below V.
    pub fn for_each_phi(&self, word: usize, mut f: impl FnMut(u32, f64)) {
        match &self.parameters {
            Parameters::Counts(counts) => {
                for (topic, count) in counts.word(word).iter() {
                    f(topic, counts.phi_of(topic as usize, count));
                }
            }
            Parameters::Weights(weights) => {
                for (topic, excess) in weights.word(word).iter() {
                    f(topic, weights.floor(topic as usize) + f64::from(excess));
                }
            }
        }
    }

    /// The entries by word, for code that is compiled once per representation.
    pub(crate) fn rows(&self) -> AnyRows<'_> {
        let (pattern, values) = match &self.parameters {
            Parameters::Counts(counts) => (&counts.pattern, Values::Counts(&counts.counts)),
            Parameters::Weights(weights) => (&weights.pattern, Values::Weights(&weights.excesses)),
        };
        AnyRows::new(pattern, values)
    }

    /// Heap memory in bytes; close to 0 for a mapped model.
    pub fn memory(&self) -> usize {
        let parameters = match &self.parameters {
            Parameters::Counts(counts) => counts.memory(),
            Parameters::Weights(weights) => weights.memory(),
        };
        parameters + self.names.memory()
    }
}
