//! Results of a run: the table of topics, and the model of `--save`.

use lda_core::corpus::Vocabulary;
use lda_core::counts::TopicIndex;
use lda_core::model::TopicModel;
use lda_dist::cluster::{CollectedCounts, Documents, Role, Topics};
use lda_dist::priors::Priors;
use lda_examples::output::Output;
use lda_examples::table;

use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::held_out::HeldOutDocuments;
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
        held_out: Option<&HeldOutDocuments>,
    ) -> Result<(), ClusterError> {
        if let Some((output, counts)) = model_to.zip(self.counts.as_ref()) {
            let Priors { alpha, beta } = self.priors.clone();
            let model =
                TopicModel::from_counts(counts, alpha, beta).with_vocabulary(vocabulary.cloned());
            output.fill(|out| model.write_to(out))?;
        }
        let found = held_out.zip(self.counts.as_ref());
        let found =
            found.map(|(held_out, counts)| held_out.of(counts, &self.priors)).transpose()?;
        table::print(|out| {
            if let Some(Topics { totals, words, .. }) = &self.topics {
                table::write(out, totals, vocabulary, words, training.show_topics)?;
            }
            let Some(found) = found else { return Ok(()) };
            let (perplexity, tokens, documents) =
                (found.perplexity(), found.tokens, found.documents);
            writeln!(
                out,
                "held-out perplexity {perplexity:.2} (document completion: {tokens} tokens of {documents} \
                 documents)"
            )
        })
        .map_err(ClusterError::Print)
    }
}
