//! Inference for whole documents: a model prepared for a method, sessions and answers.

use std::ops::{Deref, Range};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::fold_in::FoldIn;
use super::frozen_phi::{FrozenPhi, Query};
use super::rt::{RtLda, RtLdaError, RtOptions, RtScratch};
use super::variational::Variational;
use crate::corpus::{Corpus, Document};
use crate::model::{TopicModel, with_rows};
use crate::prior::{PriorError, check_beta};
use crate::random::{Purpose, StreamKey, mix};

/// Inference method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", tag = "method")]
#[non_exhaustive]
pub enum Method {
    /// Gibbs sampling: the mean of `samples` sweeps after `burn_in`. Shares are those of the
    /// posterior, up to sampling error.
    FoldIn {
        /// Sweeps before the first sample.
        burn_in: u32,
        /// Samples, at least 1.
        samples: u32,
    },
    /// The most probable topic of each token: fastest, biased towards the leading topic
    /// ([`RtLda`]).
    Rt {
        /// Maximum number of sweeps.
        sweeps: u32,
    },
    /// The variational E-step: deterministic, O(K) per iteration.
    Variational {
        /// Maximum number of iterations, at least 1.
        iterations: u32,
        /// Stops when the shares change by less than this in total. At least 0.
        tolerance: f64,
    },
}

impl Method {
    /// Gibbs sampling, 10 sweeps and 20 samples.
    pub const FOLD_IN: Self = Self::FoldIn { burn_in: 10, samples: 20 };
    /// RT-LDA, at most 5 sweeps.
    pub const RT: Self = Self::Rt { sweeps: 5 };
    /// Variational, tolerance 0.001, at most 100 iterations.
    pub const VARIATIONAL: Self = Self::Variational { iterations: 100, tolerance: 1e-3 };

    /// Name in options and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::FoldIn { .. } => "fold-in",
            Self::Rt { .. } => "rt",
            Self::Variational { .. } => "variational",
        }
    }
}

/// Error of preparing a model for inference.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InferenceError {
    /// The model cannot be used for inference.
    #[error(transparent)]
    Model(#[from] RtLdaError),
    /// An option of the method is out of range.
    #[error("{option} is {value}: {remedy}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Value of the option.
        value: String,
        /// Remedy, as the end of the message.
        remedy: &'static str,
    },
    /// The model has numbers instead of words.
    #[error(
        "the model has no vocabulary: give the numbers of the words, or a model with one \
         (`TopicModel::with_vocabulary`)"
    )]
    NoVocabulary,
}

impl From<PriorError> for InferenceError {
    fn from(error: PriorError) -> Self {
        Self::Model(error.into())
    }
}

/// A model prepared for a method. Takes O(K + V) memory for fold-in and variational inference,
/// which read a memory-mapped model in place; RT-LDA copies the model.
///
/// Threads share one value, each with its own [`Session`]. `M` is a reference to a model or an
/// `Arc` of one.
///
/// An answer depends on the model, the method, the seed and the words of the document alone: not on
/// other documents, not on the number of threads and, except for RT-LDA, not on the order of the
/// words.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::infer::{Inference, Method};
/// use lda_core::train::{EpochReport, Flow, Lda};
///
/// let corpus = Corpus::from_words([
///     vec!["tree", "leaf", "root", "tree"],
///     vec!["sea", "wave", "sand", "sea"],
///     vec!["leaf", "root", "tree"],
///     vec!["wave", "sea", "sand"],
/// ])?;
/// let lda = Lda::topics(2).alpha(0.1).seed(42).epochs(100);
/// let model = lda.train(&corpus, |_: &EpochReport| Flow::Continue)?.model;
///
/// for method in [Method::FOLD_IN, Method::RT, Method::VARIATIONAL] {
///     let inference = Inference::new(&model, method, 0)?;
///     let mut session = inference.session();
///     // "root leaf", and a word that the model does not know.
///     let answer = session.infer([2, 1, 99]);
///     assert_eq!((answer.tokens, answer.unknown), (2, 1));
///     let (topic, share) = inference.leading(&answer)[0];
///     assert!(share > 0.8);
///     // Every document of a corpus at once.
///     let answers = inference.infer_corpus(&corpus);
///     assert_eq!(inference.leading(&answers[2])[0].0, topic);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Inference<M> {
    model: M,
    method: Method,
    seed: u64,
    prepared: Prepared,
    alpha_sum: f64,
}

#[derive(Debug)]
enum Prepared {
    FrozenPhi(FrozenPhi),
    Rt(RtLda),
}

/// Inferred topics of one document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// (topic, expected tokens), topics ascending; the expected tokens add up to `tokens`.
    pub counts: Vec<(u32, f64)>,
    /// Tokens of [known](TopicModel::knows) words.
    pub tokens: u64,
    /// Tokens of unknown words, which were left out.
    pub unknown: u64,
}

impl<M: Deref<Target = TopicModel>> Inference<M> {
    /// Prepares a model.
    ///
    /// # Errors
    /// [`InferenceError`], if the model has no topics or too many for the method, if its priors are
    /// invalid, or if an option of the method is out of range.
    pub fn new(model: M, method: Method, seed: u64) -> Result<Self, InferenceError> {
        let topics = model.num_topics();
        super::rt::check_topics(topics)?;
        model.alpha().check(topics)?;
        if let Some(counts) = model.counts() {
            check_beta(counts.beta(), counts.num_words())?;
        }
        let refused =
            |option, value: String, remedy| Err(InferenceError::Option { option, value, remedy });
        let prepared = match method {
            Method::FoldIn { samples: 0, .. } => {
                return refused("samples", "0".to_owned(), "give at least 1");
            }
            Method::Variational { iterations: 0, .. } => {
                return refused("iterations", "0".to_owned(), "give at least 1");
            }
            Method::Variational { tolerance, .. } if tolerance.is_nan() || tolerance < 0.0 => {
                return refused("tolerance", tolerance.to_string(), "give a number of at least 0");
            }
            Method::FoldIn { .. } | Method::Variational { .. } => {
                Prepared::FrozenPhi(FrozenPhi::new(&model))
            }
            Method::Rt { sweeps } => {
                Prepared::Rt(RtLda::with_options(&model, &RtOptions { sweeps, isa: None })?)
            }
        };
        let alpha_sum = model.alpha().sum(topics);
        Ok(Self { model, method, seed, prepared, alpha_sum })
    }

    #[cfg(test)]
    pub(super) fn with_isa(mut self, isa: crate::simd::Isa) -> Self {
        if let Prepared::FrozenPhi(frozen) = &mut self.prepared {
            frozen.isa = isa;
        }
        self
    }

    /// The model.
    pub fn model(&self) -> &TopicModel {
        &self.model
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Memory in bytes, excluding the model.
    pub fn memory(&self) -> usize {
        match &self.prepared {
            Prepared::FrozenPhi(frozen) => frozen.memory(),
            Prepared::Rt(rt) => rt.memory(),
        }
    }

    /// Makes a session that borrows this value, one per thread. [`Session::new`] makes one that owns an
    /// `Arc` of it.
    pub fn session(&self) -> Session<&Self> {
        Session::new(self)
    }

    /// Infers every document of a corpus in the current rayon pool. Word ids of the corpus must be
    /// the model's; [`Translation`](super::Translation) converts them.
    pub fn infer_corpus(&self, corpus: &Corpus) -> Vec<Answer>
    where
        M: Sync,
    {
        let mut answers = Vec::new();
        self.infer_documents(corpus, 0..corpus.num_documents(), &mut answers);
        answers
    }

    /// Infers a range of documents of a corpus into reused answers. A large corpus in batches of a
    /// few thousand documents then needs memory for one batch, and the answers' memory is reused.
    /// For kos with K = 1,000 the reuse saved half of the time of one variational iteration, whose
    /// answers list nearly all topics, and a fifteenth of three.
    ///
    /// ```
    /// # use lda_core::Corpus;
    /// # use lda_core::infer::{Inference, Method};
    /// # use lda_core::model::{TopicModel, Weights};
    /// # let weights = Weights::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])?;
    /// # let model = TopicModel::from_weights(weights, 0.1.into());
    /// let corpus = Corpus::from_tokens([vec![0, 0, 1], vec![2, 2], vec![1, 2]])?;
    /// let inference = Inference::new(&model, Method::VARIATIONAL, 0)?;
    /// let mut answers = Vec::new();
    /// for first in (0..corpus.num_documents()).step_by(2) {
    ///     let last = corpus.num_documents().min(first + 2);
    ///     inference.infer_documents(&corpus, first..last, &mut answers);
    ///     for (document, answer) in (first..).zip(&answers) {
    ///         println!("{document}: {:?}", inference.leading(answer));
    ///     }
    /// }
    /// assert_eq!(answers.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If `documents` exceeds the documents of the corpus.
    pub fn infer_documents(
        &self,
        corpus: &Corpus,
        documents: Range<usize>,
        answers: &mut Vec<Answer>,
    ) where
        M: Sync,
    {
        answers.resize_with(documents.len(), Answer::default);
        answers.par_iter_mut().zip(documents).for_each_init(
            || self.session(),
            |session, (answer, d)| session.infer_document_into(corpus.document(d), answer),
        );
    }

    /// Share of `topic`: θ_k = (C_dk + α_k) / (L + ᾱ).
    ///
    /// # Panics
    /// If `topic` is not below K.
    pub fn theta(&self, answer: &Answer, topic: u32) -> f64 {
        let at = answer.counts.binary_search_by_key(&topic, |&(topic, _)| topic);
        self.share(answer, topic, at.map_or(0.0, |at| answer.counts[at].1))
    }

    fn share(&self, answer: &Answer, topic: u32, count: f64) -> f64 {
        let alpha = self.model.alpha().get(topic as usize);
        (count + alpha) / (answer.tokens as f64 + self.alpha_sum)
    }

    /// θ of all K topics; they add up to 1.
    pub fn distribution(&self, answer: &Answer) -> Vec<f64> {
        let mut theta: Vec<f64> = (0..self.model.num_topics() as u32)
            .map(|topic| self.share(answer, topic, 0.0))
            .collect();
        for &(topic, count) in &answer.counts {
            theta[topic as usize] = self.share(answer, topic, count);
        }
        theta
    }

    /// (topic, share) of the topics with tokens, largest first; ties: lower topic first.
    pub fn leading(&self, answer: &Answer) -> Vec<(u32, f64)> {
        let share = |&(topic, count): &(u32, f64)| (topic, self.share(answer, topic, count));
        let mut shares: Vec<(u32, f64)> = answer.counts.iter().map(share).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        shares
    }
}

/// Infers documents one after the other: an [`Inference`] and the scratch memory of one thread, which
/// grows to the largest document so far and never affects an answer.
///
/// `I` is a reference to an [`Inference`], or an `Arc` of one, for a session that is kept or sent to
/// another thread:
///
/// ```
/// use std::sync::Arc;
///
/// use lda_core::infer::{Inference, Method, Session};
/// use lda_core::{Corpus, Lda};
///
/// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "wave"]])?;
/// let model = Lda::topics(2).epochs(20).train(&corpus, ())?.model;
/// let inference = Arc::new(Inference::new(Arc::new(model), Method::FOLD_IN, 0)?);
/// let mut session = Session::new(Arc::clone(&inference));
/// let answer = std::thread::spawn(move || session.infer_words(["leaf", "boat"])).join().unwrap()?;
/// assert_eq!((answer.tokens, answer.unknown), (1, 1));
/// assert_eq!(inference.leading(&answer).len(), answer.counts.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session<I> {
    inference: I,
    words: Vec<u32>,
    /// Numbers of the words of [`infer_words`](Self::infer_words).
    spelled: Vec<u32>,
    fold_in: FoldIn,
    variational: Variational,
    rt: RtScratch,
}

impl<I, M> Session<I>
where
    I: Deref<Target = Inference<M>>,
    M: Deref<Target = TopicModel>,
{
    /// Makes a session.
    pub fn new(inference: I) -> Self {
        Self {
            inference,
            words: Vec::new(),
            spelled: Vec::new(),
            fold_in: FoldIn::default(),
            variational: Variational::default(),
            rt: RtScratch::default(),
        }
    }

    /// The model and method of the session.
    pub fn inference(&self) -> &Inference<M> {
        &self.inference
    }

    /// Infers the topics of a document, given as words in the form that they have in the vocabulary:
    /// [`Tokenizer`](crate::corpus::read::Tokenizer) cuts a text into them by the
    /// [rules](crate::corpus::Vocabulary::tokenizer) of the model. Words that the model does not
    /// [know](TopicModel::knows) are counted and left out.
    ///
    /// # Errors
    /// [`InferenceError::NoVocabulary`].
    pub fn infer_words<S: AsRef<str>>(
        &mut self,
        words: impl IntoIterator<Item = S>,
    ) -> Result<Answer, InferenceError> {
        let mut answer = Answer::default();
        let mut ids = std::mem::take(&mut self.spelled);
        ids.clear();
        let vocabulary = self.inference.model.vocabulary().ok_or(InferenceError::NoVocabulary)?;
        // The last number is no word of any vocabulary.
        ids.extend(words.into_iter().map(|word| vocabulary.id(word.as_ref()).unwrap_or(u32::MAX)));
        self.infer_into(ids.iter().copied(), &mut answer);
        self.spelled = ids;
        Ok(answer)
    }

    /// Infers the topics of a document, given as the words of its tokens. Words that the model does
    /// not [know](TopicModel::knows) are counted and left out; a document without known words gets
    /// the mean of the prior.
    pub fn infer(&mut self, words: impl IntoIterator<Item = u32>) -> Answer {
        let mut answer = Answer::default();
        self.infer_into(words, &mut answer);
        answer
    }

    /// Infers the topics of a document of a corpus over the model's words.
    pub fn infer_document(&mut self, document: Document<'_>) -> Answer {
        let mut answer = Answer::default();
        self.infer_document_into(document, &mut answer);
        answer
    }

    /// As [`infer_document`](Self::infer_document), into a reused answer.
    pub fn infer_document_into(&mut self, document: Document<'_>, answer: &mut Answer) {
        let tokens = |(word, count)| std::iter::repeat_n(word, count as usize);
        self.infer_into(document.iter().flat_map(tokens), answer);
    }

    /// As [`infer`](Self::infer), into a reused answer. Allocates nothing once answer and scratch
    /// have grown.
    pub fn infer_into(&mut self, words: impl IntoIterator<Item = u32>, answer: &mut Answer) {
        self.infer_while(words, answer, || true);
    }

    /// As [`infer_into`](Self::infer_into), but calls `go_on` before each sweep or iteration and
    /// stops if it returns false: for services whose clients may disconnect during a long document.
    /// Returns false if it stopped; the answer is then empty. RT-LDA takes the time of a few sweeps
    /// and does not call `go_on`.
    ///
    /// ```
    /// # use lda_core::infer::{Answer, Inference, Method};
    /// # use lda_core::model::{TopicModel, Weights};
    /// let weights = Weights::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])?;
    /// let model = TopicModel::from_weights(weights, 0.1.into());
    /// let inference = Inference::new(&model, Method::FOLD_IN, 0)?;
    /// let mut sweeps = 0;
    /// let mut answer = Answer::default();
    /// let patient = inference.session().infer_while([0, 2], &mut answer, || {
    ///     sweeps += 1;
    ///     sweeps < 5
    /// });
    /// assert!(!patient && answer == Answer::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn infer_while(
        &mut self,
        words: impl IntoIterator<Item = u32>,
        answer: &mut Answer,
        mut go_on: impl FnMut() -> bool,
    ) -> bool {
        let Self { inference, words: known, fold_in, variational, rt, .. } = self;
        let inference: &Inference<M> = inference;
        answer.counts.clear();
        let frozen = match &inference.prepared {
            Prepared::Rt(ready) => {
                let found = ready.infer(words, rt);
                let counts = found.counts().iter().map(|&(topic, count)| (topic, count as f64));
                answer.counts.extend(counts);
                (answer.tokens, answer.unknown) = (found.num_tokens(), found.num_unknown());
                return true;
            }
            Prepared::FrozenPhi(frozen) => frozen,
        };
        let finished = with_rows!(inference.model.rows(), rows => {
            known.clear();
            answer.unknown = 0;
            for word in words {
                if frozen.knows(&rows, word) {
                    known.push(word);
                } else {
                    answer.unknown += 1;
                }
            }
            // Sorted, so that the answer does not depend on the order of the words.
            known.sort_unstable();
            answer.tokens = known.len() as u64;
            let (go_on, means): (&mut dyn FnMut() -> bool, _) = (&mut go_on, &mut answer.counts);
            let query = Query { frozen, rows: &rows, words: known };
            match inference.method {
                Method::FoldIn { burn_in, samples } => {
                    let mut stream = inference.stream(known).stream();
                    fold_in.run(&query, burn_in, samples, &mut stream, go_on, means)
                }
                Method::Variational { iterations, tolerance } => {
                    variational.run(&query, iterations, tolerance, go_on, means)
                }
                Method::Rt { .. } => unreachable!("RT-LDA returned above"),
            }
        });
        if !finished {
            answer.counts.clear();
            (answer.tokens, answer.unknown) = (0, 0);
        }
        finished
    }

    /// Memory of the scratch in bytes.
    pub fn memory(&self) -> usize {
        4 * (self.words.capacity() + self.spelled.capacity())
            + self.fold_in.memory()
            + self.variational.memory()
            + self.rt.memory()
    }
}

impl<M> Inference<M> {
    /// Random stream of a document, a function of its sorted words.
    fn stream(&self, words: &[u32]) -> StreamKey {
        let block =
            words.iter().fold(words.len() as u64, |hash, &word| mix(hash ^ u64::from(word)));
        StreamKey { seed: self.seed, epoch: 0, pass: 0, block, purpose: Purpose::Infer }
    }
}
