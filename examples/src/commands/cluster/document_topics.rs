//! `lda cluster document-topics`: the topics of the training documents at a checkpoint of a run.
//!
//! It needs the documents, the configuration and the checkpoints, and no node. Shards are read one after the
//! other, so its memory is that of one shard. Several processes can each write a [part](Part).

use std::io::{self, Write};
use std::ops::Range;

use lda_core::prior::Alpha;
use lda_dist::cluster::{Failed, RunError, SavedTopics};
use lda_examples::output::Output;
use serde::Serialize;

use crate::commands::cluster::args::DocumentTopics;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::saved::SavedRun;

/// A part of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    index: u16,
    of: u16,
}

/// Topics of a document. The fields of `lda infer` have the same names.
#[derive(Serialize)]
struct Line<'n> {
    epoch: u32,
    document: u64,
    /// Name of the document, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'n str>,
    tokens: u64,
    /// (topic, share), largest first.
    topics: Vec<(u32, f64)>,
}

impl Default for Part {
    /// All shards.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl Part {
    /// Parses `I/N`.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let part = text.split_once('/').and_then(|(index, of)| {
            Some(Self { index: index.parse().ok()?, of: of.parse().ok()? })
        });
        let part = part.filter(|part| part.index < part.of);
        part.ok_or_else(|| "give I/N: part I, from 0, of N parts, as in 0/4".to_owned())
    }

    /// The shards of this part. All parts together have every shard once, in order.
    fn shards(self, all: u16) -> Range<u16> {
        let first = |part: u16| (u32::from(part) * u32::from(all) / u32::from(self.of)) as u16;
        first(self.index)..first(self.index + 1)
    }
}

/// Reads the checkpoint and writes a line per document.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &DocumentTopics) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    if let Some(out) = args.out.as_ref().filter(|out| {
        !out.starts_with("/dev") && out.extension().is_none_or(|extension| extension != "jsonl")
    }) {
        let out = out.display();
        return Err(ClusterError::Usage(format!("--out {out}: name a file that ends in .jsonl")));
    }
    let run = SavedRun::open(&args.config, args.base.as_deref())?;
    let epoch = match args.epoch {
        Some(epoch) => epoch,
        None => SavedTopics::last_epoch(&run.setup, &*run.snapshots).map_err(RunError::from)?,
    };
    let mut work =
        Work { run, epoch, part: args.part.unwrap_or_default(), documents: 0, failed: None };
    let written = match args.out.as_deref().map(Output::create).transpose()? {
        Some(output) => output.fill(|out| work.write(out)).map_err(ClusterError::from),
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            match work.write(&mut out).and_then(|()| out.flush()) {
                // A reader such as `head` closes the pipe after the first lines, which is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(ClusterError::Lines),
            }
        }
    };
    if let Some(failed) = work.failed {
        return Err(failed);
    }
    written?;
    args.program.note(&format!("the topics of {} documents after epoch {epoch}", work.documents));
    Ok(())
}

/// The checkpoint to read, and what was read of it.
struct Work {
    run: SavedRun,
    epoch: u32,
    part: Part,
    documents: u64,
    /// Error that is not one of writing.
    failed: Option<ClusterError>,
}

impl Work {
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for shard in self.part.shards(self.run.documents.num_shards()) {
            let SavedRun { documents, setup, snapshots, .. } = &self.run;
            let read = SavedTopics::read(setup, documents, &**snapshots, (self.epoch, shard));
            match read {
                Ok(saved) => self.write_shard(&saved, out)?,
                Err(failed) => {
                    self.failed = Some(match failed {
                        Failed::Snapshot { .. } => ClusterError::Checkpoint(failed),
                        failed => RunError::from(failed).into(),
                    });
                    return Err(io::Error::other("the checkpoint cannot be read"));
                }
            }
        }
        Ok(())
    }

    fn write_shard(&mut self, saved: &SavedTopics, out: &mut dyn Write) -> io::Result<()> {
        let alpha = &saved.priors().alpha;
        for (at, row) in saved.rows().enumerate() {
            let document = saved.first() + at as u64;
            let tokens = row.iter().map(|entry| u64::from(entry.1)).sum();
            let name = saved.documents().document_name(at);
            let topics = shares(row, tokens, alpha, self.run.setup.spec.topics() as usize);
            serde_json::to_writer(
                &mut *out,
                &Line { epoch: self.epoch, document, name, tokens, topics },
            )?;
            out.write_all(b"\n")?;
            self.documents += 1;
        }
        Ok(())
    }
}

/// θ_dk = (C_dk + α_k) / (L_d + ᾱ) of the topics with tokens, largest first.
fn shares(row: &[(u32, u32)], tokens: u64, alpha: &Alpha, topics: usize) -> Vec<(u32, f64)> {
    let scale = 1.0 / (tokens as f64 + alpha.sum(topics));
    let share = |&(topic, count): &(u32, u32)| {
        (topic, (f64::from(count) + alpha.get(topic as usize)) * scale)
    };
    let mut shares: Vec<(u32, f64)> = row.iter().map(share).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_every_shard_once() {
        for (shards, parts) in [(1, 1), (8, 3), (3, 8), (65_535, 65_535)] {
            let all = (0..parts).flat_map(|index| Part { index, of: parts }.shards(shards));
            assert!(all.eq(0..shards), "{shards} shards in {parts} parts");
        }
        assert_eq!(Part::parse("2/3"), Ok(Part { index: 2, of: 3 }));
        for wrong in ["3/3", "0/0", "1", "/2", "a/2", "-1/2", "0/70000"] {
            assert!(Part::parse(wrong).unwrap_err().contains("give I/N"), "{wrong}");
        }
    }

    #[test]
    fn shares_are_smoothed_and_sorted() {
        let alpha = Alpha::PerTopic(vec![0.5, 0.25, 1.25]);
        assert_eq!(shares(&[(0, 1), (2, 5)], 6, &alpha, 3), [(2, 0.78125), (0, 0.1875)]);
        assert_eq!(shares(&[], 0, &alpha, 3), []);
        let even = shares(&[(0, 2), (1, 2)], 4, &Alpha::Symmetric(0.5), 4);
        assert_eq!(even.iter().map(|share| share.0).collect::<Vec<_>>(), [0, 1]);
    }
}
