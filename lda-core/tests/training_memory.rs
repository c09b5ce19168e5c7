//! Peak memory of a whole training process, on a generated corpus and, where they are asked for, on
//! real ones.
//!
//! The promise: corpus pairs, plus 8 bytes per token of short documents and 6 + 2M of long ones, plus
//! counts. F+LDA keeps it with where words and documents lie counted in; WarpLDA, which has no byte
//! to spare with one proposal, needs that beside (8 bytes per word in a document range, 12 a document,
//! 15 a token of the most frequent word). Each case runs in a process of its own, which reads its
//! corpus from a file. At K = 1,000 the hybrid is WarpLDA on the generated corpus and on scotus.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lda_benches::synthetic::Preset;
use lda_core::Corpus;
use lda_core::corpus::write_uci;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

/// Memory of the program itself: code, stacks, the pool, the corpus reader's buffers.
const PROCESS: u64 = 16 << 20;

#[path = "common/real.rs"]
mod real;

/// Largest resident size of this process, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a field of it");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes << 10
}

/// Corpus, sampler, and promised bytes per token: 8 for F+LDA, 6 + 2M for WarpLDA.
type Case = (&'static str, SamplerKind, u64);

const GENERATED: [Case; 3] = [
    ("generated", SamplerKind::FPlus, 8),
    ("generated", SamplerKind::Warp, 6 + 2),
    ("generated", SamplerKind::Hybrid, 6 + 2),
];

const REAL: [Case; 4] = [
    ("reddit", SamplerKind::FPlus, 8),
    ("reddit", SamplerKind::Warp, 6 + 2),
    ("scotus", SamplerKind::FPlus, 8),
    ("scotus", SamplerKind::Hybrid, 6 + 2),
];

/// The path of the corpus in a process of its own.
const PATH: &str = "LDA_MEMORY_CORPUS";

/// The index of the case in a process of its own.
const CASE: &str = "LDA_MEMORY_CASE";

#[test]
fn peak_of_the_process_is_what_the_tokens_need() {
    const NAME: &str = "peak_of_the_process_is_what_the_tokens_need";
    if let Some((case, path)) = child() {
        return stays_within(GENERATED[case], &path);
    }
    let spec = Preset::NytLike.spec().scaled(0.3).expect("a legal scale");
    let corpus = spec.generate(1).expect("a legal law").corpus;
    let path = std::env::temp_dir().join(format!("lda-training-memory-{}.txt", std::process::id()));
    let mut file = BufWriter::new(File::create(&path).expect("a temporary folder can be written"));
    write_uci(&corpus, &mut file).and_then(|()| file.flush()).expect("there is room");
    drop(corpus);
    let failures = run_each(NAME, &GENERATED, |_| path.clone());
    fs::remove_file(path).expect("it was just written");
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
#[ignore = "reads real corpora; .ci/extended runs it"]
fn peak_of_the_process_on_real_corpora() {
    if let Some((case, path)) = child() {
        return stays_within(REAL[case], &path);
    }
    let path = |name: &str| real::file(&format!("docword.{name}.txt.gz"));
    let failures = run_each("peak_of_the_process_on_real_corpora", &REAL, path);
    assert!(failures.is_empty(), "{failures:?}");
}

/// The case and the corpus of this process, if it was started for one.
fn child() -> Option<(usize, PathBuf)> {
    let case = std::env::var(CASE).ok()?.parse().expect("a parent sets a number");
    Some((case, std::env::var_os(PATH).expect("a parent sets both").into()))
}

/// Runs each case in a process of its own, all at once: none has more than one thread. Returns
/// the outputs of those that failed.
fn run_each(test: &str, cases: &[Case], path: impl Fn(&str) -> PathBuf) -> Vec<String> {
    let program = std::env::current_exe().expect("it is running");
    let start = |(i, case): (usize, &Case)| {
        Command::new(&program)
            .args([test, "--exact", "--include-ignored"])
            .env(CASE, i.to_string())
            .env(PATH, path(case.0))
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let runs: Vec<_> = cases.iter().enumerate().map(start).collect();
    let ended = runs
        .into_iter()
        .zip(cases)
        .map(|(run, case)| (run.wait_with_output().expect("it is a child"), case));
    ended
        .filter(|(run, _)| !run.status.success())
        .map(|(run, case)| format!("{case:?}: {}", String::from_utf8_lossy(&run.stdout)))
        .collect()
}

/// Reads, trains and evaluates; the peak must stay within what is promised.
fn stays_within((_, sampler, bytes_a_token): Case, path: &Path) {
    let corpus = Corpus::read(path).expect("a published file");
    let options = TrainOptions::new(1000).sampler(sampler).threads(1);
    let estimate = options.estimate_memory(&corpus).expect("good options");
    let mut trainer = Trainer::new(&corpus, &options).expect("good options");
    for _ in 0..2 {
        trainer.epoch();
    }
    assert!(trainer.log_joint().total() < 0.0);
    // Where a sampler keeps no counts, evaluating makes them.
    let counts = estimate.document_counts + estimate.word_counts + estimate.evaluation;
    let pairs = corpus.memory() as u64;
    let beside = if sampler != SamplerKind::FPlus { estimate.layout + estimate.scratch } else { 0 };
    let bound = pairs + corpus.num_tokens() * bytes_a_token + counts + beside + PROCESS;
    let peak = peak();
    assert!(peak <= bound, "peak {peak} bytes, promised {bound}; {estimate:?}");
    let estimated = pairs + estimate.total() + PROCESS;
    assert!(peak <= estimated, "peak {peak} bytes, estimated {estimated}; {estimate:?}");
    // A bound that is far off would prove nothing.
    assert!(bound <= peak * 3 / 2, "peak {peak} bytes, promised {bound}; {estimate:?}");
}
