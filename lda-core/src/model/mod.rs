//! What is left when training ends, and what a service keeps in memory: φ, priors, names.
//!
//! φ comes in two forms. [`Counts`], what samplers leave behind: C_w and C_k, integers, from which
//! training can go on. [`Weights`], real numbers: models of other programs, and of other methods. Both
//! are sparse by word over a floor a topic, and both serve inference.
//!
//! # The file
//! Sections of a [model file](crate::container); those marked * only where there is something in them.
//!
//! | section | element | what |
//! |---|---|---|
//! | `about` | u8 | pairs: `parameters` (`counts` or `weights`), `topics` K, `words` V, `beta` (counts); `option.NAME` for every option of the run, `epochs`, `log-joint` (a token), `documents`, `tokens`, `corpus` and `pseudo-counts` (fingerprints, hexadecimal), as far as they are known; `note.NAME` for what a program added |
//! | `alpha` | f64 | α, one or K |
//! | `alpha-asked`* | f64 | α that the run was asked for, where it is another |
//! | `totals` | u64 | counts: C_k, K of them |
//! | `floors` | f64 | weights: the least φ_kw of each topic, K of them |
//! | `offsets` | u64 | V + 1: word w's entries are `offsets[w]` to `offsets[w + 1]` |
//! | `topics` | u16, u32 | topic of each entry, ascending in a word; u32 above 65,536 topics |
//! | `counts` | u32 | counts: C_wk of each entry, none 0 |
//! | `weights` | f32 | weights: φ_kw of each entry less the floor, none 0 |
//! | `word-ends`* | u32 | V: word w's name ends before byte `word-ends[w]` of |
//! | `word-names`* | u8 | UTF-8 |
//!
//! 6 bytes a non-zero (8 above 65,536 topics), 8 bytes a word and topic, and the vocabulary.
//!
//! [`TopicModel::load`] reads all of it, compares all checksums and checks every entry. With the
//! feature `mmap`, `TopicModel::map` leaves the entries in the file: a model of any size opens in
//! the time that its words and topics take, and processes share one copy.

mod counts;
mod file;
mod fingerprint;
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

/// A trained model. See the [module](self).
///
/// Threads and sessions share one; nothing in it changes.
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

/// φ, in either form.
#[derive(Clone, Debug, PartialEq)]
enum Parameters {
    Counts(Counts),
    Weights(Weights),
}

impl TopicModel {
    /// Copies the counts that `view` shows.
    pub fn from_counts(view: &impl WordCounts, alpha: Alpha, beta: f64) -> Self {
        Self::of(Parameters::Counts(Counts::from_view(view, beta)), alpha)
    }

    /// A model of real numbers.
    pub fn from_weights(weights: Weights, alpha: Alpha) -> Self {
        Self::of(Parameters::Weights(weights), alpha)
    }

    /// Of counts that are at hand.
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

    /// Attaches where it comes from.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Topics K.
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

    /// Document-topic prior.
    pub fn alpha(&self) -> &Alpha {
        &self.alpha
    }

    /// Names of words, where the corpus had them. The first call of a mapped model makes the table
    /// that finds words, O(V).
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        self.names.get()
    }

    /// Where it comes from, as far as that is known.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Counts, where it is made of them.
    pub fn counts(&self) -> Option<&Counts> {
        match &self.parameters {
            Parameters::Counts(counts) => Some(counts),
            Parameters::Weights(_) => None,
        }
    }

    /// Weights, where it is made of them.
    pub fn weights(&self) -> Option<&Weights> {
        match &self.parameters {
            Parameters::Weights(weights) => Some(weights),
            Parameters::Counts(_) => None,
        }
    }

    /// φ_kw, the probability of `word` in `topic`. A search among the word's topics.
    ///
    /// # Panics
    /// If `topic` is not below K, or `word` not below V.
    pub fn phi(&self, topic: usize, word: usize) -> f64 {
        match &self.parameters {
            Parameters::Counts(counts) => counts.phi(topic, word),
            Parameters::Weights(weights) => weights.phi(topic, word),
        }
    }

    /// The least φ_kw of a topic: that of words that have no entry for it.
    ///
    /// # Panics
    /// If `topic` is not below K.
    pub fn floor(&self, topic: usize) -> f64 {
        match &self.parameters {
            Parameters::Counts(counts) => counts.floor(topic),
            Parameters::Weights(weights) => weights.floor(topic),
        }
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

    /// The entries by word, for code that is compiled for each form.
    pub(crate) fn rows(&self) -> AnyRows<'_> {
        let (pattern, values) = match &self.parameters {
            Parameters::Counts(counts) => (&counts.pattern, Values::Counts(&counts.counts)),
            Parameters::Weights(weights) => (&weights.pattern, Values::Weights(&weights.excesses)),
        };
        AnyRows::new(pattern, values)
    }

    /// Bytes of heap memory held: next to none where the model is mapped.
    pub fn memory(&self) -> usize {
        let parameters = match &self.parameters {
            Parameters::Counts(counts) => counts.memory(),
            Parameters::Weights(weights) => weights.memory(),
        };
        parameters + self.names.memory()
    }
}
