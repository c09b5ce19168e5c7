//! One run, and its result: a sampler or a baseline on a corpus with K topics, threads and a seed.

use std::path::PathBuf;

use lda_core::train::{OptionsError, Resolved, TrainOptions};
use serde::{Deserialize, Serialize};

use super::Method;
use super::corpora::CorpusName;
use super::documents::LengthBin;
use super::tuning::Overrides;

/// The request for one run. Runs of equal cells produce the same assignments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cell {
    /// Sampler or baseline.
    pub sampler: Method,
    /// Name of the variant, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Corpus.
    pub corpus: CorpusName,
    /// Number of topics K.
    pub topics: u32,
    /// Number of threads.
    pub threads: usize,
    /// Random seed.
    pub seed: u64,
    /// Document-topic prior α per topic.
    pub alpha: f64,
    /// Topic-word prior β.
    pub beta: f64,
    /// Largest number of epochs.
    pub epochs: u32,
    /// Limit of the CPU seconds of sampling, checked after each epoch.
    pub seconds: Option<f64>,
    /// Ends the run at the first evaluation with at least this log joint per token.
    pub until: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: u32,
    /// Options of the sampler.
    #[serde(flatten)]
    pub overrides: Overrides,
    /// Upper bounds of the length bins with separate likelihoods; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub length_bins: Vec<u64>,
    /// Share of the documents that are held out for perplexity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// Whether the topics of documents are counted at every evaluation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complexity: bool,
    /// Whether the likelihood of the words given θ and φ is computed at every evaluation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub predictive: bool,
}

impl Cell {
    /// Name for files and messages: everything that distinguishes the cell from others of a plan.
    pub fn name(&self) -> String {
        let Self { corpus, topics, threads, seed, .. } = self;
        format!("{corpus}-k{topics}-{}-t{threads}-s{seed}", self.method())
    }

    /// Name of the method in reports: that of the variant, sampler or baseline.
    pub fn method(&self) -> &str {
        self.variant.as_deref().unwrap_or(self.sampler.name())
    }

    /// Options of a run of this library's trainer.
    pub(super) fn options(&self) -> Result<TrainOptions, OptionsError> {
        let options = TrainOptions::new(self.topics)
            .alpha(self.alpha)
            .beta(self.beta)
            .seed(self.seed)
            .threads(self.threads);
        self.overrides.apply(options, self.sampler)
    }
}

/// The state of a run at an evaluated epoch; epoch 0 is the random start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// Completed epochs.
    pub epoch: u32,
    /// CPU seconds of sampling so far over all threads, without evaluation.
    pub cpu_seconds: f64,
    /// Wall-clock seconds of sampling so far, without evaluation.
    pub wall_seconds: f64,
    /// Share of the tokens whose topic changed in this epoch.
    pub changed: Option<f64>,
    /// Share of the proposals accepted in this epoch.
    pub acceptance: Option<f64>,
    /// LDA*'s acceptance rate π of this epoch: a proposal of the current topic counts as accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_with_repeats: Option<f64>,
    /// Metropolis-Hastings steps of the next epoch.
    pub mh_steps: Option<u32>,
    /// Log joint likelihood of the whole corpus; `None` for a baseline without assignments.
    pub log_joint: Option<f64>,
    /// Its document part.
    pub log_joint_doc: Option<f64>,
    /// Its word part.
    pub log_joint_word: Option<f64>,
    /// Log likelihood of the training words given θ and φ, over the whole corpus, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_predictive: Option<f64>,
    /// Perplexity of the held-out documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<f64>,
    /// Mean number of distinct topics K_d of a document, weighted by its tokens, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics_per_document: Option<f64>,
    /// Log likelihood per token by document length; `None` in a bin without tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_length: Vec<Option<f64>>,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Memory {
    /// Peak resident set size of the process, including reading and evaluation.
    pub peak: Option<u64>,
    /// Peak resident set size after reading the corpus.
    pub peak_reading: Option<u64>,
    /// The corpus.
    pub corpus: Option<u64>,
    /// Assignments, layout and counts.
    pub state: Option<u64>,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outcome {
    /// Resolved options; `None` for a baseline.
    pub resolved: Option<Resolved>,
    /// Training documents.
    pub documents: u64,
    /// Words of the corpus.
    pub words: u64,
    /// Training tokens.
    pub tokens: u64,
    /// Histogram of document lengths; empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<LengthBin>,
    /// Hash of the training documents.
    pub corpus_fingerprint: u64,
    /// Seconds for reading the corpus.
    pub read_seconds: f64,
    /// Seconds for layout and random start; `None` for a baseline.
    pub start_seconds: Option<f64>,
    /// Evaluated epochs, ascending, the random start first.
    pub points: Vec<Point>,
    /// Tokens per CPU second: median over the second half of the epochs.
    pub tokens_per_cpu_second: f64,
    /// Tokens per wall-clock second: median over the second half of the epochs.
    pub tokens_per_second: f64,
    /// Memory use.
    pub memory: Memory,
    /// Hash of the final assignments; `None` for a baseline.
    pub assignments_fingerprint: Option<u64>,
    /// Report of a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Done>,
}

/// Last message of an adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Done {
    /// Version of the baseline and of its platform.
    pub version: String,
    /// Effective options, under the baseline's own names.
    pub options: String,
    /// Work besides training that the CPU seconds include.
    pub clock: String,
    /// Peak resident set size of its processes in bytes, if known.
    pub peak_bytes: Option<u64>,
}

/// A cell, the path of its corpus, and a scratch directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub cell: Cell,
    pub path: PathBuf,
    pub scratch: PathBuf,
}

/// One line of a child's output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Message {
    /// An epoch was evaluated.
    Evaluated { epoch: u32, score: Score, tokens_per_cpu_second: f64 },
    /// The run has ended.
    Done(Box<Outcome>),
}

/// Quality of a state, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Score {
    /// Log joint per token.
    pub log_joint: Option<f64>,
    /// Perplexity of the held-out documents.
    pub perplexity: Option<f64>,
}

impl Point {
    /// Quality on a corpus of `tokens` tokens.
    pub fn score(&self, tokens: u64) -> Score {
        let log_joint = self.log_joint.map(|joint| joint / tokens as f64);
        Score { log_joint, perplexity: self.perplexity }
    }

    /// LDA*'s complexity ratio λ = K_d π: F+LDA's work per drawn topic over WarpLDA's work per
    /// accepted topic. `None` without proposals or without K_d.
    pub fn complexity_ratio(&self) -> Option<f64> {
        Some(self.topics_per_document? * self.acceptance?)
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.log_joint, self.perplexity) {
            (Some(joint), Some(perplexity)) => {
                write!(f, "{joint:.4} per token, perplexity {perplexity:.1}")
            }
            (Some(joint), None) => write!(f, "{joint:.4} per token"),
            (None, Some(perplexity)) => write!(f, "perplexity {perplexity:.1}"),
            (None, None) => f.write_str("not evaluated: set held-out"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use lda_core::train::SamplerKind;

    use super::*;

    pub(in crate::lab) fn cell() -> Cell {
        Cell {
            sampler: SamplerKind::FPlus.into(),
            variant: None,
            corpus: "tiny".parse().unwrap(),
            topics: 3,
            threads: 1,
            seed: 7,
            alpha: 0.5,
            beta: 0.1,
            epochs: 7,
            seconds: None,
            until: None,
            evaluate_every: 3,
            overrides: Overrides::default(),
            length_bins: Vec::new(),
            held_out: None,
            complexity: false,
            predictive: false,
        }
    }

    #[test]
    fn records_from_before_variants_are_read() {
        let json = r#"{"sampler":"warp","corpus":"kos","topics":9,"threads":1,"seed":2,"alpha":0.5,
            "beta":0.1,"epochs":7,"seconds":null,"until":-9.186,"evaluate-every":3,"mh-steps":2,
            "short-length":null,"ranges":null}"#;
        let read: Cell = serde_json::from_str(json).unwrap();
        assert_eq!(read.overrides, Overrides { mh_steps: Some(2), ..Overrides::default() });
        assert_eq!((read.variant.as_deref(), read.method()), (None, "warp"));
        // A record written now has the same keys, and newer ones.
        let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
        let since = [
            "proposals",
            "start",
            "start-degree",
            "alpha-by-size",
            "exclude-converged-from",
            "warm-up",
        ];
        for key in since {
            json[key] = serde_json::Value::Null;
        }
        assert_eq!(serde_json::to_value(read).unwrap(), json);
        let unknown = json.to_string().replace("mh-steps", "steps");
        assert!(serde_json::from_str::<Cell>(&unknown).is_err());
    }

    #[test]
    fn records_from_before_baselines_are_read() {
        let written = serde_json::to_value(cell()).unwrap();
        assert_eq!(written["sampler"], "f-plus");
        let since = ["held-out", "complexity", "predictive"];
        assert!(since.iter().all(|key| written.get(key).is_none()));
        let point = r#"{"epoch":5,"cpu-seconds":0.5,"wall-seconds":0.5,"changed":0.1,
            "acceptance":null,"mh-steps":null,"log-joint":-9.0,"log-joint-doc":-4.0,
            "log-joint-word":-5.0}"#;
        let point: Point = serde_json::from_str(point).unwrap();
        assert_eq!((point.log_joint, point.perplexity), (Some(-9.0), None));
        let memory = r#"{"peak":9,"peak-reading":null,"corpus":1,"state":2}"#;
        assert_eq!(serde_json::from_str::<Memory>(memory).unwrap().state, Some(2));
    }
}
