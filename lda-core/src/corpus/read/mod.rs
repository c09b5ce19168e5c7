//! Corpora from files.
//!
//! One module a format; each says what is legal and what is refused. [`Corpus::read`] tells the
//! format by content and name; compression is recognised by content. Whatever is legal but odd
//! is set right and counted in a [`ReadReport`]; whatever is not legal is a [`ReadError`] that
//! names file, line and remedy. No header is believed: room is made for what the size of the
//! input allows.
//!
//! Files are streamed through a block of 128 KiB. Peak memory stays within 1.3 times the finished
//! corpus where the format states its size and the file is sorted by document, within 2.2 times
//! otherwise.

mod error;
mod options;
mod scan;
mod source;
pub mod uci;
mod words;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use error::{CountProblem, Place, ReadError};
pub use options::{Compression, Format, ReadOptions, ReadReport};
pub use words::read_vocabulary;

use super::Corpus;
use super::assembly::Repairs;
use scan::Scanner;

/// Bytes to come and their name.
pub(in crate::corpus) struct Input<'a> {
    reader: Box<dyn Read + 'a>,
    /// Bytes to come, where it is known.
    size: Option<u64>,
    path: PathBuf,
}

impl<'a> Input<'a> {
    fn file(path: &Path) -> Result<Self, ReadError> {
        let fail = |source| ReadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        // A pipe or device has no size.
        let size = metadata.is_file().then_some(metadata.len());
        Ok(Self { reader: Box::new(file), size, path: path.to_owned() })
    }

    fn stream(reader: impl Read + 'a, name: &Path) -> Self {
        Self { reader: Box::new(reader), size: None, path: name.to_owned() }
    }
}

/// What a format's parser gives.
struct Parsed {
    corpus: Corpus,
    repairs: Repairs,
}

impl Parsed {
    fn new(corpus: Corpus, repairs: Repairs) -> Self {
        Self { corpus, repairs }
    }

    /// Sets the number of words that the file, or an option, states.
    fn stating_words(mut self, num_words: u32) -> Self {
        self.corpus.num_words = num_words;
        self.corpus.width_is_open = false;
        self
    }
}

impl Corpus {
    /// Reads a corpus: [`read_with_report`](Self::read_with_report) with default options,
    /// without the report.
    ///
    /// # Errors
    /// As [`read_with_report`](Self::read_with_report).
    ///
    /// ```no_run
    /// use lda_core::Corpus;
    ///
    /// let corpus = Corpus::read("docword.nips.txt.gz")?.with_vocabulary("vocab.nips.txt.gz")?;
    /// # Ok::<(), lda_core::corpus::ReadError>(())
    /// ```
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::read_with(path, &ReadOptions::default())
    }

    /// Reads a corpus, without the report.
    ///
    /// # Errors
    /// As [`read_with_report`](Self::read_with_report).
    pub fn read_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, ReadError> {
        Ok(Self::read_with_report(path, options)?.0)
    }

    /// Reads a corpus, and says what was in the file and what was set right.
    ///
    /// # Errors
    /// [`ReadError`] for a file that is not there, that is damaged, or that breaks the rules of
    /// its format; for a corpus without tokens; for options that do not go with the format.
    pub fn read_with_report(
        path: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<(Self, ReadReport), ReadError> {
        let format = options.format.unwrap_or(Format::Uci);
        from_input(Input::file(path.as_ref())?, format, options)
    }
}

/// Reads a corpus whose format is known.
fn from_input(
    input: Input<'_>,
    format: Format,
    options: &ReadOptions,
) -> Result<(Corpus, ReadReport), ReadError> {
    parse(&mut Scanner::new(input)?, format, options)
}

fn parse(
    input: &mut Scanner<'_>,
    format: Format,
    options: &ReadOptions,
) -> Result<(Corpus, ReadReport), ReadError> {
    let parsed = match format {
        Format::Uci => uci::parse(input, options),
    }?;
    report(parsed, input, format)
}

fn report(
    parsed: Parsed,
    input: &Scanner<'_>,
    format: Format,
) -> Result<(Corpus, ReadReport), ReadError> {
    let Parsed { corpus, repairs } = parsed;
    if corpus.num_tokens() == 0 {
        return Err(ReadError::NoTokens { path: input.path().to_owned() });
    }
    let report = ReadReport {
        format,
        compression: input.compression(),
        bytes: input.bytes(),
        packed_bytes: input.extent().consumed(),
        documents: corpus.num_documents() as u64,
        words: corpus.num_words() as u64,
        pairs: corpus.num_pairs() as u64,
        tokens: corpus.num_tokens(),
        empty_documents: repairs.empty_documents,
        unused_words: corpus.unused_words(),
        unsorted_pairs: repairs.unsorted_pairs,
        repeated_pairs: repairs.repeated_pairs,
        zero_counts: repairs.zero_counts,
        out_of_order_documents: repairs.out_of_order_documents,
    };
    Ok((corpus, report))
}
