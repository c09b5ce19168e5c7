//! Results of a run: the table of topics, and the model of `--save`.

use lda_core::corpus::Vocabulary;
use lda_core::counts::TopicIndex;
use lda_core::model::TopicModel;
use lda_dist::cluster::{CollectedCounts, Documents, Role, Topics};
use lda_dist::priors::Priors;
use lda_examples::output::Output;
use lda_examples::table;

use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::training::Training;

/// Results that the master holds at the end.
#[derive(Debug)]
pub struct Results {
    /// Counts of all words; only with `--save`.
    counts: Option<CollectedCounts>,
    /// Top words, which servers find in their rows.
    topics: Option<Topics>,
    /// Priors of the last epoch.
    priors: Priors,
}

impl Results {
    /// Results of a finished node; `None` unless it is the master.
    pub fn of<T: TopicIndex, D: Documents>(node: &Role<T, D>) -> Option<Self> {
        let Role::Master(master) = node else { return None };
        let (counts, topics) = (master.counts().cloned(), master.topics().cloned());
        Some(Self { counts, topics, priors: master.priors() })
    }

    /// Writes the model, if it is saved, and prints the table.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(
        &self,
        training: &Training,
        vocabulary: Option<&Vocabulary>,
        model_to: Option<Output>,
    ) -> Result<(), ClusterError> {
        if let Some((output, counts)) = model_to.zip(self.counts.as_ref()) {
            let Priors { alpha, beta } = self.priors.clone();
            let model =
                TopicModel::from_counts(counts, alpha, beta).with_vocabulary(vocabulary.cloned());
            output.fill(|out| model.write_to(out))?;
        }
        let Some(Topics { totals, words, .. }) = &self.topics else { return Ok(()) };
        table::print(|out| table::write(out, totals, vocabulary, words, training.show_topics))
            .map_err(ClusterError::Print)
    }
}
