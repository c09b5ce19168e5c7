//! Reports of a running training, and the observers that receive them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::container::FileError;
use crate::eval::LogJoint;
use crate::train::options::SamplerKind;

/// Report of one epoch; serde writes it as one JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpochReport {
    /// Epoch, counted from 1.
    pub epoch: u32,
    /// The sampler of this epoch; WarpLDA during a warm-up.
    pub sampler: SamplerKind,
    /// Seconds of sampling since the start, without evaluations.
    pub seconds: f64,
    /// Tokens of the corpus per second of this epoch.
    pub tokens_per_second: f64,
    /// Tokens in the corpus.
    pub tokens: u64,
    /// Share of the tokens that were sampled, if converged ones are excluded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sampled: Option<f64>,
    /// Share of draws that changed a token's topic. A draw is one token in one pass: WarpLDA, which has
    /// two passes, counts each token twice.
    pub changed: f64,
    /// Share of Metropolis-Hastings proposals accepted; proposals of the current topic do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<f64>,
    /// Share of all Metropolis-Hastings proposals that were accepted, where a proposal of the current
    /// topic counts as accepted: the acceptance rate π of LDA*'s algorithm 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acceptance_with_repeats: Option<f64>,
    /// Metropolis-Hastings steps per token and kind of pass in the next epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mh_steps: Option<u32>,
    /// Log joint likelihood, if this epoch was evaluated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_joint: Option<f64>,
    /// Its document part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_joint_doc: Option<f64>,
    /// Its word part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_joint_word: Option<f64>,
    /// Perplexity of held-out documents, if there are any and this epoch was evaluated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub perplexity: Option<f64>,
}

impl EpochReport {
    /// The report of an epoch that took `epoch_seconds` of the run's `seconds`, for programs that
    /// train by other means than [`Trainer`](crate::train::Trainer). `changed` is NaN, which stands
    /// for unknown; options are `None`.
    pub fn new(
        epoch: u32,
        sampler: SamplerKind,
        tokens: u64,
        seconds: f64,
        epoch_seconds: f64,
    ) -> Self {
        Self {
            epoch,
            sampler,
            seconds,
            tokens_per_second: tokens as f64 / epoch_seconds.max(1e-9),
            tokens,
            sampled: None,
            changed: f64::NAN,
            acceptance: None,
            acceptance_with_repeats: None,
            mh_steps: None,
            log_joint: None,
            log_joint_doc: None,
            log_joint_word: None,
            perplexity: None,
        }
    }

    /// Log joint likelihood per token, if this epoch was evaluated.
    pub fn log_joint_per_token(&self) -> Option<f64> {
        self.log_joint.map(|total| total / self.tokens as f64)
    }

    pub(crate) fn set_log_joint(&mut self, joint: LogJoint) {
        self.log_joint = Some(joint.total());
        self.log_joint_doc = Some(joint.documents);
        self.log_joint_word = Some(joint.words);
    }
}

impl std::fmt::Display for EpochReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "epoch {}: {:.2} M tokens/s, {:.1} s",
            self.epoch,
            self.tokens_per_second / 1e6,
            self.seconds
        )?;
        if let Some(joint) = self.log_joint_per_token() {
            write!(f, ", log joint {joint:.4} per token")?;
        }
        if let Some(perplexity) = self.perplexity {
            write!(f, ", held-out perplexity {perplexity:.2}")?;
        }
        Ok(())
    }
}

/// Whether a run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Sample another epoch, unless the options end the run.
    Continue,
    /// End the run after this epoch.
    Stop,
}

/// Receives the reports of a run. A closure `FnMut(&EpochReport) -> Flow` is an observer, and so is `()`.
pub trait Observer {
    /// Called when an epoch has ended; returns whether the run continues.
    fn epoch(&mut self, report: &EpochReport) -> Flow {
        let _ = report;
        Flow::Continue
    }

    /// Called when a snapshot was written, or could not be written. After an error the previous
    /// snapshot remains and the run continues.
    fn checkpoint(&mut self, outcome: Result<&Path, &FileError>) {
        let _ = outcome;
    }
}

impl Observer for () {}

impl<F: FnMut(&EpochReport) -> Flow> Observer for F {
    fn epoch(&mut self, report: &EpochReport) -> Flow {
        self(report)
    }
}
