//! Early end of a run, by a rule of the options or by a signal: the results are those of a shorter run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lda_core::train::{HeldOut, LevelOff};
use lda_dist::cluster::{EpochTime, Report};

use crate::commands::cluster::training::Training;

/// When a run ends before its last epoch.
#[derive(Debug, Default)]
pub struct StopRule {
    seconds: Option<f64>,
    level_off: Option<LevelOff>,
    /// Set by a signal.
    asked: Option<Arc<AtomicBool>>,
    /// Log joint of the evaluated epochs.
    evaluations: Vec<f64>,
    /// Rule of held-out perplexity.
    held_out: Option<HeldOut>,
    perplexities: Vec<f64>,
    is_due: bool,
}

impl StopRule {
    /// The rule of the options. `asked` ends the run too, once it is true.
    pub fn new(training: &Training, asked: Option<Arc<AtomicBool>>) -> Self {
        let level_off =
            training.level_off.map(|tolerance| LevelOff { tolerance, ..LevelOff::default() });
        Self { seconds: training.seconds, level_off, asked, ..Self::default() }
    }

    /// Ends the run by the perplexity of held-out documents, too.
    pub fn held_out(mut self, held_out: Option<HeldOut>) -> Self {
        self.held_out = held_out;
        self
    }

    /// Takes the report of an epoch, and its held-out perplexity.
    pub fn report(&mut self, report: &Report, time: EpochTime, perplexity: Option<f64>) {
        self.perplexities.extend(perplexity);
        self.is_due |= perplexity.is_some()
            && self.held_out.as_ref().is_some_and(|rule| rule.is_over(&self.perplexities));
        self.evaluations.extend(report.log_joint);
        self.is_due |= self.seconds.is_some_and(|seconds| time.total >= seconds);
        self.is_due |= report.log_joint.is_some()
            && self.level_off.is_some_and(|rule| rule.is_reached(&self.evaluations));
    }

    /// Whether the run has to end after the current epoch.
    pub fn is_due(&self) -> bool {
        self.is_due || self.asked.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;

    use super::*;

    /// A rule, after an epoch of one second for each log joint.
    fn after(training: &Training, log_joints: &[f64]) -> StopRule {
        let mut rule = StopRule::new(training, None);
        for (epoch, &log_joint) in (1..).zip(log_joints) {
            assert!(!rule.is_due(), "before epoch {epoch}");
            let mut report = Report::default();
            (report.epoch, report.log_joint) = (epoch, Some(log_joint));
            rule.report(&report, EpochTime { total: epoch.into(), epoch: 1.0 }, None);
        }
        rule
    }

    #[test]
    fn a_run_ends_by_time_or_if_the_likelihood_levels_off() {
        let rising: Vec<f64> = (0..20).map(|epoch| f64::from(epoch) - 100.0).collect();
        assert!(!after(&Training::default(), &rising).is_due());
        let seconds = Training { seconds: Some(20.0), ..Training::default() };
        assert!(after(&seconds, &rising).is_due());
        assert!(!after(&seconds, &rising[1..]).is_due());
        let level_off = Training { level_off: Some(1e-3), ..Training::default() };
        assert!(!after(&level_off, &rising).is_due());
        assert!(
            after(&level_off, &[-100.0, -90.0, -80.0, -80.0, -80.0, -80.0, -80.0, -80.0]).is_due()
        );
    }

    #[test]
    fn a_run_ends_if_the_perplexity_does_not_fall() {
        let documents = Corpus::from_tokens([vec![0, 1]]).unwrap();
        let rule = HeldOut::new(documents).patience(2);
        let mut rule = StopRule::new(&Training::default(), None).held_out(Some(rule));
        for (perplexity, is_due) in [
            (Some(9.0), false),
            (None, false),
            (Some(8.0), false),
            (Some(8.0), false),
            (Some(8.1), true),
        ] {
            rule.report(&Report::default(), EpochTime { total: 1.0, epoch: 1.0 }, perplexity);
            assert_eq!(rule.is_due(), is_due, "{perplexity:?}");
        }
    }

    #[test]
    fn a_run_ends_when_it_is_asked_to() {
        let asked = Arc::new(AtomicBool::new(false));
        let rule = StopRule::new(&Training::default(), Some(Arc::clone(&asked)));
        assert!(!rule.is_due());
        asked.store(true, Ordering::Relaxed);
        assert!(rule.is_due());
    }
}
