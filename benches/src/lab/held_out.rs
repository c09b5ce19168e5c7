//! Held-out documents and their perplexity.
//!
//! Every method trains on the same remaining documents and is evaluated by the same code from its φ
//! alone: [document completion](lda_core::eval::perplexity), with the cell's α for every method. It
//! is the one figure that compares Gibbs samplers with variational programs, which have no
//! assignments and so no log joint.
//!
//! Cost of an evaluation: 50 sweeps over half the held-out tokens, O(K) per token if φ has no
//! zeros.

use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;
use lda_core::eval::{CompletionOptions, Phi, held_out_perplexity};
use lda_core::prior::Alpha;
use lda_core::random::mix;

use super::LabError;

/// Salt that makes the choice of documents independent of other hashes of their numbers.
const SALT: u64 = 0x68656c642d6f7574;

/// A corpus split in two parts over one vocabulary.
pub(super) struct Split {
    /// Training documents.
    pub training: Corpus,
    /// Held-out documents, if any.
    pub held_out: Option<Corpus>,
}

impl Split {
    /// Holds out about `share` of the documents; none if it is `None`.
    ///
    /// A document is chosen by a hash of its number, so the choice is the same for every method and
    /// seed, and a larger share includes the documents of a smaller one.
    pub fn new(corpus: Corpus, share: Option<f64>) -> Result<Self, LabError> {
        let Some(share) = share else { return Ok(Self { training: corpus, held_out: None }) };
        let limit = (share * u64::MAX as f64) as u64;
        let is_held_out = |d: usize| mix(d as u64 ^ SALT) < limit;
        let part = |held_out: bool| {
            // A corpus has at most 2^32 words, with smaller ids.
            let mut builder = CorpusBuilder::new().num_words(corpus.num_words() as u32);
            for (d, document) in corpus.documents().enumerate() {
                if is_held_out(d) == held_out {
                    builder.push_pairs(document.iter())?;
                }
            }
            builder.build()
        };
        let refused = |what| LabError::Value {
            key: "held-out",
            value: share.to_string(),
            remedy: format!("it leaves nothing to {what}: give another share or a larger corpus"),
        };
        let training = part(false).map_err(|_| refused("train on"))?;
        let held_out = part(true).map_err(|_| refused("evaluate"))?;
        Ok(Self { training, held_out: Some(held_out) })
    }

    /// Perplexity of the held-out documents, if there are any.
    pub fn perplexity(&self, phi: &Phi, alpha: f64) -> Result<Option<f64>, LabError> {
        let Some(held_out) = &self.held_out else { return Ok(None) };
        let options = CompletionOptions::default();
        let found = held_out_perplexity(held_out, phi, &Alpha::Symmetric(alpha), &options)?;
        Ok(Some(found.perplexity()).filter(|perplexity| perplexity.is_finite()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(documents: u32) -> Corpus {
        Corpus::from_tokens((0..documents).map(|d| [d, 0, d])).unwrap()
    }

    #[test]
    fn every_document_is_in_one_part() {
        let split = Split::new(corpus(1000), Some(0.2)).unwrap();
        let held_out = split.held_out.unwrap();
        assert_eq!(held_out.num_documents() + split.training.num_documents(), 1000);
        // Four standard deviations of a binomial.
        assert!((150..=250).contains(&held_out.num_documents()), "{}", held_out.num_documents());
        assert_eq!((held_out.num_words(), split.training.num_words()), (1000, 1000));
        let parts = [held_out.word_frequencies(), split.training.word_frequencies()];
        let both: Vec<u64> = parts[0].iter().zip(&parts[1]).map(|(a, b)| a + b).collect();
        assert_eq!(both, corpus(1000).word_frequencies());
        // A larger share holds out the same documents and more.
        let more = Split::new(corpus(1000), Some(0.4)).unwrap().held_out.unwrap();
        let words = |corpus: &Corpus| -> Vec<bool> {
            corpus.word_frequencies().into_iter().skip(1).map(|n| n > 0).collect()
        };
        assert!(words(&held_out).iter().zip(words(&more)).all(|(few, many)| !few || many));
    }

    #[test]
    fn without_a_share_nothing_is_held_out() {
        let split = Split::new(corpus(10), None).unwrap();
        assert_eq!(split.training.fingerprint(), corpus(10).fingerprint());
        let phi = Phi::from_rows(&[[1.0]]).unwrap();
        assert!(split.perplexity(&phi, 0.1).unwrap().is_none());
    }

    #[test]
    fn a_share_that_leaves_nothing_is_refused() {
        for share in [1e-9, 0.999_999] {
            let error = Split::new(corpus(3), Some(share)).err().unwrap().to_string();
            assert!(error.contains("held-out is") && error.contains("larger corpus"), "{error}");
        }
    }

    #[test]
    fn the_perplexity_of_equally_likely_words_is_their_number() {
        let split = Split::new(corpus(100), Some(0.5)).unwrap();
        let phi = Phi::from_rows(&[vec![0.01; 100], vec![0.01; 100]]).unwrap();
        let found = split.perplexity(&phi, 0.1).unwrap().unwrap();
        assert!((found - 100.0).abs() < 1e-9, "{found}");
    }
}
