//! One run of an arm.

use std::fmt::Display;
use std::path::Path;
use std::time::Instant;

use lda_core::Corpus;
use lda_core::eval::log_joint;
use lda_dist::config::Options;
use lda_dist::in_process::InProcess;
use lda_dist::spec::ModelSpec;

use super::super::process::thread_time;
use super::super::{LabError, Machine};
use super::tally::{Tally, Watched, take_least};
use super::{Of, TrafficRun};

/// Topic-word prior β of all traffic runs.
const BETA: f64 = 0.01;

pub(super) fn run(
    of: &Of,
    cache: &Path,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<TrafficRun, LabError> {
    let corpus = Corpus::read(&of.corpus.file(cache)?)?;
    let refuse = |error: &dyn Display| LabError::Value {
        key: "arm",
        value: of.name(),
        remedy: error.to_string(),
    };
    let words = u32::try_from(corpus.num_words()).unwrap_or(u32::MAX);
    let alpha = 50.0 / f64::from(of.topics);
    let spec = ModelSpec::new(of.topics, words, alpha.into(), BETA, of.seed)
        .map_err(|error| refuse(&error))?;
    let options = of.options.options(of.shards, words);
    let mut kept: Option<Vec<Watched>> = None;
    for repeat in 1..=of.repeats {
        let found = once(of, &corpus, &spec, &options, &refuse, &|line| {
            let of_repeats =
                if of.repeats > 1 { format!(", repeat {repeat}") } else { String::new() };
            tell(&format!("{}{of_repeats}: {line}", of.name()));
        })?;
        match &mut kept {
            None => kept = Some(found),
            Some(kept) => {
                if !take_least(kept, &found) {
                    return Err(refuse(&"another repeat has moved other bytes"));
                }
            }
        }
    }
    let epochs = kept.unwrap_or_default().into_iter().map(|(epoch, _)| epoch).collect();
    Ok(TrafficRun {
        of: of.clone(),
        machine: Machine::detect(),
        tokens: corpus.num_tokens(),
        words: corpus.word_frequencies().iter().filter(|&&tokens| tokens > 0).count() as u64,
        servers: options.servers,
        partitions: options.partitions,
        rounds: options.rounds,
        epochs,
    })
}

/// Runs one repeat.
fn once(
    of: &Of,
    corpus: &Corpus,
    spec: &ModelSpec,
    options: &Options,
    refuse: &dyn Fn(&dyn Display) -> LabError,
    tell: &dyn Fn(&str),
) -> Result<Vec<Watched>, LabError> {
    let mut run = InProcess::<u16>::new(spec, corpus, options).map_err(|error| refuse(&error))?;
    let mut tally = Tally::new(options.servers, thread_time);
    let mut epochs = Vec::new();
    for epoch in 1..=of.epochs {
        let begun = Instant::now();
        let bytes = run
            .epoch_watched(&mut |happening| tally.see(happening))
            .map_err(|error| refuse(&error))?;
        let seconds = begun.elapsed().as_secs_f64();
        let (mut ended, servers) = tally.end(epoch, bytes, seconds);
        if epoch == of.epochs {
            let joint = log_joint(&run, spec.alpha(), BETA).map_err(|error| refuse(&error))?;
            ended.log_joint_per_token = Some(joint.total() / corpus.num_tokens() as f64);
        }
        tell(&format!(
            "epoch {epoch} of {}, {:.1} MB, heaviest server {:.3} of the mean, {seconds:.1} s",
            of.epochs,
            ended.bytes.total() as f64 / 1e6,
            ended.heaviest_bytes,
        ));
        epochs.push((ended, servers));
    }
    Ok(epochs)
}
