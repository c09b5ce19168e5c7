//! Held-out documents: evaluation during a run, and early stopping.
//!
//! When topics begin to overfit, the likelihood of the training documents still rises, but held-out
//! perplexity no longer falls. So a run can stop when the perplexity of held-out documents (by
//! [document completion](crate::eval::perplexity)) has not fallen for some evaluations. It affects
//! only the number of epochs: up to the last epoch, results are those of a run without held-out
//! documents.

use crate::corpus::Corpus;
use crate::eval::CompletionOptions;

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
#[derive(Clone, Debug)]
#[must_use = "setters return the changed value; `Trainer::early_stopping` uses it"]
pub struct HeldOut {
    pub(super) corpus: Corpus,
    pub(super) completion: CompletionOptions,
    patience: Option<u32>,
    tolerance: f64,
}

impl HeldOut {
    /// Documents with the word ids of the training corpus. Perplexity is only reported, unless
    /// [`patience`](Self::patience) is set.
    pub fn new(corpus: Corpus) -> Self {
        let completion = CompletionOptions::default();
        Self { corpus, completion, patience: None, tolerance: 1e-3 }
    }

    /// Parameters of the estimate; default [`CompletionOptions::default`].
    pub fn completion(mut self, completion: CompletionOptions) -> Self {
        self.completion = completion;
        self
    }

    /// Stops the run when this many evaluations in a row, at least 1, have not brought the perplexity
    /// below the best so far. Replaces the default rule of levelling off.
    pub fn patience(mut self, evaluations: u32) -> Self {
        self.patience = Some(evaluations.max(1));
        self
    }

    /// Relative improvement that counts; default 0.001.
    pub fn tolerance(mut self, share: f64) -> Self {
        self.tolerance = share;
        self
    }

    /// Whether it can stop a run.
    pub(super) fn ends(&self) -> bool {
        self.patience.is_some()
    }

    /// Returns true if a run with these perplexities, oldest first, stops.
    pub fn is_over(&self, perplexities: &[f64]) -> bool {
        let Some(patience) = self.patience else { return false };
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
