//! RT-LDA: prepared model, options, scratch memory and answers.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::argmax::{Infer, Token};
use super::row::Row;
use super::tables::Tables;
use crate::counts::TopicIndex;
use crate::model::TopicModel;
use crate::prior::{Alpha, PriorError, check_beta};
use crate::simd::Isa;

/// Largest number of topics: gathers have signed 32-bit indices.
const MAX_TOPICS: usize = i32::MAX as usize;

/// Options of RT-LDA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct RtOptions {
    /// Maximum number of sweeps over a document after the initial assignment; 0 keeps the initial
    /// topics. Sweeps stop when no token moves: on a generated corpus with K = 1,000, 99 % of
    /// documents of 20 words stopped after 3 sweeps, of 200 words after 5, of 2,000 after 10.
    pub sweeps: u32,
    /// Instruction set; defaults to the best of this machine. Never changes a result.
    pub isa: Option<Isa>,
}

impl Default for RtOptions {
    fn default() -> Self {
        Self { sweeps: 5, isa: None }
    }
}

/// Error of preparing a model for RT-LDA.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RtLdaError {
    /// K is 0.
    #[error("the model has no topics: train one with at least 1")]
    NoTopics,
    /// K is above the limit of gather indices.
    #[error("the model has {topics} topics, above the limit of {limit}: train one with fewer")]
    TooManyTopics {
        /// K.
        topics: usize,
        /// Largest K.
        limit: usize,
    },
    /// α or β is invalid.
    #[error(transparent)]
    Prior(#[from] PriorError),
}

/// A model prepared for RT-LDA. See the [module documentation](super).
///
/// It is immutable: threads share one value, each with its own [`RtScratch`].
///
/// ```
/// use lda_core::corpus::Corpus;
/// use lda_core::infer::{RtLda, RtScratch};
/// use lda_core::train::{EpochReport, Flow, Lda};
///
/// let documents = [
///     vec!["tree", "leaf", "root", "tree"],
///     vec!["sea", "wave", "sand", "sea"],
///     vec!["leaf", "root", "tree"],
///     vec!["wave", "sea", "sand"],
/// ];
/// let corpus = Corpus::from_words(documents)?;
/// let lda = Lda::topics(2).alpha(0.1).seed(42).epochs(100);
/// let model = lda.train(&corpus, |_: &EpochReport| Flow::Continue)?.model;
/// let names = corpus.vocabulary().expect("made from words");
///
/// let rt = RtLda::new(&model)?;
/// let mut scratch = RtScratch::default();
/// let query = ["root", "leaf"].map(|name| names.id(name).expect("a word of the corpus"));
/// let answer = rt.infer(query, &mut scratch);
/// let &[(topic, 2)] = answer.counts() else { panic!("two tokens of one topic") };
/// assert!(answer.theta(topic) > 0.9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RtLda {
    tables: Width,
    alpha: Alpha,
    alpha_sum: f64,
    sweeps: u32,
    isa: Isa,
}

/// Tables by the width of a topic id.
#[derive(Clone, Debug)]
enum Width {
    Half(Tables<u16>),
    Full(Tables<u32>),
}

/// Runs the same code for both widths.
macro_rules! each_width {
    ($width:expr, $tables:ident => $code:expr) => {
        match $width {
            Width::Half($tables) => $code,
            Width::Full($tables) => $code,
        }
    };
}

impl RtLda {
    /// Prepares a model with default options.
    ///
    /// Takes O(K + V + non-zeros of C_w); the model is not needed afterwards.
    ///
    /// # Errors
    /// [`RtLdaError`], if the model has no topics or more than 2,147,483,647, or if its α or β is
    /// invalid.
    pub fn new(model: &TopicModel) -> Result<Self, RtLdaError> {
        Self::with_options(model, &RtOptions::default())
    }

    /// Prepares a model.
    ///
    /// ```
    /// # use lda_core::corpus::Corpus;
    /// # use lda_core::train::{EpochReport, Flow, Lda};
    /// use lda_core::infer::{RtLda, RtOptions, RtScratch};
    ///
    /// # let corpus = Corpus::from_words([["a", "b"], ["b", "c"]])?;
    /// # let lda = Lda::topics(2).epochs(1);
    /// # let model = lda.train(&corpus, |_: &EpochReport| Flow::Continue)?.model;
    /// let patient = RtLda::with_options(&model, &RtOptions { sweeps: 100, ..RtOptions::default() })?;
    /// assert!(patient.infer([0, 1, 2, 0], &mut RtScratch::default()).settled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_options(model: &TopicModel, options: &RtOptions) -> Result<Self, RtLdaError> {
        let topics = model.num_topics();
        check_topics(topics)?;
        model.alpha().check(topics)?;
        if let Some(counts) = model.counts() {
            check_beta(counts.beta(), counts.num_words())?;
        }
        let tables = if topics as u64 <= u16::MAX_TOPICS {
            Width::Half(Tables::new(model))
        } else {
            Width::Full(Tables::new(model))
        };
        Ok(Self {
            tables,
            alpha: model.alpha().clone(),
            alpha_sum: model.alpha().sum(topics),
            sweeps: options.sweeps,
            isa: options.isa.unwrap_or_else(Isa::detect),
        })
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        each_width!(&self.tables, tables => tables.num_topics())
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        each_width!(&self.tables, tables => tables.num_words())
    }

    /// Memory in bytes: 6 per non-zero of C_w (8 if K > 65,536), 16 per word, 8 per topic, and 8
    /// more per topic if α is given per topic.
    pub fn memory(&self) -> usize {
        let alpha = match &self.alpha {
            Alpha::Symmetric(_) => 0,
            Alpha::PerTopic(alphas) => size_of_val(&**alphas),
        };
        size_of::<Self>() + alpha + each_width!(&self.tables, tables => tables.memory())
    }

    /// Infers the topics of a document, given as the words of its tokens. Their order decides among
    /// local optima. Words that the model does not [know](TopicModel::knows) are left out and
    /// counted. The θ of a document without known words is the mean of the prior.
    ///
    /// The answer depends on model, options and words alone. The scratch grows to the longest
    /// document so far; then nothing is allocated.
    ///
    /// ```
    /// # use lda_core::corpus::Corpus;
    /// # use lda_core::infer::{RtLda, RtScratch};
    /// # use lda_core::train::{EpochReport, Flow, Lda};
    /// # let corpus = Corpus::from_words([["a", "b"], ["b", "c"]])?;
    /// # let lda = Lda::topics(2).epochs(1);
    /// # let model = lda.train(&corpus, |_: &EpochReport| Flow::Continue)?.model;
    /// # let rt = RtLda::new(&model)?;
    /// // A document of a corpus: its pairs of word and count.
    /// let pairs = corpus.document(0).iter();
    /// let words = pairs.flat_map(|(word, count)| std::iter::repeat_n(word, count as usize));
    /// let mut scratch = RtScratch::default();
    /// assert_eq!(rt.infer(words, &mut scratch).num_tokens(), 2);
    ///
    /// let stranger = rt.infer([1_000_000], &mut scratch);
    /// assert_eq!((stranger.num_tokens(), stranger.num_unknown()), (0, 1));
    /// assert_eq!(stranger.theta(0), 0.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn infer<'a>(
        &'a self,
        words: impl IntoIterator<Item = u32>,
        scratch: &'a mut RtScratch,
    ) -> Inferred<'a> {
        let RtScratch { row, tokens, counts } = scratch;
        let mut unknown = 0;
        tokens.clear();
        each_width!(&self.tables, tables => for word in words {
            if tables.knows(word) {
                tokens.push((word, 0));
            } else {
                unknown += 1;
            }
        });
        row.begin(self.num_topics());
        let sweeps = self.sweeps;
        let settled = each_width!(&self.tables, tables => {
            self.isa.run(Infer { tables, row, tokens, sweeps })
        });
        row.drain_into(counts);
        Inferred { model: self, tokens, counts, unknown, settled }
    }
}

pub(super) fn check_topics(topics: usize) -> Result<(), RtLdaError> {
    match topics {
        0 => Err(RtLdaError::NoTopics),
        1..=MAX_TOPICS => Ok(()),
        _ => Err(RtLdaError::TooManyTopics { topics, limit: MAX_TOPICS }),
    }
}

/// Scratch memory of one thread: 8 bytes per topic of the largest model, 8 per token of the longest
/// document, and 36 per topic of the document with the most topics.
///
/// It never affects an answer, and models may share it.
#[derive(Clone, Debug, Default)]
pub struct RtScratch {
    row: Row,
    tokens: Vec<Token>,
    counts: Vec<(u32, u64)>,
}

impl RtScratch {
    /// Memory in bytes.
    pub fn memory(&self) -> usize {
        self.row.memory()
            + self.tokens.capacity() * size_of::<Token>()
            + self.counts.capacity() * size_of::<(u32, u64)>()
    }
}

/// Inferred topics of one document; borrows from the scratch.
#[derive(Clone, Copy, Debug)]
pub struct Inferred<'a> {
    model: &'a RtLda,
    pub(super) tokens: &'a [Token],
    pub(super) counts: &'a [(u32, u64)],
    pub(super) unknown: u64,
    pub(super) settled: bool,
}

impl<'a> Inferred<'a> {
    /// (word, topic) of each token of a known word, in input order.
    pub fn tokens(&self) -> &'a [(u32, u32)] {
        self.tokens
    }

    /// C_d: (topic, tokens), topics ascending, no zeros.
    pub fn counts(&self) -> &'a [(u32, u64)] {
        self.counts
    }

    /// Number of tokens L of known words.
    pub fn num_tokens(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// Number of tokens of unknown words, which were left out.
    pub fn num_unknown(&self) -> u64 {
        self.unknown
    }

    /// Whether the sweeps reached a state in which no token would move. `false` if the maximum
    /// number of sweeps came first, even if the last sweep happened to be enough.
    pub fn settled(&self) -> bool {
        self.settled
    }

    /// Share of a topic: θ_k = (C_dk + α_k) / (L + ᾱ). The shares of all topics add up to 1.
    ///
    /// # Panics
    /// If `topic` is not below K.
    pub fn theta(&self, topic: u32) -> f64 {
        let topics = self.model.num_topics();
        assert!((topic as usize) < topics, "topic {topic} of a model of {topics} topics");
        let count = match self.counts.binary_search_by_key(&topic, |&(k, _)| k) {
            Ok(at) => self.counts[at].1,
            Err(_) => 0,
        };
        let alpha = self.model.alpha.get(topic as usize);
        (count as f64 + alpha) / (self.num_tokens() as f64 + self.model.alpha_sum)
    }
}
