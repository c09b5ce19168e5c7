//! The face of inference: a model made ready for a method, sessions, answers.

use std::ops::{Deref, Range};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::fold_in::FoldIn;
use super::frozen_phi::FrozenPhi;
use super::rt::{RtLda, RtLdaError, RtOptions, RtScratch};
use super::variational::Variational;
use crate::corpus::{Corpus, Document};
use crate::model::{TopicModel, with_rows};
use crate::prior::{PriorError, check_beta};
use crate::random::{Purpose, StreamKey, mix};

/// How topics of a new document are found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", tag = "method")]
#[non_exhaustive]
pub enum Method {
    /// Gibbs sampling: the mean of `samples` sweeps after `burn_in`. Shares are the posterior's, up
    /// to chance.
    FoldIn {
        /// Sweeps before the first sample.
        burn_in: u32,
        /// Samples, at least 1.
        samples: u32,
    },
    /// The most probable topic of each token: quickest, and shares lean to the leading topic
    /// ([`RtLda`]).
    Rt {
        /// Sweeps at most.
        sweeps: u32,
    },
    /// The variational E-step: no chance in it, O(K) an iteration.
    Variational {
        /// Iterations at most.
        iterations: u32,
        /// Ends when shares move by less than this, in all.
        tolerance: f64,
    },
}

impl Method {
    /// Gibbs sampling, 10 sweeps and 20 samples.
    pub const FOLD_IN: Self = Self::FoldIn { burn_in: 10, samples: 20 };
    /// RT-LDA, 5 sweeps at most.
    pub const RT: Self = Self::Rt { sweeps: 5 };
    /// Variational, to a thousandth in 100 iterations at most.
    pub const VARIATIONAL: Self = Self::Variational { iterations: 100, tolerance: 1e-3 };

    /// Name as it stands in options and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::FoldIn { .. } => "fold-in",
            Self::Rt { .. } => "rt",
            Self::Variational { .. } => "variational",
        }
    }
}

/// Why a model cannot be asked so.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InferenceError {
    /// The model is no model for inference.
    #[error(transparent)]
    Model(#[from] RtLdaError),
    /// An option makes no sense.
    #[error("{option} is {value}: {remedy}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Its value.
        value: String,
        /// What to give.
        remedy: &'static str,
    },
}

impl From<PriorError> for InferenceError {
    fn from(error: PriorError) -> Self {
        Self::Model(error.into())
    }
}

/// A model and a method, made ready: O(K + V) for fold-in and variational, which read a mapped
/// model where it lies; all of the model is copied for RT-LDA.
///
/// Threads share one, each with a [`Session`]. `M` is a reference to a model, or an `Arc` of one.
///
/// An answer follows from model, method, seed and the words of the document alone: it is the same
/// whatever else is asked, on any number of threads, and, but for RT-LDA, in whatever order the
/// words come.
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

/// Topics of one document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// (topic, tokens of it that are expected), topics ascending; they add up to `tokens`.
    pub counts: Vec<(u32, f64)>,
    /// Tokens of words that the model knows.
    pub tokens: u64,
    /// Tokens of words that it does not, which were left out.
    pub unknown: u64,
}

impl<M: Deref<Target = TopicModel>> Inference<M> {
    /// Makes a model ready.
    ///
    /// # Errors
    /// [`InferenceError`], if the model has no topics or more than a method can do, if its priors
    /// are none, or if an option of the method makes no sense.
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
                return refused("tolerance", tolerance.to_string(), "give a number, 0 at least");
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

    /// Bytes held beside the model.
    pub fn memory(&self) -> usize {
        match &self.prepared {
            Prepared::FrozenPhi(frozen) => frozen.memory(),
            Prepared::Rt(rt) => rt.memory(),
        }
    }

    /// A thread's own.
    pub fn session(&self) -> Session<'_, M> {
        Session {
            inference: self,
            words: Vec::new(),
            fold_in: FoldIn::default(),
            variational: Variational::default(),
            rt: RtScratch::default(),
        }
    }

    /// Every document of a corpus over the model's words, in the current rayon pool. Its word ids
    /// are taken for the model's; [`Translation`](super::Translation) makes them so.
    pub fn infer_corpus(&self, corpus: &Corpus) -> Vec<Answer>
    where
        M: Sync,
    {
        let mut answers = Vec::new();
        self.infer_documents(corpus, 0..corpus.num_documents(), &mut answers);
        answers
    }

    /// Some documents of a corpus, into answers that may have been used before: who takes a large
    /// corpus a few thousand documents at a time holds no more answers than that, and once these
    /// have grown their memory is used again. Of kos with K = 1,000 that was half of the time of
    /// one variational iteration, whose answers list nearly all topics, and a fifteenth of three.
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
    /// If a document is not below the corpus' number.
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

    /// θ_k = (C_dk + α_k) / (L + ᾱ), the share of `topic`.
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

    /// (topic, share) of the topics that have tokens, largest first, lower topic first of equals.
    pub fn leading(&self, answer: &Answer) -> Vec<(u32, f64)> {
        let share = |&(topic, count): &(u32, f64)| (topic, self.share(answer, topic, count));
        let mut shares: Vec<(u32, f64)> = answer.counts.iter().map(share).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        shares
    }
}

/// One thread's scratch: it grows to the largest document it has seen and never affects an answer.
#[derive(Debug)]
pub struct Session<'a, M> {
    inference: &'a Inference<M>,
    words: Vec<u32>,
    fold_in: FoldIn,
    variational: Variational,
    rt: RtScratch,
}

impl<M: Deref<Target = TopicModel>> Session<'_, M> {
    /// Topics of a document, given as the words of its tokens. Words that are not the model's, or
    /// that no topic can say, are counted and left out; a document of no known word has the prior's
    /// mean.
    pub fn infer(&mut self, words: impl IntoIterator<Item = u32>) -> Answer {
        let mut answer = Answer::default();
        self.infer_into(words, &mut answer);
        answer
    }

    /// Topics of a document of a corpus over the model's words.
    pub fn infer_document(&mut self, document: Document<'_>) -> Answer {
        let mut answer = Answer::default();
        self.infer_document_into(document, &mut answer);
        answer
    }

    /// The same into an answer that was used before.
    pub fn infer_document_into(&mut self, document: Document<'_>, answer: &mut Answer) {
        let tokens = |(word, count)| std::iter::repeat_n(word, count as usize);
        self.infer_into(document.iter().flat_map(tokens), answer);
    }

    /// The same into an answer that was used before: once it and scratch have grown, nothing is
    /// allocated.
    pub fn infer_into(&mut self, words: impl IntoIterator<Item = u32>, answer: &mut Answer) {
        self.infer_while(words, answer, || true);
    }

    /// The same as long as `go_on`, asked before each sweep or iteration, has it: for services
    /// whose clients may leave while a long document is worked on. False if it was given up; the
    /// answer is then empty. RT-LDA, which is done in the time of a few sweeps, does not ask.
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
        let Self { inference, words: known, fold_in, variational, rt } = self;
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
                if frozen.supports(&rows, word) {
                    known.push(word);
                } else {
                    answer.unknown += 1;
                }
            }
            known.sort_unstable();
            answer.tokens = known.len() as u64;
            let (go_on, means): (&mut dyn FnMut() -> bool, _) = (&mut go_on, &mut answer.counts);
            match inference.method {
                Method::FoldIn { burn_in, samples } => {
                    let mut stream = inference.stream(known).stream();
                    fold_in.run(frozen, &rows, known, burn_in, samples, &mut stream, go_on, means)
                }
                Method::Variational { iterations, tolerance } => {
                    variational.run(frozen, &rows, known, iterations, tolerance, go_on, means)
                }
                Method::Rt { .. } => unreachable!("it has tables of its own"),
            }
        });
        if !finished {
            answer.counts.clear();
            (answer.tokens, answer.unknown) = (0, 0);
        }
        finished
    }

    /// Bytes of scratch held by now.
    pub fn memory(&self) -> usize {
        4 * self.words.capacity()
            + self.fold_in.memory()
            + self.variational.memory()
            + self.rt.memory()
    }
}

impl<M> Inference<M> {
    /// The stream of a document, by what is in it.
    fn stream(&self, words: &[u32]) -> StreamKey {
        let block =
            words.iter().fold(words.len() as u64, |hash, &word| mix(hash ^ u64::from(word)));
        StreamKey { seed: self.seed, epoch: 0, pass: 0, block, purpose: Purpose::Infer }
    }
}
