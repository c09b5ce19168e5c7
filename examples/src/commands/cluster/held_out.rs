//! Perplexity of held-out documents, by the rows that the master has collected.

use lda_core::Corpus;
use lda_core::corpus::BuildError;
use lda_core::eval::held_out_perplexity;
use lda_core::eval::{CompletionError, CompletionOptions, DocumentCompletion, Phi};
use lda_core::model::TopicModel;
use lda_core::train::HeldOut;
use lda_dist::cluster::{CollectedCounts, Report};
use lda_dist::priors::Priors;
use lda_examples::held_out;

use crate::commands::cluster::error::ClusterError;

/// Documents that are not trained on.
#[derive(Clone, Debug)]
pub struct HeldOutDocuments {
    corpus: Corpus,
    options: CompletionOptions,
    /// Evaluations in a row without an improvement, after which the run ends.
    patience: Option<u32>,
}

/// Splits documents into those of training and held-out ones, a share of all.
///
/// # Errors
/// [`ClusterError`] if one side has no tokens.
pub fn split(corpus: &Corpus, share: f64, seed: u64) -> Result<(Corpus, Corpus), ClusterError> {
    held_out::split(corpus, share, seed).map_err(|error| match error {
        BuildError::NoTokens => {
            ClusterError::HeldOut { share, documents: held_out::num_documents(corpus) }
        }
        error => ClusterError::Split(error),
    })
}

impl HeldOutDocuments {
    /// Documents with the word ids of training, and the seed of the estimate.
    pub fn new(corpus: Corpus, seed: u64, patience: Option<u32>) -> Self {
        let options = CompletionOptions { seed, ..CompletionOptions::default() };
        Self { corpus, options, patience }
    }

    /// The rule by which the run ends, if it can end it.
    pub fn rule(&self) -> Option<HeldOut> {
        self.patience.map(|patience| HeldOut::new(self.corpus.clone()).patience(patience))
    }

    /// Perplexity at the end of an epoch, if the report has the counts.
    ///
    /// # Errors
    /// [`CompletionError`] if no document can be evaluated.
    pub fn after(&self, report: &Report) -> Result<Option<f64>, CompletionError> {
        let Some((counts, priors)) = report.counts.as_deref().zip(report.priors.as_ref()) else {
            return Ok(None);
        };
        self.of(counts, priors).map(|found| Some(found.perplexity()))
    }

    /// Estimate with these counts and priors.
    ///
    /// # Errors
    /// [`CompletionError`] if no document can be evaluated.
    pub fn of(
        &self,
        counts: &CollectedCounts,
        priors: &Priors,
    ) -> Result<DocumentCompletion, CompletionError> {
        let Priors { alpha, beta } = priors;
        let model = TopicModel::from_counts(counts, alpha.clone(), *beta);
        let phi = Phi::from_model(&model).expect("priors of a run are valid");
        held_out_perplexity(&self.corpus, &phi, alpha, &self.options)
    }
}
