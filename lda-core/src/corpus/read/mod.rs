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

mod detect;
mod entries;
mod error;
pub mod ldac;
pub mod matrix_market;
mod number;
mod options;
mod pairs;
mod scan;
mod source;
#[cfg(feature = "text")]
mod stop_words;
pub mod svmlight;
#[cfg(feature = "text")]
pub mod text;
#[cfg(feature = "text")]
mod tokenizer;
pub mod uci;
mod words;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use error::{CountProblem, Place, ReadError};
pub use options::{Compression, Format, ReadOptions, ReadReport, StopWords, TextOptions};
pub(crate) use source::Source;
#[cfg(feature = "text")]
pub use tokenizer::Tokenizer;
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
    dropped_tokens: u64,
}

impl Parsed {
    fn new(corpus: Corpus, repairs: Repairs) -> Self {
        Self { corpus, repairs, dropped_tokens: 0 }
    }

    /// Sets the number of words that the file, or an option, states.
    fn stating_words(mut self, num_words: u32) -> Self {
        self.corpus.num_words = num_words;
        self.corpus.width_is_open = false;
        self
    }
}

/// How much was read.
struct Volume {
    compression: Compression,
    bytes: u64,
    packed_bytes: u64,
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
        let path = path.as_ref();
        let text = options.format.is_none_or(|format| format == Format::Text);
        if text && path.is_dir() {
            return read_directory(path, options);
        }
        detect_and_parse(Input::file(path)?, options)
    }

    /// Reads a corpus from a stream, which may be compressed. Errors call it `name`, and the
    /// format is told by it as it is by the name of a file.
    ///
    /// # Errors
    /// As [`read_with_report`](Self::read_with_report).
    ///
    /// ```
    /// use lda_core::corpus::{Corpus, Format, ReadOptions};
    ///
    /// let file = "2 0:1 5:2\n1 3:1\n";
    /// let (corpus, report) =
    ///     Corpus::read_from(file.as_bytes(), "upload", &ReadOptions::default())?;
    /// assert_eq!((report.format, corpus.num_tokens()), (Format::Ldac, 4));
    /// # Ok::<(), lda_core::corpus::ReadError>(())
    /// ```
    pub fn read_from(
        reader: impl Read,
        name: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<(Self, ReadReport), ReadError> {
        detect_and_parse(Input::stream(reader, name.as_ref()), options)
    }
}

#[cfg(feature = "text")]
use text::read_directory;

#[cfg(not(feature = "text"))]
fn read_directory(path: &Path, _: &ReadOptions) -> Result<(Corpus, ReadReport), ReadError> {
    Err(without_text(path))
}

#[cfg(not(feature = "text"))]
fn without_text(path: &Path) -> ReadError {
    ReadError::NotBuilt { path: path.to_owned(), what: "plain text", feature: "text" }
}

fn detect_and_parse(
    input: Input<'_>,
    options: &ReadOptions,
) -> Result<(Corpus, ReadReport), ReadError> {
    let mut input = Scanner::new(input)?;
    let format = options
        .format
        .or_else(|| detect::detect(input.rest(), input.is_whole(), input.path()))
        .ok_or_else(|| ReadError::UnknownFormat { path: input.path().to_owned() })?;
    parse(&mut input, format, options)
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
    options.check(format)?;
    let parsed = match format {
        Format::Uci => uci::parse(input, options),
        Format::Svmlight => svmlight::parse(input, options),
        Format::Ldac => ldac::parse(input, options),
        Format::MatrixMarket => matrix_market::parse(input, options),
        #[cfg(feature = "text")]
        Format::Text => text::parse(input, options),
        #[cfg(not(feature = "text"))]
        Format::Text => Err(without_text(input.path())),
    }?;
    let volume = Volume {
        compression: input.compression(),
        bytes: input.bytes(),
        packed_bytes: input.extent().consumed(),
    };
    report(parsed, volume, format, input.path())
}

fn report(
    parsed: Parsed,
    volume: Volume,
    format: Format,
    path: &Path,
) -> Result<(Corpus, ReadReport), ReadError> {
    let Parsed { corpus, repairs, dropped_tokens } = parsed;
    if corpus.num_tokens() == 0 {
        return Err(ReadError::NoTokens { path: path.to_owned() });
    }
    let report = ReadReport {
        format,
        compression: volume.compression,
        bytes: volume.bytes,
        packed_bytes: volume.packed_bytes,
        documents: corpus.num_documents() as u64,
        words: corpus.num_words() as u64,
        pairs: corpus.num_pairs() as u64,
        tokens: corpus.num_tokens(),
        empty_documents: corpus.documents().filter(|row| row.is_empty()).count() as u64,
        unused_words: corpus.unused_words(),
        unsorted_pairs: repairs.unsorted_pairs,
        repeated_pairs: repairs.repeated_pairs,
        zero_counts: repairs.zero_counts,
        out_of_order_documents: repairs.out_of_order_documents,
        dropped_tokens,
    };
    Ok((corpus, report))
}
