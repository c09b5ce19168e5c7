//! Held-out documents: evaluation during a run, and early stopping.
//!
//! When topics begin to overfit, the likelihood of the training documents still rises, but held-out
//! perplexity no longer falls. So a run can stop when the perplexity of held-out documents (by
//! [document completion](crate::eval::perplexity)) has not fallen for some evaluations. It affects
//! only the number of epochs: up to the last epoch, results are those of a run without held-out
//! documents.

use crate::corpus::Corpus;
use crate::eval::{CompletionError, CompletionOptions, DocumentCompletion};

/// Held-out documents, and the rule of early stopping.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::train::{EpochReport, Flow, HeldOut, TrainOptions, Trainer};
///
/// let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"]];
/// let corpus = Corpus::from_words((0..40).map(|d| themes[d % 2]))?;
/// let (train, test) = (corpus.select(0..30), corpus.select(30..40));
/// let options = TrainOptions::new(2).alpha(0.1).evaluate_every(1);
/// let mut trainer = Trainer::new(&train, &options)?;
/// trainer.early_stopping(HeldOut::new(test).patience(5))?;
/// let last = trainer.run(|_: &EpochReport| Flow::Continue, || false);
/// assert!(last.perplexity.is_some_and(|perplexity| perplexity < 6.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The documents are a corpus, or [blocks](crate::corpus::blocks::Blocks) for a run over blocks.
#[derive(Clone, Debug)]
#[must_use = "setters return the changed value; `Trainer::early_stopping` uses it"]
pub struct HeldOut<D = Corpus> {
    pub(super) documents: D,
    pub(super) completion: CompletionOptions,
    pub(super) rule: Patience,
}

/// The rule of early stopping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    evaluations: Option<u32>,
    tolerance: f64,
}

impl<D> HeldOut<D> {
    /// Documents with the word ids of the training documents. Perplexity is only reported, unless
    /// [`patience`](Self::patience) is set.
    pub fn new(documents: D) -> Self {
        let completion = CompletionOptions::default();
        Self { documents, completion, rule: Patience { evaluations: None, tolerance: 1e-3 } }
    }

    /// Parameters of the estimate; default [`CompletionOptions::default`].
    pub fn completion(mut self, completion: CompletionOptions) -> Self {
        self.completion = completion;
        self
    }

    /// Stops the run when this many evaluations in a row, at least 1, have not brought the perplexity
    /// below the best so far. Replaces the default rule of levelling off.
    pub fn patience(mut self, evaluations: u32) -> Self {
        self.rule.evaluations = Some(evaluations.max(1));
        self
    }

    /// Relative improvement that counts; default 0.001.
    pub fn tolerance(mut self, share: f64) -> Self {
        self.rule.tolerance = share;
        self
    }

    /// Returns true if a run with these perplexities, oldest first, stops.
    pub fn is_over(&self, perplexities: &[f64]) -> bool {
        self.rule.is_over(perplexities)
    }
}

impl HeldOut {
    /// Checks that the documents can be evaluated: `evaluate` does so, with a single sample.
    ///
    /// # Errors
    /// [`CompletionError`].
    pub(super) fn check(
        &self,
        evaluate: impl FnOnce(
            &Corpus,
            &CompletionOptions,
        ) -> Result<DocumentCompletion, CompletionError>,
    ) -> Result<(), CompletionError> {
        if self.completion.samples == 0 {
            return Err(CompletionError::NoSamples);
        }
        let once = CompletionOptions { burn_in: 0, samples: 1, ..self.completion };
        evaluate(&self.documents, &once).map(|_| ())
    }
}

impl Patience {
    /// True if it can stop a run.
    pub fn ends(&self) -> bool {
        self.evaluations.is_some()
    }

    /// As [`HeldOut::is_over`].
    pub fn is_over(&self, perplexities: &[f64]) -> bool {
        let Some(patience) = self.evaluations else { return false };
        let (mut best, mut since) = (f64::INFINITY, 0);
        for &perplexity in perplexities {
            if perplexity < best * (1.0 - self.tolerance) {
                (best, since) = (perplexity, 0);
            } else {
                since += 1;
            }
        }
        since >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_counts_from_the_best() {
        let corpus = Corpus::from_tokens([[0, 1]]).unwrap();
        let held = HeldOut::new(corpus).patience(2);
        let over = |perplexities: &[f64]| held.is_over(perplexities);
        assert!(!over(&[]) && !over(&[9.0]) && !over(&[9.0, 9.0]));
        assert!(over(&[9.0, 9.0, 9.0]));
        assert!(!over(&[9.0, 9.5, 8.0]) && !over(&[9.0, 9.5, 8.0, 8.5]));
        assert!(over(&[9.0, 9.5, 8.0, 8.5, 7.999]));
        assert!(!over(&[9.0, 9.5, 8.0, 8.5, 7.99]));
        let only_reported = HeldOut::new(Corpus::from_tokens([[0, 1]]).unwrap());
        assert!(!only_reported.is_over(&[1.0; 100]));
    }
}
