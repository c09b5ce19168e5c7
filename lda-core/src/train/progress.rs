//! Progress of a run: how far it is, and whether its options end it.

use crate::eval::LogJoint;
use crate::model::Provenance;
use crate::train::held_out::Patience;
use crate::train::options::{LevelOff, Resolved, TrainOptions};
use crate::train::pass::PassReport;
use crate::train::report::EpochReport;

/// Epochs, seconds and evaluations of a run, beside the options that limit them.
#[derive(Debug)]
pub(super) struct Progress {
    pub options: TrainOptions,
    pub resolved: Resolved,
    /// Options of the warm-up, while it lasts.
    pub warming_up: Option<Resolved>,
    pub epoch: u32,
    pub seconds: f64,
    /// Log joint per token at each evaluation since the warm-up.
    pub evaluations: Vec<f64>,
    pub patience: Option<Patience>,
    /// Perplexities of the held-out documents since the warm-up.
    pub perplexities: Vec<f64>,
}

impl Progress {
    /// A run after `epoch` epochs.
    pub fn new(options: &TrainOptions, resolved: Resolved, epoch: u32) -> Self {
        // INVARIANT: the state is WarpLDA's until the first epoch after the warm-up begins, so that a
        // snapshot taken at its last epoch holds WarpLDA's state.
        let is_warming_up = resolved.warm_up > 0 && epoch <= resolved.warm_up;
        Self {
            options: options.clone(),
            warming_up: is_warming_up.then(|| resolved.of_warm_up()),
            resolved,
            epoch,
            seconds: 0.0,
            evaluations: Vec::new(),
            patience: None,
            perplexities: Vec::new(),
        }
    }

    /// Options of the sampler that is at work: of the warm-up, while it lasts.
    pub fn current(&self) -> &Resolved {
        self.warming_up.as_ref().unwrap_or(&self.resolved)
    }

    /// Returns true if the warm-up ends before the next epoch.
    pub fn ends_warm_up(&self) -> bool {
        self.warming_up.is_some() && self.epoch >= self.resolved.warm_up
    }

    /// Ends the warm-up.
    pub fn end_warm_up(&mut self) {
        self.warming_up = None;
        self.evaluations.clear();
        self.perplexities.clear();
    }

    /// Ends a warm-up of the default length after half of the seconds of the run, as it has at most
    /// half of the epochs: both are meant for the sampler.
    pub fn shorten_warm_up(&mut self) {
        let is_default = self.options.warm_up.is_none();
        let half = self.options.seconds.filter(|_| is_default).map(|seconds| seconds / 2.0);
        if self.warming_up.is_some() && half.is_some_and(|half| self.seconds >= half) {
            self.resolved.warm_up = self.resolved.warm_up.min(self.epoch);
        }
    }

    /// Counts an epoch that took `seconds`.
    pub fn note_epoch(&mut self, seconds: f64) {
        self.epoch += 1;
        self.seconds += seconds;
    }

    /// Report of an epoch over so many tokens that took `seconds`; nothing is evaluated.
    pub fn report(
        &self,
        pass: &PassReport,
        tokens: u64,
        seconds: f64,
        mh_steps: Option<u32>,
    ) -> EpochReport {
        let current = self.current();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        EpochReport {
            epoch: self.epoch,
            sampler: current.sampler,
            seconds: self.seconds,
            tokens_per_second: tokens as f64 / seconds.max(1e-9),
            tokens,
            sampled: current.exclude_converged_from.map(|_| share(pass.tokens, tokens)),
            changed: share(pass.changed, pass.tokens),
            acceptance: (pass.proposed > 0).then(|| share(pass.accepted, pass.proposed)),
            acceptance_with_repeats: (pass.proposed + pass.repeated > 0)
                .then(|| share(pass.accepted + pass.repeated, pass.proposed + pass.repeated)),
            mh_steps,
            log_joint: None,
            log_joint_doc: None,
            log_joint_word: None,
            perplexity: None,
        }
    }

    /// Returns true if the epoch that has just ended is to be evaluated; `spent` if it is the last one.
    pub fn is_evaluated(&self, spent: bool) -> bool {
        let every = self.evaluate_every();
        every > 0 && (spent || self.epoch.is_multiple_of(every))
    }

    /// Returns true if the next epoch will be evaluated, as far as that is known before it ends.
    pub fn expects_evaluation(&self) -> bool {
        let (every, next) = (self.evaluate_every(), self.epoch + 1);
        every > 0 && (next.is_multiple_of(every) || self.options.epochs.is_some_and(|n| next >= n))
    }

    /// Epochs between evaluations; 0 without any.
    fn evaluate_every(&self) -> u32 {
        match self.options.evaluate_every {
            // Both rules need evaluations.
            0 if self.is_judged() || self.level_off().is_some() => 10,
            every => every,
        }
    }

    /// Adds an evaluation to the report of its epoch; returns true if it ends the run.
    pub fn note_evaluation(
        &mut self,
        report: &mut EpochReport,
        joint: LogJoint,
        perplexity: Option<f64>,
        tokens: u64,
    ) -> bool {
        report.set_log_joint(joint);
        self.evaluations.push(joint.per_token(tokens));
        report.perplexity = perplexity;
        self.perplexities.extend(perplexity);
        self.is_level()
    }

    /// Provenance of a model, without what is known of the documents.
    pub fn provenance(&self) -> Provenance {
        // A run may end within its warm-up: all of its epochs are then WarpLDA's.
        let warm_up = self.resolved.warm_up.min(self.epoch);
        let options = Resolved { warm_up, ..self.resolved.clone() };
        Provenance {
            options: options.to_named(),
            initial_alpha: Some(self.resolved.alpha.clone()),
            epochs: Some(self.epoch),
            log_joint: self.evaluations.last().copied(),
            ..Provenance::default()
        }
    }

    /// Returns true if the run has reached the limits of its options: epochs, seconds, or a rule for
    /// evaluations.
    pub fn is_finished(&self) -> bool {
        self.is_spent() || self.is_level()
    }

    /// Returns true if the run has had all of its epochs or seconds.
    pub fn is_spent(&self) -> bool {
        self.options.epochs.is_some_and(|n| self.epoch >= n)
            || self.options.seconds.is_some_and(|s| self.seconds >= s)
    }

    /// Returns true if its evaluations end the run.
    fn is_level(&self) -> bool {
        let is_over = |patience: Patience| patience.is_over(&self.perplexities);
        self.warming_up.is_none()
            && (self.level_off().is_some_and(|rule| rule.is_reached(&self.evaluations))
                || self.patience.is_some_and(is_over))
    }

    /// Returns true if held-out documents may end the run.
    fn is_judged(&self) -> bool {
        self.patience.is_some_and(|patience| patience.ends())
    }

    /// The rule for the likelihoods: that of the options, or the default if nothing else ends the
    /// run.
    fn level_off(&self) -> Option<LevelOff> {
        let TrainOptions { epochs, seconds, level_off, .. } = &self.options;
        let is_bounded = self.is_judged() || epochs.is_some() || seconds.is_some();
        level_off.or_else(|| (!is_bounded).then(LevelOff::default))
    }
}
