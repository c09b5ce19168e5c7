//! The log of a run: one JSON object per epoch.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use lda_dist::cluster::{EpochTime, Memory, NonZeros, Report, Waited};
use lda_dist::stats::Bytes;
use serde::Serialize;

/// A log that is appended to: a restarted master continues it.
#[derive(Debug)]
pub struct Log {
    file: File,
    tokens: u64,
}

/// Fields up to `log_joint_per_token` have the names and meanings of `lda train --log`.
#[derive(Serialize)]
struct Line {
    epoch: u32,
    /// Seconds of sampling since the start of this master, including evaluations.
    seconds: f64,
    tokens_per_second: f64,
    tokens: u64,
    /// Share of the tokens that were sampled; absent if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<f64>,
    /// Absent if the epoch was not evaluated, like the next three.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_joint: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_joint_doc: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_joint_word: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_joint_per_token: Option<f64>,
    /// Held-out perplexity; absent if it was not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    perplexity: Option<f64>,
    attempt: u32,
    /// Number of workers that took part.
    workers: u32,
    kept: u32,
    /// Absent if the epoch was not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    non_zeros: Option<LineNonZeros>,
    bytes: LineBytes,
    /// Sum over all workers.
    waited_seconds: LineWaited,
    heaviest_bytes: LineMemory,
}

#[derive(Serialize)]
struct LineNonZeros {
    words: u64,
    documents: u64,
}

#[derive(Serialize)]
struct LineBytes {
    all: u64,
    sizes: u64,
    routes: u64,
    rows: u64,
    gained: u64,
    pushed: u64,
    answers: u64,
    totals: u64,
}

#[derive(Serialize)]
struct LineWaited {
    servers: f64,
    rounds: f64,
}

#[derive(Serialize)]
struct LineMemory {
    worker: u64,
    server: u64,
}

impl Log {
    /// Opens the log of a corpus of `tokens` tokens.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path, tokens: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, tokens })
    }

    /// Appends an epoch.
    ///
    /// # Errors
    /// Those of the system.
    pub fn add(
        &mut self,
        report: &Report,
        time: EpochTime,
        perplexity: Option<f64>,
    ) -> io::Result<()> {
        let &Report { epoch, attempt, workers, kept, bytes, memory, waited, sampled, .. } = report;
        let tokens = self.tokens as f64;
        let Bytes { sizes, routes, rows, gained, pushed, answers, totals } = bytes;
        let all = bytes.total();
        let Waited { servers, master } = waited;
        let Memory { worker, server } = memory;
        let line = Line {
            epoch,
            seconds: time.total,
            tokens_per_second: tokens / time.epoch.max(1e-9),
            tokens: self.tokens,
            sampled: (sampled < self.tokens).then(|| sampled as f64 / tokens),
            log_joint: report.log_joint,
            log_joint_doc: report.log_joint_doc,
            log_joint_word: report.log_joint_word,
            log_joint_per_token: report.log_joint.map(|joint| joint / tokens),
            perplexity,
            attempt,
            workers,
            kept,
            non_zeros: report
                .non_zeros
                .map(|NonZeros { words, documents }| LineNonZeros { words, documents }),
            bytes: LineBytes { all, sizes, routes, rows, gained, pushed, answers, totals },
            waited_seconds: LineWaited {
                servers: servers.as_secs_f64(),
                rounds: master.as_secs_f64(),
            },
            heaviest_bytes: LineMemory { worker, server },
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        // One write per line, so that a concurrent reader sees whole lines.
        self.file.write_all(&line)
    }
}
