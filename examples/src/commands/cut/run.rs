//! Reads the documents and writes the blocks.

use std::io;
use std::path::Path;

use lda_core::corpus::ReadError;
use lda_core::corpus::blocks::{BlockDirectory, Blocks};
use lda_examples::program::StartError;
use lda_examples::reading::{self, ReadingError};
use thiserror::Error;

use crate::commands::cut::args::Args;

/// Errors of `lda cut`.
#[derive(Debug, Error)]
pub enum CutRunError {
    /// The documents could not be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl CutRunError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Reading(
                ReadingError::Usage(_) | ReadingError::Read(ReadError::Option { .. }),
            ) => 2,
            _ => 1,
        }
    }
}

/// Reads the documents and writes the blocks.
///
/// # Errors
/// [`CutRunError`]. The directory cannot be opened then.
pub fn run(args: &Args) -> Result<(), CutRunError> {
    args.program.start()?;
    let mut note = |text: &str| args.program.note(text);
    let blocks = match args.path.to_str() {
        Some("-") => reading::cut_from(
            io::stdin().lock(),
            &args.reading,
            args.block_tokens,
            &args.out,
            &mut note,
        ),
        _ => {
            let reading = (&args.reading, None);
            reading::cut(&args.path, reading, args.block_tokens, &args.out, &mut note)
        }
    };
    let blocks = blocks?;
    note(&summary(&args.out, &blocks));
    Ok(())
}

/// Sizes of the blocks, for people.
fn summary(out: &Path, blocks: &BlockDirectory) -> String {
    let (statistics, parts) = (blocks.statistics(), blocks.parts());
    let largest = parts.iter().map(|part| part.tokens).max().unwrap_or(0);
    format!(
        "{}: {} blocks of {largest} tokens at most; {} documents, {} tokens, {} words",
        out.display(),
        parts.len(),
        statistics.num_documents(),
        statistics.num_tokens(),
        statistics.num_words()
    )
}
