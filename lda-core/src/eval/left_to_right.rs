//! Probability of held-out documents by the left-to-right estimator.
//!
//! Wallach, Murray, Salakhutdinov and Mimno 2009, algorithm 3 (Wallach 2008, section 4.2.4): a
//! document is read token by token, and before each token R particles resample the topics of the
//! tokens before it:
//!
//! ```text
//! for n = 1 … N, particle r:   for n' < n: z_n' drawn ∝ φ_kw (C_k¬n' + α_k), counts over positions < n
//!                              p_n^r = Σ_k φ_{k,w_n} (C_{k,<n} + α_k) / (n − 1 + ᾱ);   z_n drawn
//! log p(w) ≈ Σ_n log ( 1/R Σ_r p_n^r )
//! ```
//!
//! The estimate of p is unbiased; that of log p is slightly low, less so with more particles.
//! Unlike [document completion](super::perplexity) it predicts all tokens of a document; it costs
//! O(N²) per particle. Each document's tokens are read in a random order; documents run in the
//! current rayon pool, and the value has the same bits for any number of threads.

use serde::{Deserialize, Serialize};

use super::cancelled::Cancelled;
use super::fold_in::{FoldIn, Model};
use super::perplexity::{CompletionError, LONGEST_DOCUMENT, known_tokens, shuffle};
use super::phi::Phi;
use super::sum::{Sum, map_chunks_with};
use crate::corpus::Corpus;
use crate::prior::Alpha;
use crate::random::{Purpose, StreamKey};

/// Options of the left-to-right estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftToRightOptions {
    /// Seed of orders and particles.
    pub seed: u64,
    /// Particles R, at least 1.
    pub particles: u32,
}

impl Default for LeftToRightOptions {
    fn default() -> Self {
        Self { seed: 0, particles: 10 }
    }
}

/// Result of the left-to-right estimator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftToRight {
    /// Σ log p over documents, in nats.
    pub log_probability: f64,
    /// Tokens of known words.
    pub tokens: u64,
    /// Tokens of unknown words, which were left out.
    pub unknown_tokens: u64,
}

impl LeftToRight {
    /// exp(− log probability / tokens). Lower is better. Not comparable with the perplexity of
    /// document completion.
    pub fn perplexity(&self) -> f64 {
        (-self.log_probability / self.tokens as f64).exp()
    }
}

/// Estimates the log probability of a corpus, document by document.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::eval::{LeftToRightOptions, Phi, left_to_right};
/// use lda_core::prior::Alpha;
///
/// // One topic: a document's probability is the product of its words'.
/// let phi = Phi::from_rows(&[[0.5, 0.25, 0.25]])?;
/// let corpus = Corpus::from_tokens([[0, 0, 1]])?;
/// let found = left_to_right(&corpus, &phi, &Alpha::Symmetric(0.1), &LeftToRightOptions::default())?;
/// assert!((found.log_probability - (0.5f64 * 0.5 * 0.25).ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`CompletionError`], if α is invalid for φ's topics, `particles` is 0, a document is
/// longer than 2²⁸ tokens, or no document has a known token.
pub fn left_to_right(
    corpus: &Corpus,
    phi: &Phi,
    alpha: &Alpha,
    options: &LeftToRightOptions,
) -> Result<LeftToRight, CompletionError> {
    left_to_right_while(corpus, phi, alpha, options, &|| true)
}

/// [`left_to_right`], while `go_on` is true, which is asked before each particle of a document.
///
/// # Errors
/// As `left_to_right`, and [`CompletionError::Cancelled`].
pub fn left_to_right_while(
    corpus: &Corpus,
    phi: &Phi,
    alpha: &Alpha,
    options: &LeftToRightOptions,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<LeftToRight, CompletionError> {
    alpha.check(phi.num_topics())?;
    if options.particles == 0 {
        return Err(CompletionError::NoSamples);
    }
    for (document, tokens) in (0..).zip(corpus.documents().map(|document| document.len())) {
        if tokens > LONGEST_DOCUMENT {
            return Err(CompletionError::DocumentTooLong { document, tokens });
        }
    }
    let (model, cancelled) = (Model::new(phi, alpha), Cancelled::new(go_on));
    let documents = map_chunks_with(
        corpus.num_documents(),
        1,
        &|| FoldIn::new(phi.num_topics()),
        &|fold_in, documents| {
            let d = documents.start;
            let (mut tokens, unknown) = known_tokens(corpus.document(d), phi);
            let stream = |pass| {
                let purpose = Purpose::Evaluate;
                StreamKey { seed: options.seed, epoch: 1, pass, block: d as u64, purpose }.stream()
            };
            shuffle(&mut tokens, &mut stream(0));
            let mut sums = vec![0.0; tokens.len()];
            for particle in (1..=options.particles).take_while(|_| !cancelled.now()) {
                let stream = &mut stream(particle);
                for (n, sum) in sums.iter_mut().enumerate() {
                    fold_in.sweep(&model, &tokens[..n], stream);
                    let floor_sum = fold_in.floor_sum(&model);
                    *sum += fold_in.probability(&model, tokens[n], floor_sum);
                    fold_in.start(&model, &tokens[n..=n], stream);
                }
                fold_in.clear();
            }
            let mut log = Sum::default();
            sums.iter().for_each(|sum| log.add((sum / f64::from(options.particles)).ln()));
            (log.value(), tokens.len() as u64, unknown)
        },
    );
    if cancelled.was() {
        return Err(CompletionError::Cancelled);
    }
    let (mut sum, mut found) = (Sum::default(), LeftToRight::default());
    for (log, tokens, unknown) in documents {
        sum.add(log);
        found.tokens += tokens;
        found.unknown_tokens += unknown;
    }
    if found.tokens == 0 {
        let (documents, unknown_tokens) = (corpus.num_documents() as u64, found.unknown_tokens);
        return Err(CompletionError::NothingToPredict { documents, unknown_tokens });
    }
    found.log_probability = sum.value();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_enumeration() {
        // log p([0, 2, 1]) = −3.613076490698 by enumeration.
        let phi = Phi::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).unwrap();
        let alpha = Alpha::PerTopic(vec![0.5, 1.5]);
        let corpus = Corpus::from_tokens([[0, 2, 1]]).unwrap();
        let options = LeftToRightOptions { particles: 200_000, seed: 5 };
        let found = left_to_right(&corpus, &phi, &alpha, &options).unwrap();
        assert!((found.log_probability + 3.613_076_490_698).abs() < 2e-3, "{found:?}");
    }

    #[test]
    fn threads_do_not_matter_and_unknown_words_are_counted() {
        let phi = Phi::from_rows(&[[0.5, 0.4, 0.1, 0.0], [0.1, 0.1, 0.8, 0.0]]).unwrap();
        let documents: Vec<Vec<u32>> =
            (0..40).map(|d| (0..d % 13).map(|i| (d * 7 + i * i) % 5).collect()).collect();
        let corpus = Corpus::from_tokens(documents).unwrap();
        let run =
            || left_to_right(&corpus, &phi, &Alpha::Symmetric(0.3), &LeftToRightOptions::default());
        let found = run().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(run).unwrap(), found);
        let known: u64 = corpus
            .documents()
            .flat_map(|d| d.iter())
            .map(|(w, n)| u64::from(w < 3) * u64::from(n))
            .sum();
        assert_eq!(
            (found.tokens, found.tokens + found.unknown_tokens),
            (known, corpus.num_tokens())
        );
        assert!(found.perplexity() > 1.0 && found.perplexity() < 4.0);

        let none = LeftToRightOptions { particles: 0, ..LeftToRightOptions::default() };
        let alpha = Alpha::Symmetric(0.3);
        assert_eq!(left_to_right(&corpus, &phi, &alpha, &none), Err(CompletionError::NoSamples));
        let strangers = Corpus::from_tokens([[3, 4]]).unwrap();
        let error = left_to_right(&strangers, &phi, &alpha, &LeftToRightOptions::default());
        assert!(matches!(error, Err(CompletionError::NothingToPredict { .. })));
    }

    #[test]
    fn a_cancelled_estimate_is_an_error() {
        use std::sync::atomic::{AtomicU32, Ordering};

        let phi = Phi::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).unwrap();
        let corpus = Corpus::from_tokens(vec![[0, 2, 1]; 30]).unwrap();
        let (alpha, options) = (Alpha::Symmetric(0.3), LeftToRightOptions::default());
        let asked = AtomicU32::new(0);
        let most = |n: u32| {
            asked.store(0, Ordering::Relaxed);
            let go_on = || asked.fetch_add(1, Ordering::Relaxed) < n;
            left_to_right_while(&corpus, &phi, &alpha, &options, &go_on)
        };
        // Particles of all documents.
        let whole = left_to_right(&corpus, &phi, &alpha, &options);
        assert_eq!(most(300), whole);
        assert!(whole.is_ok());
        for n in [0, 1, 150, 299] {
            assert_eq!(most(n), Err(CompletionError::Cancelled), "{n}");
        }
    }
}
