//! Readers of corpus files.
//!
//! [`Format`] documents which input each format accepts and rejects.
//! [`Corpus::read`] detects the format from name and content, and compression from content. Valid
//! but irregular input is normalised and counted in a [`ReadReport`]; invalid input is a
//! [`ReadError`] that names file, line and remedy. Headers are not trusted: memory is reserved only
//! as far as the size of the input allows.
//!
//! Files are streamed through a block of 128 KiB. Peak memory stays within 1.3 times the finished
//! corpus where the format states its size and the file is sorted by document, within 2.2 times
//! otherwise.

#[cfg(feature = "text")]
mod ascii_words;
mod charset;
#[cfg(feature = "tables")]
mod columns;
#[cfg(feature = "tables")]
mod csv;
#[cfg(feature = "text")]
mod cut;
mod detect;
mod dictionary;
mod dropped;
mod encoding;
mod entries;
mod error;
mod format;
mod into_blocks;
#[cfg(feature = "tables")]
mod json_lines;
#[cfg(feature = "text")]
mod kept_texts;
mod ldac;
mod matrix_market;
mod number;
mod options;
mod pairs;
#[cfg(feature = "text")]
mod phrases;
mod scan;
mod source;
#[cfg(feature = "text")]
mod stop_words;
mod structured;
mod svmlight;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "text")]
mod tokenizer;
mod tokenizer_options;
mod uci;
#[cfg(feature = "text")]
mod word_cache;
mod words;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use dropped::DroppedWords;
pub use error::{CountProblem, Place, ReadError};
pub use format::Format;
pub use into_blocks::CutError;
pub use options::{
    Columns, Compression, PhraseOptions, PhraseScore, ReadOptions, ReadReport, SkippedFile,
    TextOptions,
};
pub(crate) use source::Source;
#[cfg(feature = "text")]
pub use tokenizer::Tokenizer;
pub use tokenizer_options::{StopWords, TokenizerOptions, WordRule};
pub use words::read_vocabulary;

use super::assembly::Repairs;
use super::blocks::BlockSink;
use super::{Corpus, Document};
use charset::Charset;
use detect::Sample;
use format::{CorpusFormat, FORMATS};
use scan::Scanner;

/// A stream to read and its name.
pub(in crate::corpus) struct Input<'a> {
    reader: Box<dyn Read + 'a>,
    /// Length in bytes, if known.
    size: Option<u64>,
    path: PathBuf,
    charset: Charset,
    /// Receiver of blocks, if documents go into them.
    blocks: Option<BlockSink>,
}

impl<'a> Input<'a> {
    fn file(path: &Path) -> Result<Self, ReadError> {
        let fail = |source| ReadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        // The length of a pipe or device is unknown.
        let size = metadata.is_file().then_some(metadata.len());
        let (path, charset) = (path.to_owned(), Charset::default());
        Ok(Self { reader: Box::new(file), size, path, charset, blocks: None })
    }

    /// Sets the encoding to that of the options.
    ///
    /// # Errors
    /// [`ReadError::Option`] if it is unknown.
    fn encoded(mut self, options: &ReadOptions) -> Result<Self, ReadError> {
        self.charset = Charset::named(options.encoding.as_deref())?;
        Ok(self)
    }

    fn stream(reader: impl Read + 'a, name: &Path) -> Self {
        let (path, charset) = (name.to_owned(), Charset::default());
        Self { reader: Box::new(reader), size: None, path, charset, blocks: None }
    }
}

/// Result of a format's parser.
struct Parsed {
    corpus: Corpus,
    repairs: Repairs,
    dropped: DroppedWords,
    skipped_files: Vec<SkippedFile>,
    texts: Option<Vec<String>>,
}

impl Parsed {
    fn new(corpus: Corpus, repairs: Repairs) -> Self {
        let (dropped, skipped_files) = (DroppedWords::default(), Vec::new());
        Self { corpus, repairs, dropped, skipped_files, texts: None }
    }

    /// Sets the number of words to the one stated by the file or by an option.
    fn stating_words(mut self, num_words: u32) -> Self {
        self.corpus.num_words = num_words;
        self.corpus.width_is_open = false;
        self
    }
}

/// Amount of data read.
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

    /// Reads a corpus, and reports the content of the file and the irregularities normalised.
    ///
    /// # Errors
    /// [`ReadError`] for a file that is missing, damaged or invalid in its format, for a corpus
    /// without tokens, and for options that the format does not support.
    pub fn read_with_report(
        path: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<(Self, ReadReport), ReadError> {
        let path = path.as_ref();
        if path.is_dir() {
            let possible = |row: &&&CorpusFormat| options.format.is_none_or(|f| f == row.format);
            let mut rows = FORMATS.iter().filter(possible);
            if let Some(read_directory) = rows.find_map(|row| row.read_directory) {
                return read_directory(path, options, None);
            }
        }
        detect_and_parse(Input::file(path)?, options)
    }

    /// Reads a corpus from a stream, which may be compressed. Errors refer to it as `name`, which
    /// also serves to detect the format, like the name of a file.
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

fn detect_and_parse(
    input: Input<'_>,
    options: &ReadOptions,
) -> Result<(Corpus, ReadReport), ReadError> {
    let mut input = Scanner::new(input.encoded(options)?)?;
    let format = match options.format {
        Some(format) => format,
        None => detect_format(&input)?,
    };
    parse(&mut input, format, options)
}

fn detect_format(input: &Scanner<'_>) -> Result<Format, ReadError> {
    let (sample, path) = (Sample::new(input.rest(), input.is_whole()), input.path());
    let format = detect::detect(&sample, path).ok_or_else(|| not_a_text(input))?;
    let is_text = format == Format::Text;
    match structured::recognise(&sample).filter(|_| is_text) {
        Some(&structured::Kind { name, remedy, .. }) => {
            Err(ReadError::Structured { path: path.to_owned(), kind: name, remedy })
        }
        None => Ok(format),
    }
}

/// Error for a file of no known format: the first bytes that are not UTF-8, or that it is no text.
fn not_a_text(input: &Scanner<'_>) -> ReadError {
    let start = input.rest();
    let at = match std::str::from_utf8(start) {
        Err(error) if !start.contains(&0) => error.valid_up_to(),
        _ => return ReadError::UnknownFormat { path: input.path().to_owned() },
    };
    let line = 1 + start[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
    scan::invalid_utf8(&start[at..], &Place::line(input.path(), line))
}

/// Reads a corpus whose format is known.
fn parse(
    input: &mut Scanner<'_>,
    format: Format,
    options: &ReadOptions,
) -> Result<(Corpus, ReadReport), ReadError> {
    options.check(format)?;
    let parsed = (format.description().parse)(input, options)?;
    let volume = Volume {
        compression: input.compression(),
        bytes: input.bytes(),
        packed_bytes: input.extent().consumed(),
    };
    let (corpus, report) = report(parsed, volume, format, input.path(), input.blocks())?;
    if input.blocks().is_none() {
        check_unused_words(&corpus, &report, options.max_unused_words, input.path())?;
    }
    Ok((corpus, report))
}

fn check_unused_words(
    corpus: &Corpus,
    report: &ReadReport,
    limit: u64,
    path: &Path,
) -> Result<(), ReadError> {
    let (words, unused) = (report.words, report.unused_words);
    if unused <= limit {
        return Ok(());
    }
    let largest = |document: &Document<'_>| document.words.iter().max().copied();
    let last = corpus.documents().filter_map(|document| largest(&document)).max();
    let with_last = corpus.documents().position(|document| largest(&document) == last).unwrap_or(0);
    let document = 1 + with_last as u64;
    Err(ReadError::UnusedWords { path: path.to_owned(), words, unused, limit, document })
}

fn report(
    parsed: Parsed,
    volume: Volume,
    format: Format,
    path: &Path,
    blocks: Option<&BlockSink>,
) -> Result<(Corpus, ReadReport), ReadError> {
    let Parsed { corpus, repairs, dropped, skipped_files, texts } = parsed;
    // The documents of blocks are checked when all of them are there.
    if corpus.num_tokens() == 0 && blocks.is_none() {
        return Err(ReadError::NoTokens {
            path: path.to_owned(),
            documents: corpus.num_documents() as u64,
            dropped,
            skipped: skipped_files.len(),
        });
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
        empty_documents: corpus.num_empty() as u64,
        unused_words: corpus.unused_words(),
        unsorted_pairs: repairs.unsorted_pairs,
        repeated_pairs: repairs.repeated_pairs,
        zero_counts: repairs.zero_counts,
        out_of_order_documents: repairs.out_of_order_documents,
        dropped_tokens: dropped.all(),
        skipped_files,
        texts,
    };
    Ok((corpus, report))
}
