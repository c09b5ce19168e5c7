//! Options of `lda cut`.

use std::path::PathBuf;

use clap::{Parser, value_parser};
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;
use lda_examples::text::of_training;

const AFTER_HELP: &str = "\
Examples:
  lda cut docword.pubmed.txt.gz --out pubmed
  lda cut reviews/ --out blocks                   a directory of texts: one document per file
  zcat logs.gz | lda cut - --out logs             texts from standard input: one document per line

`lda train DIR` trains on the blocks of a directory; three of them are in memory at a time.
Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Read documents into blocks, for training on more of them than fit in memory
#[derive(Debug, Parser)]
#[command(name = "cut", after_help = AFTER_HELP, mut_args(of_training))]
pub struct Args {
    /// Documents: a file, a directory of text files, or - for standard input. The format is detected;
    /// gzip and zstd are decompressed
    pub path: PathBuf,
    /// Directory of the blocks. It is created if it is missing; blocks that it has are replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Tokens of a block; a block ends with a document. Changes results
    #[arg(long, value_name = "N", default_value_t = 4_194_304, value_parser = value_parser!(u64).range(1..=1 << 32))]
    pub block_tokens: u64,

    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub program: ProgramArgs,
}
