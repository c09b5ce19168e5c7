//! The process of one run.
//!
//! A run has a process of its own, so that its peak memory is its own and caches start cold. The
//! parent writes a [`Job`] as one line to the child's standard input and keeps it open; if it
//! closes, the parent is gone. The child answers with JSON lines, one [`Message`] each.

use std::io::Write;
use std::time::Instant;

use lda_core::Corpus;
use lda_core::eval::Phi;
use lda_core::train::{EpochReport, Init, OptionsError, Trainer};

use super::cell::{Cell, Job, Memory, Message, Outcome, Point};
use super::documents::{lengths_of, topics_per_document};
use super::held_out::Split;
use super::lengths::by_length;
use super::polya_urn::PolyaUrn;
use super::process::{cpu_time, peak_memory};
use super::{LabError, Method, baseline, median};

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
        add_optional(trainer, &split, cell, point(trainer, report, cpu_seconds))
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
fn add_optional(
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
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use lda_core::corpus::{CorpusBuilder, write_uci};
    use lda_core::train::SamplerKind;

    use super::super::cell::tests::cell;
    use super::super::documents::LengthBin;
    use super::super::tuning::Overrides;
    use super::*;

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
    fn a_cell_ends_at_its_likelihood() {
        let (messages, _) = serve_cell(Cell { until: Some(-1e9), ..cell() });
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        assert_eq!(outcome.points.last().unwrap().epoch, 3);
    }

    #[test]
    fn topics_of_documents_are_counted_on_request() {
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
    fn predictive_likelihood_is_computed_on_request() {
        let (messages, _) = serve_cell(Cell { predictive: true, ..cell() });
        let Some(Message::Done(outcome)) = messages.last() else { panic!("{messages:?}") };
        // A document has five of the ten words, so the value is between ln 5 and ln 10.
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
    fn a_variant_runs_with_its_options() {
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
    fn a_refused_cell_is_an_error() {
        let (messages, result) = serve_cell(Cell { beta: -1.0, ..cell() });
        assert!(messages.is_empty());
        assert!(matches!(result, Err(LabError::Options(_))), "{result:?}");
        assert!(matches!(serve("{}", Vec::new()), Err(LabError::Syntax { .. })));
    }
}
