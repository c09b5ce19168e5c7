//! Topic coherence: how often the top words of a topic occur together.
//!
//! A topic is given by its list of top words. For each word and each pair of words, the *windows*
//! of a reference corpus that contain them are counted; p is that number divided by the number of
//! windows, ε = 10⁻¹²:
//!
//! | measure | value of a pair | mean over pairs | windows |
//! |---|---|---|---|
//! | [U_Mass](Measure::UMass) | ln (p_ij + ε) / p_j | mean, j before i in the list | documents |
//! | [C_UCI](Measure::Uci) | ln (p_ij + ε) / (p_i p_j) | mean | of 10 tokens |
//! | [C_NPMI](Measure::Npmi) | C_UCI / −ln (p_ij + ε) | mean | of 10 tokens |
//! | [C_V](Measure::Cv) | NPMI, as vectors v_i = (NPMI_ij)_j | mean of cos(v_i, Σ_j v_j) | of 110 tokens |
//!
//! Mimno et al. 2011; Newman et al. 2010; Aletras and Stevenson 2013; Röder, Both and Hinneburg
//! 2015. A document no longer than the window is one window, a longer one has L − w + 1.
//!
//! Windows of tokens need the tokens in their original order, which a corpus keeps on request
//! ([`CorpusBuilder::keep_order`](crate::corpus::CorpusBuilder::keep_order), and the option
//! [`keep_order`](crate::corpus::ReadOptions::keep_order) of the reader of text). Without it only whole
//! documents can be windows, which is another measure: it must be asked for with
//! [`Window::Documents`], and its values are not comparable with those of windows of tokens.
//!
//! # Comparison with gensim
//! The formulas are those of gensim 4's `CoherenceModel`, and values agree to 10⁻⁶, with three
//! intended differences:
//!
//! * gensim removes a word from its sliding window when one occurrence leaves at the edge, even if
//!   another occurrence is still inside, until the word enters again. Here a window counts all
//!   words in it; [`Counting::AsGensim`] counts like gensim.
//! * A word that never occurs in the reference makes gensim's UCI, NPMI and C_V infinite or NaN.
//!   Here its pairs have value 0, and [`Coherence::absent`] lists the word.
//! * Two words that are in every window have NPMI 1; gensim's ε turns that into −1.
//!
//! Cost per document: its occurrences of top words, and for each topic the pairs of its words in
//! the document; documents run in the current rayon pool. Counts are integers, so results do not
//! depend on the number of threads. Memory: 8 bytes per pair of words of each topic, for each piece
//! into which the pool has split the documents.

mod count;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cancelled::Cancelled;
use crate::corpus::Corpus;
use count::{Counts, Windows};

/// ε: keeps logarithms finite, as in the papers' programs.
const EPSILON: f64 = 1e-12;

/// Coherence measure. See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// U_Mass: log probability that a document with a word also has a word higher in the list.
    UMass,
    /// C_UCI: pointwise mutual information (PMI).
    Uci,
    /// C_NPMI: normalised PMI, from −1 to 1.
    Npmi,
    /// C_V: similarity of the words' NPMI vectors, 0 to 1.
    Cv,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 4] = [Self::UMass, Self::Uci, Self::Npmi, Self::Cv];

    /// Name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::UMass => "u-mass",
            Self::Uci => "uci",
            Self::Npmi => "npmi",
            Self::Cv => "c-v",
        }
    }

    /// Default window.
    pub fn default_window(self) -> Window {
        match self {
            Self::UMass => Window::Documents,
            Self::Uci | Self::Npmi => Window::Tokens(10),
            Self::Cv => Window::Tokens(110),
        }
    }
}

/// Unit in which words occur together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// A whole document.
    Documents,
    /// So many consecutive tokens, at least 1. Needs a corpus that kept the order of its tokens.
    Tokens(u32),
}

/// Rule for counting words in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Count every word in the window.
    #[default]
    Exact,
    /// Count like gensim 4, for comparison with its values: see the [module](self).
    AsGensim,
}

/// Options of [`coherence()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoherenceOptions {
    /// Coherence measure.
    pub measure: Measure,
    /// The window; `None`: the measure's [default](Measure::default_window).
    pub window: Option<Window>,
    /// Rule for counting words in a window.
    pub counting: Counting,
}

impl CoherenceOptions {
    /// Options with the measure's default window and exact counting.
    pub fn new(measure: Measure) -> Self {
        Self { measure, window: None, counting: Counting::Exact }
    }

    /// The same, but with whole documents as windows if `reference` did not keep the order of its tokens:
    /// another measure, which the [name](Coherence::name) of the result states.
    pub fn fitting(measure: Measure, reference: &Corpus) -> Self {
        let window = (!reference.has_token_order()).then_some(Window::Documents);
        Self { window, ..Self::new(measure) }
    }
}

/// Error of [`coherence()`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CoherenceError {
    /// A list contains a word twice.
    #[error("topic {topic} lists word {word} twice: list distinct words")]
    Repeated {
        /// The topic.
        topic: usize,
        /// The word.
        word: u32,
    },
    /// A word is not below the corpus's number of words.
    #[error(
        "topic {topic} lists word {word}, and the corpus has {words}: bring it to the model's words"
    )]
    UnknownWord {
        /// The topic.
        topic: usize,
        /// The word.
        word: u32,
        /// Number of words of the corpus.
        words: usize,
    },
    /// The window has 0 tokens.
    #[error("window is 0: give the number of tokens, 1 at least")]
    NoWindow,
    /// The corpus did not keep the order of its tokens.
    #[error(
        "{measure} counts windows of {tokens} tokens, but the reference corpus did not keep the order \
         of its tokens: keep it (`keep_order` of the reader or of `CorpusBuilder`), or choose whole \
         documents as windows, which is another measure"
    )]
    NoOrder {
        /// Name of the measure.
        measure: &'static str,
        /// Tokens per window.
        tokens: u32,
    },
    /// The reference corpus has no documents.
    #[error("the reference corpus has no documents")]
    NoDocuments,
    /// The caller has cancelled the evaluation.
    #[error("the evaluation was cancelled")]
    Cancelled,
}

/// Coherence of a list of topics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coherence {
    /// Measure and windows: `c-v in windows of 110`, or `c-v in whole documents`.
    pub name: String,
    /// Coherence of each topic; `None` for a list of fewer than two words.
    pub topics: Vec<Option<f64>>,
    /// Listed words that do not occur in the reference, ascending.
    pub absent: Vec<u32>,
}

impl Coherence {
    /// Mean over the topics with a value; `None` if no topic has one.
    pub fn mean(&self) -> Option<f64> {
        let known: Vec<f64> = self.topics.iter().copied().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

/// Computes the coherence of topics, given as lists of their top words, best first, in `reference`:
/// the training corpus, or another corpus with the same word ids.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::eval::{CoherenceOptions, Measure, coherence};
///
/// let mut builder = lda_core::corpus::CorpusBuilder::new().keep_order();
/// for _ in 0..5 {
///     builder.push_words(["tree", "leaf", "root"])?;
///     builder.push_words(["sea", "wave", "sand"])?;
/// }
/// let corpus = builder.build()?;
/// let (together, mixed) = (vec![0, 1, 2], vec![0, 1, 5]);
/// let found = coherence(&corpus, &[together, mixed], &CoherenceOptions::new(Measure::Npmi))?;
/// assert_eq!(found.name, "npmi in windows of 10");
/// assert!(found.topics[0] > Some(0.99) && found.topics[1] < Some(0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`CoherenceError`], if a list has a word twice or a word that is not in the corpus, if the
/// window is 0 or needs an order of tokens that the corpus did not keep, or if there are no documents.
pub fn coherence<W: AsRef<[u32]> + Sync>(
    reference: &Corpus,
    topics: &[W],
    options: &CoherenceOptions,
) -> Result<Coherence, CoherenceError> {
    coherence_while(reference, topics, options, &|| true)
}

/// [`coherence`], while `go_on` is true, which is asked before each document.
///
/// # Errors
/// As `coherence`, and [`CoherenceError::Cancelled`].
pub fn coherence_while<W: AsRef<[u32]> + Sync>(
    reference: &Corpus,
    topics: &[W],
    options: &CoherenceOptions,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Coherence, CoherenceError> {
    let mut parts = CoherenceOfParts::new(topics, options, reference.num_words())?;
    let cancelled = Cancelled::new(go_on);
    parts.add(reference, &cancelled)?;
    if cancelled.was() {
        return Err(CoherenceError::Cancelled);
    }
    parts.finish()
}

/// Coherence of topics in documents that are added part by part.
#[derive(Debug)]
pub(crate) struct CoherenceOfParts {
    name: String,
    measure: Measure,
    windows: Windows,
    counts: Counts,
    documents: usize,
}

impl CoherenceOfParts {
    /// No documents, of a vocabulary of `words` words.
    pub(crate) fn new<W: AsRef<[u32]>>(
        topics: &[W],
        options: &CoherenceOptions,
        words: usize,
    ) -> Result<Self, CoherenceError> {
        let CoherenceOptions { measure, window, counting } = *options;
        check(topics, words)?;
        let (name, windows) = match window.unwrap_or(measure.default_window()) {
            Window::Tokens(0) => return Err(CoherenceError::NoWindow),
            Window::Tokens(size) => {
                let windows = Windows::Sliding { size: size as usize, counting };
                let gensim = if counting == Counting::AsGensim { ", as gensim" } else { "" };
                (format!("{} in windows of {size}{gensim}", measure.name()), windows)
            }
            Window::Documents => {
                (format!("{} in whole documents", measure.name()), Windows::Documents)
            }
        };
        Ok(Self { name, measure, windows, counts: Counts::new(topics), documents: 0 })
    }

    /// Adds documents, or some of them if `cancelled`.
    pub(crate) fn add(
        &mut self,
        documents: &Corpus,
        cancelled: &Cancelled<'_>,
    ) -> Result<(), CoherenceError> {
        if let Windows::Sliding { size, .. } = self.windows
            && documents.num_documents() > 0
            && !documents.has_token_order()
        {
            let (measure, tokens) = (self.measure.name(), size as u32);
            return Err(CoherenceError::NoOrder { measure, tokens });
        }
        self.documents += documents.num_documents();
        self.counts.add(documents, self.windows, cancelled);
        Ok(())
    }

    /// Coherence in the documents that were added.
    pub(crate) fn finish(self) -> Result<Coherence, CoherenceError> {
        let Self { name, measure, counts, documents, .. } = self;
        if documents == 0 {
            return Err(CoherenceError::NoDocuments);
        }
        let of_topic = |topic: usize| {
            let words = counts.len(topic);
            (words > 1).then(|| match measure {
                Measure::UMass => {
                    counts.mean(topic, words, |c, i, j| (i > j).then(|| c.conditional(i, j)))
                }
                Measure::Uci => counts.mean(topic, words, |c, i, j| (i != j).then(|| c.pmi(i, j))),
                Measure::Npmi => {
                    counts.mean(topic, words, |c, i, j| (i != j).then(|| c.npmi(i, j)))
                }
                Measure::Cv => context_likeness(&counts.of_topic(topic)),
            })
        };
        let topics = (0..counts.num_topics()).map(of_topic).collect();
        Ok(Coherence { name, topics, absent: counts.absent() })
    }
}

fn check<W: AsRef<[u32]>>(topics: &[W], words: usize) -> Result<(), CoherenceError> {
    for (topic, list) in topics.iter().enumerate() {
        let list = list.as_ref();
        if let Some(&word) = list.iter().find(|&&word| word as usize >= words) {
            return Err(CoherenceError::UnknownWord { topic, word, words });
        }
        let mut sorted = list.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(CoherenceError::Repeated { topic, word: pair[0] });
        }
    }
    Ok(())
}

/// Counts of one topic's words, by position in its list.
struct TopicCounts<'a> {
    counts: &'a Counts,
    topic: usize,
    len: usize,
}

impl Counts {
    fn of_topic(&self, topic: usize) -> TopicCounts<'_> {
        TopicCounts { counts: self, topic, len: self.len(topic) }
    }

    /// Mean of `value` over the pairs of positions for which it is `Some`.
    fn mean(
        &self,
        topic: usize,
        len: usize,
        value: impl Fn(&TopicCounts<'_>, usize, usize) -> Option<f64>,
    ) -> f64 {
        let counts = self.of_topic(topic);
        let pairs = (0..len).flat_map(|i| (0..len).map(move |j| (i, j)));
        let values: Vec<f64> = pairs.filter_map(|(i, j)| value(&counts, i, j)).collect();
        values.iter().sum::<f64>() / values.len() as f64
    }
}

impl TopicCounts<'_> {
    fn share(&self, windows: u64) -> f64 {
        windows as f64 / self.counts.windows as f64
    }

    fn p(&self, i: usize) -> f64 {
        self.share(self.counts.occurrences(self.topic, i))
    }

    fn both(&self, i: usize, j: usize) -> f64 {
        match i == j {
            true => self.p(i),
            false => self.share(self.counts.together(self.topic, i, j)),
        }
    }

    /// ln (p_ij + ε) / p_j; 0 if j never occurs.
    fn conditional(&self, i: usize, j: usize) -> f64 {
        match self.p(j) {
            0.0 => 0.0,
            p => ((self.both(i, j) + EPSILON) / p).ln(),
        }
    }

    /// ln (p_ij + ε) / (p_i p_j); 0 if either never occurs.
    fn pmi(&self, i: usize, j: usize) -> f64 {
        match self.p(i) * self.p(j) {
            0.0 => 0.0,
            p => ((self.both(i, j) + EPSILON) / p).ln(),
        }
    }

    fn npmi(&self, i: usize, j: usize) -> f64 {
        match self.both(i, j) {
            1.0 => 1.0,
            both => self.pmi(i, j) / -(both + EPSILON).ln(),
        }
    }
}

/// Mean of cos(v_i, Σ_j v_j), where v_i is the NPMI of word i with each of the topic's words.
fn context_likeness(counts: &TopicCounts<'_>) -> f64 {
    let len = counts.len;
    let vectors: Vec<Vec<f64>> =
        (0..len).map(|i| (0..len).map(|j| counts.npmi(i, j)).collect()).collect();
    let sum: Vec<f64> = (0..len).map(|j| vectors.iter().map(|vector| vector[j]).sum()).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let likeness = |vector: &Vec<f64>| {
        let lengths = (dot(vector, vector) * dot(&sum, &sum)).sqrt();
        if lengths > 0.0 { dot(vector, &sum) / lengths } else { 0.0 }
    };
    vectors.iter().map(likeness).sum::<f64>() / len as f64
}
