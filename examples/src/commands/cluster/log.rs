//! The log of a run: one JSON object per epoch.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use lda_dist::cluster::{Memory, NonZeros, Report, Waited};
use lda_dist::stats::Bytes;
use serde::Serialize;

/// A log that is appended to: a restarted master continues it.
#[derive(Debug)]
pub struct Log {
    file: File,
    begun: Instant,
    tokens: u64,
}

#[derive(Serialize)]
struct Line {
    epoch: u32,
    attempt: u32,
    kept: u32,
    tokens: u64,
    /// Seconds since the previous epoch, or since the start of this master.
    seconds: f64,
    /// Absent if the epoch was not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_joint: Option<f64>,
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
        Ok(Self { file, begun: Instant::now(), tokens })
    }

    /// Appends an epoch.
    ///
    /// # Errors
    /// Those of the system.
    pub fn add(&mut self, report: &Report) -> io::Result<()> {
        let Report { epoch, attempt, kept, bytes, memory, waited, log_joint, non_zeros } = *report;
        let seconds = self.begun.elapsed().as_secs_f64();
        self.begun = Instant::now();
        let Bytes { sizes, routes, rows, gained, pushed, answers, totals } = bytes;
        let all = bytes.total();
        let Waited { servers, master } = waited;
        let Memory { worker, server } = memory;
        let line = Line {
            epoch,
            attempt,
            kept,
            tokens: self.tokens,
            seconds,
            log_joint,
            non_zeros: non_zeros
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
