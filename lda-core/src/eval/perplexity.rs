//! Held-out perplexity by document completion.
//!
//! Measures how well a model predicts the second half of a document from its first half. Each
//! document is shuffled by the seed and the document's number; the first half is *folded in*, that
//! is, topics are sampled for its tokens with φ fixed, and the second half is predicted:
//!
//! ```text
//! p(w) = 1/S Σ_s Σ_k φ_kw (C^s_dk + α_k) / (L_fold + ᾱ)        averaged over S samples, then
//! perplexity = exp(− Σ log p(w) / tokens)                       the logarithm
//! ```
//!
//! Rosen-Zvi et al. 2004; Wallach et al. 2009, section 5.2, there "document completion". Averaging
//! probabilities instead of their logarithms makes it an estimate of p(second | first); by Jensen's
//! inequality it is slightly pessimistic for small S. The value depends on φ and α alone and not on
//! the sampler that found them. The split depends on the seed, the document's number and its known
//! words alone, so models over one vocabulary are evaluated on the same tokens.
//!
//! Cost: O(K_w + K_d + log K) per token and sweep, documents in parallel in the current rayon pool;
//! memory: 4 bytes per topic and thread, and 8 bytes per token of the documents in progress. The
//! value has the same bits for any number of threads.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cancelled::Cancelled;
use super::fold_in::{FoldIn, Model};
use super::phi::Phi;
use super::sum::{Sum, map_chunks_with};
use crate::corpus::{Corpus, Document};
use crate::prior::{Alpha, PriorError};
use crate::random::{Purpose, StreamKey, Xoshiro256PlusPlus};

/// Largest number of tokens of a document; each token takes 8 bytes during the evaluation.
pub(super) const LONGEST_DOCUMENT: u64 = 1 << 28;

/// Documents per unit of work. Fixed, since the chunks decide the order of additions.
const DOCUMENTS_PER_CHUNK: usize = 16;

/// Options of document completion. Every field affects the value and should be reported with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompletionOptions {
    /// Seed of the split and of the fold-in.
    pub seed: u64,
    /// Sweeps over the first half before the first sample.
    pub burn_in: u32,
    /// Number of samples S, one per sweep; at least 1.
    pub samples: u32,
}

impl Default for CompletionOptions {
    fn default() -> Self {
        Self { seed: 0, burn_in: 20, samples: 30 }
    }
}

/// Error of held-out evaluation.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// α is invalid for the model's topics.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// `samples` is 0.
    #[error("samples is 0: give at least 1")]
    NoSamples,
    /// A document is longer than 2²⁸ tokens.
    #[error("document {document} has {tokens} tokens, more than {LONGEST_DOCUMENT}: split it")]
    DocumentTooLong {
        /// Number of the document, from 0.
        document: usize,
        /// Number of tokens of the document.
        tokens: u64,
    },
    /// No document has two tokens of known words.
    #[error(
        "none of {documents} documents has two known tokens ({unknown_tokens} tokens are unknown): \
         build the corpus over the model's vocabulary"
    )]
    NothingToPredict {
        /// Number of documents.
        documents: u64,
        /// Number of tokens of unknown words.
        unknown_tokens: u64,
    },
    /// The caller has cancelled the evaluation.
    #[error("the evaluation was cancelled")]
    Cancelled,
}

/// Result of document completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DocumentCompletion {
    /// Σ log p(w) over the predicted tokens, in nats.
    pub log_probability: f64,
    /// Tokens predicted: the second halves.
    pub tokens: u64,
    /// Tokens folded in: the first halves, which are the longer ones if lengths are odd.
    pub folded_tokens: u64,
    /// Number of evaluated documents.
    pub documents: u64,
    /// Number of documents left out because they have fewer than 2 known tokens.
    pub skipped_documents: u64,
    /// Number of tokens dropped, including those of skipped documents: tokens of words that the
    /// model does not [know](Phi::knows).
    pub unknown_tokens: u64,
}

impl DocumentCompletion {
    /// exp(− log probability / tokens): the number of equally likely words that would be as hard to
    /// guess. Lower is better; the minimum is 1.
    pub fn perplexity(&self) -> f64 {
        (-self.log_probability / self.tokens as f64).exp()
    }
}

/// Estimates the held-out perplexity of a corpus by document completion.
///
/// Word ids of the corpus are those of φ; words that φ does not [know](Phi::knows) are
/// left out.
///
/// # Errors
/// [`CompletionError`], if α is invalid for φ's topics, `samples` is 0, a document is
/// longer than 2²⁸ tokens, or no document has two known tokens.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::eval::{CompletionOptions, Phi, held_out_perplexity};
/// use lda_core::prior::Alpha;
///
/// // Two topics that share no word: half of a document determines the topic of the rest.
/// let phi = Phi::from_rows(&[[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])?;
/// let corpus = Corpus::from_tokens([[0, 1, 0, 0, 1, 1], [2, 3, 3, 2, 2, 3]])?;
/// let options = CompletionOptions::default();
/// let found = held_out_perplexity(&corpus, &phi, &Alpha::Symmetric(0.001), &options)?;
/// assert_eq!(found.tokens, 6);
/// assert!((found.perplexity() - 2.0).abs() < 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn held_out_perplexity(
    corpus: &Corpus,
    phi: &Phi,
    alpha: &Alpha,
    options: &CompletionOptions,
) -> Result<DocumentCompletion, CompletionError> {
    held_out_perplexity_while(corpus, phi, alpha, options, &|| true)
}

/// [`held_out_perplexity`], while `go_on` is true, which is asked before each document.
///
/// # Errors
/// As `held_out_perplexity`, and [`CompletionError::Cancelled`].
pub fn held_out_perplexity_while(
    corpus: &Corpus,
    phi: &Phi,
    alpha: &Alpha,
    options: &CompletionOptions,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<DocumentCompletion, CompletionError> {
    let mut parts = CompletionOfParts::new(phi, alpha, options)?;
    let cancelled = Cancelled::new(go_on);
    parts.add(corpus, &cancelled)?;
    if cancelled.was() {
        return Err(CompletionError::Cancelled);
    }
    parts.finish()
}

/// Document completion of documents that are added part by part.
pub(crate) struct CompletionOfParts<'a> {
    model: Model<'a>,
    options: &'a CompletionOptions,
    documents: usize,
    all: Part,
}

impl<'a> CompletionOfParts<'a> {
    /// Completion of no documents, before the first ones are added.
    pub(crate) fn new(
        phi: &'a Phi,
        alpha: &'a Alpha,
        options: &'a CompletionOptions,
    ) -> Result<Self, CompletionError> {
        alpha.check(phi.num_topics())?;
        if options.samples == 0 {
            return Err(CompletionError::NoSamples);
        }
        Ok(Self { model: Model::new(phi, alpha), options, documents: 0, all: Part::default() })
    }

    /// Adds the next documents, or some of them if `cancelled`.
    pub(crate) fn add(
        &mut self,
        corpus: &Corpus,
        cancelled: &Cancelled<'_>,
    ) -> Result<(), CompletionError> {
        let (model, options, first) = (&self.model, self.options, self.documents);
        for (d, document) in corpus.documents().enumerate() {
            let (document, tokens) = (first + d, document.len());
            if tokens > LONGEST_DOCUMENT {
                return Err(CompletionError::DocumentTooLong { document, tokens });
            }
        }
        let chunks = map_chunks_with(
            corpus.num_documents(),
            DOCUMENTS_PER_CHUNK,
            &|| FoldIn::new(model.phi.num_topics()),
            &|fold_in, documents| {
                let mut part = Part::default();
                for d in documents.take_while(|_| !cancelled.now()) {
                    part.complete(model, (first + d, corpus.document(d)), options, fold_in);
                }
                part
            },
        );
        chunks.iter().for_each(|chunk| self.all.add(chunk));
        self.documents += corpus.num_documents();
        Ok(())
    }

    /// Result of all documents that were added.
    pub(crate) fn finish(self) -> Result<DocumentCompletion, CompletionError> {
        let Part { sum, found } = self.all;
        if found.documents == 0 {
            let (documents, unknown_tokens) = (self.documents as u64, found.unknown_tokens);
            return Err(CompletionError::NothingToPredict { documents, unknown_tokens });
        }
        Ok(DocumentCompletion { log_probability: sum.value(), ..found })
    }
}

/// Result of a range of documents.
#[derive(Default)]
struct Part {
    /// Σ log p(w).
    sum: Sum,
    /// Everything else.
    found: DocumentCompletion,
}

impl Part {
    /// Adds the result of the next documents.
    fn add(&mut self, other: &Self) {
        self.sum.add(other.sum.value());
        let (all, other) = (&mut self.found, &other.found);
        all.tokens += other.tokens;
        all.folded_tokens += other.folded_tokens;
        all.documents += other.documents;
        all.skipped_documents += other.skipped_documents;
        all.unknown_tokens += other.unknown_tokens;
    }

    /// Adds one document and its number.
    fn complete(
        &mut self,
        model: &Model<'_>,
        (id, document): (usize, Document<'_>),
        options: &CompletionOptions,
        fold_in: &mut FoldIn,
    ) {
        let Self { sum, found } = self;
        let (mut tokens, unknown) = known_tokens(document, model.phi);
        found.unknown_tokens += unknown;
        if tokens.len() < 2 {
            found.skipped_documents += 1;
            return;
        }
        let stream = |pass| {
            let purpose = Purpose::Evaluate;
            StreamKey { seed: options.seed, epoch: 0, pass, block: id as u64, purpose }.stream()
        };
        let (first, second) = split(&mut tokens, &mut stream(0));
        found.documents += 1;
        found.folded_tokens += first.len() as u64;
        found.tokens += second.len() as u64;
        second.sort_unstable();
        log_probability(fold_in, model, (first, second), options, &mut stream(1), sum);
    }
}

/// Tokens of known words, ascending by word, and the number of other tokens.
pub(super) fn known_tokens(document: Document<'_>, phi: &Phi) -> (Vec<u32>, u64) {
    let (mut tokens, mut unknown) = (Vec::new(), 0);
    for (&word, &count) in document.words.iter().zip(document.counts) {
        if phi.knows(word) {
            tokens.resize(tokens.len() + count as usize, word);
        } else {
            unknown += u64::from(count);
        }
    }
    (tokens, unknown)
}

/// Shuffles at most [`LONGEST_DOCUMENT`] tokens (Fisher-Yates).
pub(super) fn shuffle(tokens: &mut [u32], stream: &mut Xoshiro256PlusPlus) {
    for last in (1..tokens.len()).rev() {
        tokens.swap(last, stream.below(last as u32 + 1) as usize);
    }
}

/// Shuffles and halves; the first half is the longer one if the number is odd.
fn split<'a>(
    tokens: &'a mut [u32],
    stream: &mut Xoshiro256PlusPlus,
) -> (&'a mut [u32], &'a mut [u32]) {
    shuffle(tokens, stream);
    tokens.split_at_mut(tokens.len().div_ceil(2))
}

/// Adds Σ log p(w) over the second half, which is sorted, given the first one.
fn log_probability(
    fold_in: &mut FoldIn,
    model: &Model<'_>,
    (first, second): (&[u32], &[u32]),
    options: &CompletionOptions,
    stream: &mut Xoshiro256PlusPlus,
    sum: &mut Sum,
) {
    let words: Vec<&[u32]> = second.chunk_by(|a, b| a == b).collect();
    let mut probabilities = vec![0.0; words.len()];
    fold_in.start(model, first, stream);
    for _ in 0..options.burn_in {
        fold_in.sweep(model, first, stream);
    }
    for _ in 0..options.samples {
        fold_in.sweep(model, first, stream);
        let shared = fold_in.floor_sum(model);
        for (probability, word) in probabilities.iter_mut().zip(&words) {
            *probability += fold_in.probability(model, word[0], shared);
        }
    }
    for (probability, word) in probabilities.into_iter().zip(words) {
        sum.add((probability / f64::from(options.samples)).ln() * word.len() as f64);
    }
    fold_in.clear();
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::counts::{VisitRow, WordCounts};

    fn golden_phi() -> Phi {
        Phi::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).unwrap()
    }

    fn golden_alpha() -> Alpha {
        Alpha::PerTopic(vec![0.5, 1.5])
    }

    fn stream(seed: u64) -> Xoshiro256PlusPlus {
        let purpose = Purpose::Evaluate;
        StreamKey { seed, epoch: 0, pass: 1, block: 0, purpose }.stream()
    }

    /// The law of the topics of `tokens` given φ and α, by enumeration; topic of token j is digit j
    /// to base K, the last token's the lowest.
    fn enumerate(phi: &Phi, alpha: &Alpha, tokens: &[u32]) -> Vec<f64> {
        let k = phi.num_topics();
        let weight = |mut state: usize| {
            let mut counts = vec![0.0; k];
            let mut weight = 1.0;
            for &word in tokens.iter().rev() {
                let topic = state % k;
                state /= k;
                weight *= (counts[topic] + alpha.get(topic)) * phi.probability(topic, word);
                counts[topic] += 1.0;
            }
            weight
        };
        let weights: Vec<f64> = (0..k.pow(tokens.len() as u32)).map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }

    fn state(topics: &[u32], k: usize) -> usize {
        topics.iter().fold(0, |state, &topic| state * k + topic as usize)
    }

    #[test]
    fn prediction_averaged_over_the_posterior_is_the_golden_value() {
        let (phi, alpha) = (golden_phi(), golden_alpha());
        let model = Model::new(&phi, &alpha);
        let mut average = 0.0;
        for (state, weight) in enumerate(&phi, &alpha, &[0, 2]).into_iter().enumerate() {
            let mut fold_in = FoldIn::new(2);
            for topic in [state as u32 / 2, state as u32 % 2] {
                fold_in.topics.push(topic);
                fold_in.add(topic);
            }
            let floor_sum = fold_in.floor_sum(&model);
            average += weight * fold_in.probability(&model, 1, floor_sum);
        }
        assert!((average - 0.2696875).abs() < 1e-12, "{average}");
    }

    #[test]
    fn sampled_prediction_meets_the_golden_value() {
        let (phi, alpha) = (golden_phi(), golden_alpha());
        let options = CompletionOptions { seed: 0, burn_in: 10, samples: 200_000 };
        let mut sum = Sum::default();
        let mut fold_in = FoldIn::new(2);
        let model = Model::new(&phi, &alpha);
        log_probability(&mut fold_in, &model, (&[0, 2], &[1]), &options, &mut stream(3), &mut sum);
        // A sample's deviation is below 0.025 and samples are nearly independent: 10 errors.
        let found = sum.value().exp();
        assert!((found - 0.2696875).abs() < 5e-4, "{found}");
    }

    /// Four topics over counts with zeros, so that each part of the mass is drawn from.
    struct Words;

    impl WordCounts for Words {
        fn num_topics(&self) -> usize {
            4
        }
        fn num_words(&self) -> usize {
            3
        }
        fn topic_total(&self, topic: usize) -> u64 {
            [6, 0, 3, 4][topic]
        }
        fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
            let rows: [&[(u32, u32)]; 3] = [&[(0, 5), (2, 1)], &[(3, 4)], &[(2, 2), (0, 1)]];
            for word in words {
                visit(word, rows[word]);
            }
        }
    }

    #[test]
    fn fold_in_visits_states_as_often_as_their_posterior() {
        let phi = Phi::from_counts(&Words, 0.8).unwrap();
        let alpha = Alpha::PerTopic(vec![0.3, 0.9, 0.2, 0.6]);
        let tokens = [0, 1, 0];
        let expected = enumerate(&phi, &alpha, &tokens);
        let model = Model::new(&phi, &alpha);
        let mut fold_in = FoldIn::new(4);
        let mut draws = stream(5);
        let repeats = 200_000;
        let mut seen = vec![0.0; expected.len()];
        fold_in.start(&model, &tokens, &mut draws);
        for _ in 0..repeats {
            // Two sweeps per sample leave little correlation.
            fold_in.sweep(&model, &tokens, &mut draws);
            fold_in.sweep(&model, &tokens, &mut draws);
            seen[state(&fold_in.topics, 4)] += 1.0;
        }
        for (state, (seen, p)) in seen.iter().zip(&expected).enumerate() {
            let error = (p * (1.0 - p) / f64::from(repeats)).sqrt();
            let found = seen / f64::from(repeats);
            assert!((found - p).abs() < 7.0 * error, "state {state}: {found}, not {p}");
        }
    }

    #[test]
    fn draws_reach_the_edges_of_the_mass_but_no_impossible_topic() {
        let phi = Phi::from_rows(&[[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]).unwrap();
        let alpha = Alpha::Symmetric(0.1);
        let model = Model::new(&phi, &alpha);
        let mut fold_in = FoldIn::new(3);
        fold_in.add(0);
        for unit in [0.0, 0.5, 1.0f64.next_down()] {
            assert_eq!(fold_in.draw(&model, 0, unit), 1, "at {unit}");
        }
        assert_eq!(fold_in.draw(&model, 1, 0.0), 0);
        assert_eq!(fold_in.draw(&model, 1, 1.0f64.next_down()), 2);

        let phi = Phi::from_counts(&Words, 0.8).unwrap();
        let model = Model::new(&phi, &alpha);
        assert_eq!(FoldIn::new(4).draw(&model, 1, 1.0f64.next_down()), 3);
    }

    #[test]
    fn a_split_holds_every_token_once() {
        for length in 2..40 {
            let mut tokens: Vec<u32> = (0..length).collect();
            let (first, second) = split(&mut tokens, &mut stream(9));
            assert_eq!(first.len() - second.len(), length as usize % 2);
            let mut all = [first, second].concat();
            all.sort_unstable();
            assert_eq!(all, (0..length).collect::<Vec<_>>());
        }
    }

    fn corpus(documents: usize) -> Corpus {
        let document = |d: usize| (0..d % 23).map(move |i| ((d * 7 + i * i) % 6) as u32);
        Corpus::from_tokens((0..documents).map(|d| document(d).collect::<Vec<_>>())).unwrap()
    }

    #[test]
    fn one_topic_is_a_unigram_model() {
        let probabilities = [0.3, 0.25, 0.2, 0.15, 0.06, 0.04];
        let phi = Phi::from_rows(&[probabilities]).unwrap();
        let corpus = Corpus::from_pairs([[(2, 40)]]).unwrap();
        let options = CompletionOptions { burn_in: 0, samples: 1, seed: 1 };
        let found = held_out_perplexity(&corpus, &phi, &Alpha::Symmetric(2.0), &options).unwrap();
        assert_eq!((found.tokens, found.folded_tokens), (20, 20));
        assert!((found.perplexity() - 5.0).abs() < 1e-12);
    }

    #[test]
    fn uniform_topics_have_the_vocabulary_as_perplexity() {
        let phi = Phi::from_rows(&[[1.0 / 6.0; 6]; 5]).unwrap();
        let options = CompletionOptions::default();
        let found =
            held_out_perplexity(&corpus(300), &phi, &Alpha::Symmetric(0.1), &options).unwrap();
        assert!((found.perplexity() - 6.0).abs() < 1e-10, "{}", found.perplexity());
    }

    #[test]
    fn threads_do_not_change_a_bit_and_seeds_do() {
        let corpus = corpus(300);
        let phi = Phi::from_rows(&[[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
            .unwrap();
        let with = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let options = CompletionOptions { seed, ..CompletionOptions::default() };
            pool.install(|| {
                held_out_perplexity(&corpus, &phi, &Alpha::Symmetric(0.2), &options).unwrap()
            })
        };
        let one = with(1, 0);
        for threads in [2, 3, 7] {
            assert_eq!(one.log_probability.to_bits(), with(threads, 0).log_probability.to_bits());
        }
        assert_ne!(one.log_probability, with(1, 1).log_probability);
    }

    #[test]
    fn unknown_words_and_short_documents_are_counted() {
        // Word 1 is impossible, word 3 beyond the vocabulary.
        let phi = Phi::from_rows(&[[0.5, 0.0, 0.5]]).unwrap();
        let corpus =
            Corpus::from_tokens([vec![0, 1, 3, 3, 2, 0], vec![0, 1], vec![], vec![2, 2]]).unwrap();
        let options = CompletionOptions::default();
        let alpha = Alpha::Symmetric(0.1);
        let found = held_out_perplexity(&corpus, &phi, &alpha, &options).unwrap();
        let counts = (found.tokens, found.folded_tokens, found.unknown_tokens);
        assert_eq!(counts, (2, 3, 4));
        assert_eq!((found.documents, found.skipped_documents), (2, 2));
        assert!((found.perplexity() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_estimated_is_refused() {
        let phi = golden_phi();
        let short = Corpus::from_tokens([[0], [9]]).unwrap();
        let run = |corpus: &Corpus, alpha: f64, samples| {
            let options = CompletionOptions { samples, ..CompletionOptions::default() };
            held_out_perplexity(corpus, &phi, &Alpha::Symmetric(alpha), &options).unwrap_err()
        };
        assert_eq!(
            run(&short, 0.1, 1),
            CompletionError::NothingToPredict { documents: 2, unknown_tokens: 1 }
        );
        assert_eq!(run(&short, 0.1, 0), CompletionError::NoSamples);
        assert!(matches!(run(&short, 0.0, 1), CompletionError::Prior(_)));
        let long = Corpus::from_pairs([[(0, 1 << 29)]]).unwrap();
        assert_eq!(
            run(&long, 0.1, 1),
            CompletionError::DocumentTooLong { document: 0, tokens: 1 << 29 }
        );
    }

    #[test]
    fn a_cancelled_evaluation_is_an_error() {
        use std::sync::atomic::{AtomicU32, Ordering};

        let (corpus, phi) = (corpus(300), Phi::from_rows(&[[1.0 / 6.0; 6]; 5]).unwrap());
        let (alpha, options) = (Alpha::Symmetric(0.1), CompletionOptions::default());
        let asked = AtomicU32::new(0);
        let most = |documents: u32| {
            asked.store(0, Ordering::Relaxed);
            let go_on = || asked.fetch_add(1, Ordering::Relaxed) < documents;
            held_out_perplexity_while(&corpus, &phi, &alpha, &options, &go_on)
        };
        let whole = held_out_perplexity(&corpus, &phi, &alpha, &options);
        assert_eq!(most(300), whole);
        assert!(whole.is_ok());
        for documents in [0, 1, 17, 299] {
            assert_eq!(most(documents), Err(CompletionError::Cancelled), "{documents}");
        }
        // The first end counts, whatever is said later.
        asked.store(0, Ordering::Relaxed);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) != 150;
        let found = held_out_perplexity_while(&corpus, &phi, &alpha, &options, &go_on);
        assert_eq!(found, Err(CompletionError::Cancelled));
    }
}
