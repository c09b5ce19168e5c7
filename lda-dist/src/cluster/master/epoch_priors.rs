//! Priors of the current epoch at the master, and the counts from which those of the next are learnt.

use lda_core::prior::learn::CountHistograms;
use lda_core::train::Learn;

use crate::aggregate::{Aggregates, WordHistogram};
use crate::priors::Priors;
use crate::spec::{ModelSpec, Round};

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

    /// Takes a worker's report of a round: its priors if that is the joining and priors change, and histograms
    /// of its documents if α is learnt after it. `is_last` is true for the last round of an epoch.
    ///
    /// # Errors
    /// The reason why a worker cannot have sent it.
    pub fn of_worker(
        &mut self,
        (round, is_last): (Round, bool),
        priors: Option<Priors>,
        documents: Option<Box<CountHistograms>>,
    ) -> Result<(), String> {
        let (updates, topics) = (self.spec.updates(), self.spec.topics() as usize);
        let empty = || updates.due_after(round.epoch)?.document_histograms(topics);
        let empty = is_last.then(empty).flatten();
        if priors.is_some() != (round.is_joining() && !updates.is_none()) {
            return Err(format!("a report of {round} with priors, or without, at a wrong time"));
        }
        if documents.is_some() != empty.is_some() {
            return Err(format!(
                "a report of {round} with histograms, or without, at a wrong time"
            ));
        }
        if let Some(priors) = priors {
            if self.joined.as_ref().is_some_and(|first| *first != priors) {
                return Err("other priors than another worker has".to_owned());
            }
            self.spec = self.spec.with_priors(&priors).map_err(|error| error.to_string())?;
            self.joined = Some(priors);
        }
        if let (Some(part), Some(empty)) = (documents, empty) {
            let all = self.documents.get_or_insert(empty);
            part.counts().for_each(|(topic, count, times)| all.add(topic, count, times));
            part.sums().for_each(|(sum, times)| all.add_sum(sum, times));
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

    /// Starts an epoch with these C_k.
    pub fn begin_epoch(&mut self, totals: &[i64]) {
        let totals: Vec<u32> = totals.iter().map(|&total| total as u32).collect();
        if let Some(spec) = self.spec.by_size(&totals) {
            self.spec = spec;
        }
    }

    /// Priors of the epoch that workers have reported after the joining, if they change.
    pub fn joined(&self) -> Option<Priors> {
        self.joined.clone()
    }

    /// Priors of the epoch to send to all nodes, if they are learnt. Where α follows topic sizes, nodes compute
    /// it again.
    pub fn learnt(&self) -> Option<Priors> {
        self.spec.updates().learn.map(|_| self.spec.priors())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::JOINING;

    /// Otherwise priors would be learnt from the documents of some workers, without a word.
    #[test]
    fn a_report_without_its_counts_is_refused() {
        let learn = Learn { burn_in: 1, every: 2, ..Learn::default() };
        let spec = ModelSpec::builder(3, 9).learn(learn).build().unwrap();
        let (joined, histograms) = (spec.priors(), CountHistograms::per_topic(3));
        let report = |epoch, number, is_last, has_priors: bool, has_documents: bool| {
            let round = Round { epoch, number, attempt: 1 };
            let priors = has_priors.then(|| joined.clone());
            let documents = has_documents.then(|| Box::new(histograms.clone()));
            let mut priors_now = EpochPriors::new(spec.clone());
            priors_now.of_worker((round, is_last), priors, documents).is_ok()
        };
        for (epoch, number, is_last, priors, documents) in [
            (0, JOINING, true, true, false),
            (1, JOINING, true, true, true),
            (1, 2, false, false, false),
            (1, 3, true, false, true),
            (2, 3, true, false, false),
            (3, 3, true, false, true),
        ] {
            for (has_priors, has_documents) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                let fits = (has_priors, has_documents) == (priors, documents);
                let found = report(epoch, number, is_last, has_priors, has_documents);
                assert_eq!(found, fits, "{epoch}, {number}: {has_priors}, {has_documents}");
            }
        }
    }

    #[test]
    fn workers_must_have_the_same_priors() {
        let spec = ModelSpec::builder(3, 9).learn(Learn::default()).build().unwrap();
        let (mut priors, first) = (EpochPriors::new(spec.clone()), spec.priors());
        let joining = (Round::joining(4, 1), true);
        let other = Priors { beta: 0.5, ..first.clone() };
        assert_eq!(priors.of_worker(joining, Some(other.clone()), None), Ok(()));
        assert_eq!(priors.of_worker(joining, Some(other.clone()), None), Ok(()));
        assert!(priors.of_worker(joining, Some(first), None).is_err());
        assert_eq!(priors.spec.priors(), other);
        let invalid = Priors { beta: f64::NAN, ..other };
        assert!(EpochPriors::new(spec).of_worker(joining, Some(invalid), None).is_err());
    }
}
