//! One run: a sampler or a baseline on a corpus with K topics, threads and a seed.
//!
//! A run has a process of its own, so that its peak memory is its own and caches start cold. The
//! parent writes a [`Job`] as one line to the child's standard input and keeps it open; if it
//! closes, the parent is gone. The child answers with JSON lines, one [`Message`] each.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use lda_core::Corpus;
use lda_core::eval::Phi;
use lda_core::train::{EpochReport, Init, OptionsError, Resolved, TrainOptions, Trainer};
use serde::{Deserialize, Serialize};

use super::corpora::CorpusName;
use super::documents::{LengthBin, lengths_of, topics_per_document};
use super::held_out::Split;
use super::lengths::by_length;
use super::polya_urn::PolyaUrn;
use super::process::{cpu_time, peak_memory};
use super::tuning::Overrides;
use super::{Done, LabError, Method, baseline, median};

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

    fn options(&self) -> Result<TrainOptions, OptionsError> {
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
                write!(f, "{joint:.4} a token, perplexity {perplexity:.1}")
            }
            (Some(joint), None) => write!(f, "{joint:.4} a token"),
            (None, Some(perplexity)) => write!(f, "perplexity {perplexity:.1}"),
            (None, None) => f.write_str("not judged: give held-out"),
        }
    }
}

/// Child process: runs the job in `line` and writes messages to `output`.
///
/// # Errors
/// A malformed job, or a corpus or options that are refused.
pub fn serve(line: &str, mut output: impl Write) -> Result<(), LabError> {
    let refuse = |message: String| LabError::Syntax { path: "standard input".into(), message };
    let job: Job = serde_json::from_str(line)
        .map_err(|error| refuse(format!("no job ({error}): `lab run` starts this command")))?;
    let mut send = |message: &Message| {
        let line = serde_json::to_string(message).map_err(std::io::Error::from);
        line.and_then(|line| {
            writeln!(output, "{line}")?;
            output.flush()
        })
        .map_err(LabError::write("standard output"))
    };
    let evaluated = |point: &Point, tokens: u64, rate: f64| {
        let (epoch, score) = (point.epoch, point.score(tokens));
        send(&Message::Evaluated { epoch, score, tokens_per_cpu_second: rate })
    };
    let outcome = match job.cell.sampler {
        Method::Sampler(_) | Method::PolyaUrn | Method::Auto => run(&job, evaluated)?,
        Method::Baseline(baseline) => baseline::run(baseline, &job, evaluated)?,
    };
    send(&Message::Done(Box::new(outcome)))
}

/// Runs epochs up to the cell's limits; calls `evaluated(point, tokens of the corpus, tokens per
/// CPU second)`.
fn run(
    job: &Job,
    mut evaluated: impl FnMut(&Point, u64, f64) -> Result<(), LabError>,
) -> Result<Outcome, LabError> {
    let cell = &job.cell;
    let start = Instant::now();
    let split = Split::new(Corpus::read(&job.path)?, cell.held_out)?;
    let corpus = &split.training;
    let read_seconds = start.elapsed().as_secs_f64();
    let peak_reading = peak_memory();
    let start = Instant::now();
    let options = cell.options()?;
    let mut trainer = match cell.sampler {
        Method::PolyaUrn => {
            Trainer::with_sampler(corpus, &options, PolyaUrn::default(), Init::default())?
        }
        _ => Trainer::new(corpus, &options)?,
    };
    let start_seconds = start.elapsed().as_secs_f64();

    let tokens = corpus.num_tokens();
    let evaluate = |trainer: &Trainer<&Corpus>, report: Option<&EpochReport>, cpu_seconds: f64| {
        judged(trainer, &split, cell, point(trainer, report, cpu_seconds))
    };
    let mut points = vec![evaluate(&trainer, None, 0.0)?];
    let mut clocks: Vec<Clock> = Vec::new();
    let (mut cpu, mut wall) = (0.0, 0.0);
    loop {
        let before = cpu_time();
        let report = trainer.epoch();
        let spent = (cpu_time() - before).as_secs_f64();
        clocks.push(Clock { cpu: spent, wall: report.seconds - wall });
        (cpu, wall) = (cpu + spent, report.seconds);
        let last = report.epoch >= cell.epochs || cell.seconds.is_some_and(|most| cpu >= most);
        if last || report.epoch % cell.evaluate_every == 0 {
            let point = evaluate(&trainer, Some(&report), cpu)?;
            let log_joint = point.score(tokens).log_joint;
            let there = log_joint.zip(cell.until).is_some_and(|(found, until)| found >= until);
            evaluated(&point, tokens, tokens as f64 / spent.max(1e-9))?;
            points.push(point);
            if last || there {
                break;
            }
        }
    }
    let memory = Memory {
        peak: peak_memory(),
        peak_reading,
        corpus: Some(corpus.memory() as u64),
        state: Some(trainer.memory()),
    };
    let settled = &clocks[clocks.len() / 2..];
    let rate = |seconds: fn(&Clock) -> f64| {
        tokens as f64 / median(settled.iter().map(seconds)).unwrap_or(f64::NAN).max(1e-9)
    };
    Ok(Outcome {
        resolved: Some(trainer.resolved().clone()),
        documents: corpus.num_documents() as u64,
        words: corpus.num_words() as u64,
        tokens,
        lengths: lengths_of(corpus),
        corpus_fingerprint: corpus.fingerprint(),
        read_seconds,
        start_seconds: Some(start_seconds),
        points,
        tokens_per_cpu_second: rate(|clock| clock.cpu),
        tokens_per_second: rate(|clock| clock.wall),
        memory,
        assignments_fingerprint: Some(trainer.assignments().fingerprint()),
        baseline: None,
    })
}

/// Measures the seconds of one epoch.
struct Clock {
    cpu: f64,
    wall: f64,
}

/// Adds the optional figures to a point.
fn judged(
    trainer: &Trainer<&Corpus>,
    split: &Split,
    cell: &Cell,
    mut point: Point,
) -> Result<Point, LabError> {
    let by_lengths = !cell.length_bins.is_empty();
    if cell.complexity || by_lengths {
        let (assignments, training) = (trainer.assignments(), &split.training);
        let assigned = |d| assignments.document(d);
        if cell.complexity {
            let documents = training.num_documents();
            point.topics_per_document = topics_per_document(assigned, documents, cell.topics);
        }
        if by_lengths {
            point.by_length = by_length(&trainer.model(), assigned, training, &cell.length_bins);
        }
    }
    point.log_predictive = cell.predictive.then(|| trainer.log_predictive());
    if split.held_out.is_some() {
        // An invalid β was refused earlier.
        let phi = Phi::from_model(&trainer.model()).map_err(OptionsError::from)?;
        point.perplexity = split.perplexity(&phi, cell.alpha)?;
    }
    Ok(point)
}

fn point(trainer: &Trainer<&Corpus>, report: Option<&EpochReport>, cpu_seconds: f64) -> Point {
    let joint = trainer.log_joint();
    Point {
        epoch: trainer.epochs(),
        cpu_seconds,
        wall_seconds: report.map_or(0.0, |report| report.seconds),
        changed: report.map(|report| report.changed),
        acceptance: report.and_then(|report| report.acceptance),
        acceptance_with_repeats: report.and_then(|report| report.acceptance_with_repeats),
        mh_steps: report.and_then(|report| report.mh_steps),
        log_joint: Some(joint.total()),
        log_joint_doc: Some(joint.documents),
        log_joint_word: Some(joint.words),
        ..Point::default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use lda_core::corpus::{CorpusBuilder, write_uci};
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

    fn serve_cell(cell: Cell) -> (Vec<Message>, Result<(), LabError>) {
        // Tests run concurrently; none may read what another is writing.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lda-lab-cell-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("docword.tiny.txt");
        let mut builder = CorpusBuilder::new();
        for d in 0..20u32 {
            builder.push_tokens((0..10).map(|i| (d % 2) * 5 + i % 5)).unwrap();
        }
        let file = std::fs::File::create(&path).unwrap();
        write_uci(&builder.build().unwrap(), file).unwrap();
        let scratch = directory.join("scratch");
        let job = serde_json::to_string(&Job { cell, path, scratch }).unwrap();
        let mut output = Vec::new();
        let result = serve(&job, &mut output);
        std::fs::remove_dir_all(directory).unwrap();
        let text = String::from_utf8(output).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), result)
    }

    #[test]
    fn a_cell_evaluates_every_third_epoch_and_the_last() {
        let (messages, result) = serve_cell(cell());
        result.unwrap();
        let (Some(Message::Done(outcome)), 4) = (messages.last(), messages.len()) else {
            panic!("{messages:?}");
        };
        let epochs: Vec<u32> = outcome.points.iter().map(|point| point.epoch).collect();
        assert_eq!(epochs, [0, 3, 6, 7]);
        assert_eq!(outcome.tokens, 200);
        assert!(outcome.points.is_sorted_by(|a, b| a.cpu_seconds < b.cpu_seconds));
        for p in &outcome.points {
            assert_eq!(p.log_joint.unwrap(), p.log_joint_doc.unwrap() + p.log_joint_word.unwrap());
        }
        assert!(outcome.tokens_per_cpu_second > 0.0);
    }

    #[test]
    fn a_cell_ends_where_it_was_to_get() {
        let (messages, _) = serve_cell(Cell { until: Some(-1e9), ..cell() });
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        assert_eq!(outcome.points.last().unwrap().epoch, 3);
    }

    #[test]
    fn topics_of_documents_are_counted_where_that_is_asked_for() {
        let run = |complexity| {
            let sampler = SamplerKind::Warp.into();
            let (messages, _) = serve_cell(Cell { sampler, complexity, ..cell() });
            let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
            (**outcome).clone()
        };
        let outcome = run(true);
        let counted =
            |point: &Point| point.topics_per_document.is_some_and(|n| n > 1.0 && n <= 3.0);
        assert!(outcome.points.iter().all(counted), "{:?}", outcome.points);
        // The random start has no proposals.
        let known: Vec<bool> =
            outcome.points.iter().map(|point| point.complexity_ratio().is_some()).collect();
        assert_eq!(known, [false, true, true, true]);
        let without = run(false);
        assert!(without.points.iter().all(|point| point.topics_per_document.is_none()));
        assert_eq!(without.assignments_fingerprint, outcome.assignments_fingerprint);
        assert_eq!(outcome.lengths, [LengthBin { longest: 10, documents: 20, tokens: 200 }]);
    }

    #[test]
    fn words_are_explained_where_that_is_asked_for() {
        let (messages, _) = serve_cell(Cell { predictive: true, ..cell() });
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        // Ten words, of which a document has five: the value lies between no knowledge and that.
        let known = |point: &Point| -point.log_predictive.unwrap() / 200.0;
        let knows = |point: &Point| (1.6..2.4).contains(&known(point));
        assert!(outcome.points.iter().all(knows), "{:?}", outcome.points);
        let (messages, _) = serve_cell(cell());
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        assert!(outcome.points.iter().all(|point| point.log_predictive.is_none()));
    }

    #[test]
    fn held_out_documents_have_a_perplexity() {
        let (messages, _) = serve_cell(Cell { held_out: Some(0.3), ..cell() });
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        assert!(outcome.documents < 20 && outcome.tokens == 10 * outcome.documents);
        // Ten words, of which a document has five.
        let perplexity = |point: &Point| point.perplexity.unwrap();
        assert!(outcome.points.iter().all(|point| (4.9..11.0).contains(&perplexity(point))));
    }

    #[test]
    fn what_was_written_before_there_were_variants_is_read() {
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
    fn a_variant_is_run_with_its_options() {
        let overrides = Overrides { mh_steps: Some(3), ..Overrides::default() };
        let sampler = SamplerKind::Warp.into();
        let (messages, _) =
            serve_cell(Cell { sampler, variant: Some("three".into()), overrides, ..cell() });
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        assert_eq!(outcome.resolved.as_ref().unwrap().mh_steps, 3);
    }

    #[test]
    fn the_polya_urn_runs_like_the_samplers_of_the_library() {
        let (messages, result) = serve_cell(Cell { sampler: Method::PolyaUrn, ..cell() });
        result.unwrap();
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        assert_eq!(outcome.resolved.as_ref().unwrap().sampler, SamplerKind::Custom);
        let joint = |point: &Point| point.log_joint.unwrap();
        let (first, last) = (&outcome.points[0], outcome.points.last().unwrap());
        assert!(joint(first) < joint(last), "{:?}", outcome.points);
    }

    #[test]
    fn what_was_written_before_there_were_baselines_is_read() {
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

    #[test]
    fn a_refused_cell_is_an_error() {
        let (messages, result) = serve_cell(Cell { beta: -1.0, ..cell() });
        assert!(messages.is_empty());
        assert!(matches!(result, Err(LabError::Options(_))), "{result:?}");
        assert!(matches!(serve("{}", Vec::new()), Err(LabError::Syntax { .. })));
    }
}
