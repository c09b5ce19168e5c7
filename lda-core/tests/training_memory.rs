//! Peak memory of a whole training process, on real corpora where they are at hand: `LDA_CORPORA`,
//! or the folder beside the repository.
//!
//! The promise: corpus pairs, plus 8 bytes per token of short documents and 6 + 2M of long ones, plus
//! counts. F+LDA keeps it with where words and documents lie counted in; WarpLDA, which has no byte
//! to spare with one proposal, needs that beside (8 bytes per word in a document range, 12 a document,
//! 15 a token of the most frequent word). Each case runs in a process of its own. At K = 1,000 the
//! hybrid is WarpLDA on scotus.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lda_core::Corpus;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

/// Memory of the program itself: code, stacks, the pool, the corpus reader's buffers.
const PROCESS: u64 = 16 << 20;

#[path = "common/real.rs"]
mod real;

fn corpus(name: &str) -> Option<PathBuf> {
    real::file(&format!("docword.{name}.txt.gz"))
}

/// Largest resident size of this process, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a field of it");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes << 10
}

/// Corpus, sampler, and promised bytes per token: 8 for F+LDA, 6 + 2M for WarpLDA.
const CASES: [(&str, SamplerKind, u64); 4] = [
    ("reddit", SamplerKind::FPlus, 8),
    ("reddit", SamplerKind::Warp, 6 + 2),
    ("scotus", SamplerKind::FPlus, 8),
    ("scotus", SamplerKind::Hybrid, 6 + 2),
];

/// Names the case that a process of its own is to run.
const CASE: &str = "LDA_MEMORY_CASE";

#[test]
fn peak_of_the_process_is_what_the_tokens_need() {
    if let Ok(case) = std::env::var(CASE) {
        return stays_within(CASES[case.parse::<usize>().expect("set below")]);
    }
    let program = std::env::current_exe().expect("it is running");
    let start = |i: usize| {
        let mut command = Command::new(&program);
        command.env(CASE, i.to_string()).stdout(Stdio::piped()).spawn().expect("it starts")
    };
    // All at once: none has more than one thread.
    let runs: Vec<_> = (0..CASES.len()).map(start).collect();
    for (run, case) in runs.into_iter().zip(&CASES) {
        let run = run.wait_with_output().expect("it is a child");
        assert!(run.status.success(), "{case:?}: {}", String::from_utf8_lossy(&run.stdout));
    }
}

/// Reads, trains and evaluates; the peak must stay within what is promised.
fn stays_within((name, sampler, bytes_a_token): (&str, SamplerKind, u64)) {
    let Some(path) = corpus(name) else { return };
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
