//! Priors of the current epoch at the master, and the counts from which those of the next are learnt.

use lda_core::prior::learn::CountHistograms;
use lda_core::train::Learn;

use crate::aggregate::{Aggregates, WordHistogram};
use crate::priors::Priors;
use crate::spec::ModelSpec;

/// Priors of an attempt.
#[derive(Debug)]
pub(super) struct EpochPriors {
    /// The model with the priors of the epoch that has started last.
    pub spec: ModelSpec,
    /// Priors as the first worker has reported them after the joining.
    joined: Option<Priors>,
    /// Histograms of the workers' documents at the end of an epoch.
    documents: Option<CountHistograms>,
}

impl EpochPriors {
    /// The priors from which the run starts.
    pub fn new(spec: ModelSpec) -> Self {
        Self { spec, joined: None, documents: None }
    }

    /// Takes a worker's report after its last round of an epoch, or after the joining.
    ///
    /// # Errors
    /// The reason why a worker cannot have sent it.
    pub fn of_worker(
        &mut self,
        epoch: u32,
        priors: Option<Priors>,
        documents: Option<Box<CountHistograms>>,
    ) -> Result<(), String> {
        if let Some(priors) = priors {
            if self.joined.as_ref().is_some_and(|first| *first != priors) {
                return Err("other priors than another worker has".to_owned());
            }
            self.spec = self.spec.with_priors(&priors).map_err(|error| error.to_string())?;
            self.joined = Some(priors);
        }
        if let Some(part) = documents {
            let due = self.spec.updates().due_after(epoch);
            let empty = || due?.document_histograms(self.spec.topics() as usize);
            let Some(mut all) = self.documents.take().or_else(empty) else {
                return Err(format!("histograms of documents after epoch {epoch}"));
            };
            part.counts().for_each(|(topic, count, times)| all.add(topic, count, times));
            part.sums().for_each(|(sum, times)| all.add_sum(sum, times));
            self.documents = Some(all);
        }
        Ok(())
    }

    /// Learns the priors of the next epoch, if that is due after this one, from the workers' histograms, the
    /// servers' aggregates, and C_k.
    ///
    /// # Errors
    /// The reason why the counts of workers or servers are impossible.
    pub fn learn(&mut self, epoch: u32, found: &Aggregates, totals: &[i64]) -> Result<(), String> {
        let documents = self.documents.take();
        let Some(learn) = self.spec.updates().due_after(epoch) else { return Ok(()) };
        let Priors { mut alpha, mut beta } = self.spec.priors();
        if let Some(mut documents) = documents {
            alpha = learn.next_alpha(&alpha, totals.len(), &mut documents);
        }
        if let Some(words) = found.get::<WordHistogram>(WordHistogram::NAME) {
            let mut words: CountHistograms = words.counts().clone();
            totals.iter().for_each(|&total| words.add_sum(total as u64, 1));
            beta = words.beta(self.spec.words() as usize, beta, Learn::STEPS);
        }
        let next = self.spec.with_priors(&Priors { alpha, beta });
        self.spec =
            next.map_err(|error| format!("counts from which priors are learnt: {error}"))?;
        Ok(())
    }

    /// Starts an epoch with these C_k. Returns the priors to send to all nodes, if they are learnt.
    pub fn begin_epoch(&mut self, totals: &[i64]) -> Option<Priors> {
        let learnt = self.spec.updates().learn.map(|_| self.spec.priors());
        let totals: Vec<u32> = totals.iter().map(|&total| total as u32).collect();
        if let Some(spec) = self.spec.by_size(&totals) {
            self.spec = spec;
        }
        learnt
    }
}
