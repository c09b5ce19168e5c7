//! Reading of documents into blocks, in bounded memory.
//!
//! Documents are read once. A block is written as soon as it has its tokens, so that the documents of one block,
//! the vocabulary and 16 bytes per word are in memory. If words are dropped by document frequency, which is known
//! only in the end, the blocks are read and written once more.

use std::path::Path;

use thiserror::Error;

use super::error::ReadError;
use super::format::{CorpusFormat, FORMATS};
use super::{Input, ReadOptions, ReadReport, detect_and_parse};
use crate::container::FileError;
use crate::corpus::Corpus;
use crate::corpus::blocks::{BlockDirectory, BlockSink, BlockWriter, Blocks, Statistics, TooWide};

/// Error of reading documents into blocks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CutError {
    /// The documents cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A block cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl BlockDirectory {
    /// Reads documents, as [`Corpus::read_with_report`] does, and writes them to a directory in blocks of about
    /// `tokens` tokens. A block ends with a document.
    ///
    /// The order of the tokens, phrases and the beginnings of texts need all documents at once: options that ask
    /// for them are refused. So are UCI and MatrixMarket files that are not sorted by document.
    ///
    /// # Errors
    /// [`CutError`].
    ///
    /// ```
    /// use lda_core::corpus::ReadOptions;
    /// use lda_core::corpus::blocks::{BlockDirectory, Blocks};
    ///
    /// let path = std::env::temp_dir().join(format!("lda-read-blocks-{}", std::process::id()));
    /// std::fs::create_dir_all(&path)?;
    /// std::fs::write(path.join("docs.txt"), "tree leaf wood\nsea wave\nfoam sea\n")?;
    /// let options = ReadOptions::default();
    /// let (blocks, report) =
    ///     BlockDirectory::read(path.join("docs.txt"), &options, 3, path.join("blocks"))?;
    /// assert_eq!((blocks.parts().len(), report.documents, report.words), (2, 3, 6));
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(
        path: impl AsRef<Path>,
        options: &ReadOptions,
        tokens: u64,
        directory: impl AsRef<Path>,
    ) -> Result<(Self, ReadReport), CutError> {
        Self::read_named(path, options, tokens, directory, |words, _| Ok(words))
    }

    /// As [`read`](Self::read), and names the words before they are written: `name` gets a corpus without
    /// documents and returns it with a vocabulary ([`Corpus::with_vocabulary`]). It also gets the report, and may
    /// refuse what was read: the directory cannot be opened then.
    ///
    /// # Errors
    /// [`CutError`], and those of `name`.
    pub fn read_named<E: From<CutError>>(
        path: impl AsRef<Path>,
        options: &ReadOptions,
        tokens: u64,
        directory: impl AsRef<Path>,
        name: impl FnOnce(Corpus, &ReadReport) -> Result<Corpus, E>,
    ) -> Result<(Self, ReadReport), E> {
        let path = path.as_ref();
        let read = |sink: &BlockSink| {
            if path.is_dir() {
                let possible =
                    |row: &&&CorpusFormat| options.format.is_none_or(|f| f == row.format);
                let mut rows = FORMATS.iter().filter(possible);
                if let Some(read_directory) = rows.find_map(|row| row.read_directory) {
                    return read_directory(path, options, Some(sink));
                }
            }
            detect_and_parse(Input::file(path)?.into_blocks(sink), options)
        };
        cut((path, options), BlocksTo { tokens, directory: directory.as_ref() }, read, name)
    }

    /// As [`read_named`](Self::read_named), from a stream, which may be compressed. Errors refer to it as
    /// `stream`.
    ///
    /// # Errors
    /// [`CutError`], and those of `name`.
    pub fn read_from<E: From<CutError>>(
        reader: impl std::io::Read,
        stream: impl AsRef<Path>,
        options: &ReadOptions,
        tokens: u64,
        directory: impl AsRef<Path>,
        name: impl FnOnce(Corpus, &ReadReport) -> Result<Corpus, E>,
    ) -> Result<(Self, ReadReport), E> {
        let stream = stream.as_ref();
        let read = |sink: &BlockSink| {
            detect_and_parse(Input::stream(reader, stream).into_blocks(sink), options)
        };
        cut((stream, options), BlocksTo { tokens, directory: directory.as_ref() }, read, name)
    }
}

/// The blocks to write.
struct BlocksTo<'a> {
    /// Tokens of a block.
    tokens: u64,
    directory: &'a Path,
}

impl Input<'_> {
    /// Puts the documents into blocks.
    fn into_blocks(self, sink: &BlockSink) -> Self {
        Self { blocks: Some(sink.clone()), ..self }
    }
}

/// Reads documents into blocks with `read`, which returns those that are left, with the vocabulary.
fn cut<E: From<CutError>>(
    (path, options): (&Path, &ReadOptions),
    to: BlocksTo<'_>,
    read: impl FnOnce(&BlockSink) -> Result<(Corpus, ReadReport), ReadError>,
    name: impl FnOnce(Corpus, &ReadReport) -> Result<Corpus, E>,
) -> Result<(BlockDirectory, ReadReport), E> {
    let (writer, words, mut report) = write_blocks((path, options), to, read)?;
    let words = name(words, &report)?;
    let blocks = finish(writer, words, (path, options), &report)?;
    measure(&mut report, &blocks);
    Ok((blocks, report))
}

/// Reads documents into blocks; returns their writer, a corpus of the words without documents, and the report.
fn write_blocks(
    (path, options): (&Path, &ReadOptions),
    to: BlocksTo<'_>,
    read: impl FnOnce(&BlockSink) -> Result<(Corpus, ReadReport), ReadError>,
) -> Result<(BlockWriter, Corpus, ReadReport), CutError> {
    check(options)?;
    let writer = BlockWriter::create(to.directory)?;
    let sink = BlockSink::new(writer, to.tokens.max(1), options.max_unused_words);
    let (mut rest, mut report) = match read(&sink) {
        Ok(read) => read,
        Err(error) => {
            // The error of a block is the cause of that of its reader.
            let of_block = sink.into_writer().err();
            return Err(of_block.map_or(error.into(), |of_block| failed(of_block, path, options)));
        }
    };
    let mut words = rest.select([]);
    words.width_is_open = rest.width_is_open;
    rest.take_vocabulary();
    // An error is returned with the writer.
    let _ = sink.push(&rest);
    let writer = sink.into_writer().map_err(|error| failed(error, path, options))?;
    let mut writer = writer.expect("the reader has ended, and no one else has taken it");
    let all = writer.statistics().num_tokens();
    if let Some(kept) = kept_words(writer.statistics(), options, &report) {
        writer.retain_words(|word| kept[word])?;
        words.retain_words(|word| kept.get(word as usize).copied().unwrap_or(false));
    }
    report.dropped_tokens += all - writer.statistics().num_tokens();
    Ok((writer, words, report))
}

/// Refuses options that need all documents at once.
fn check(options: &ReadOptions) -> Result<(), ReadError> {
    let asked = [
        ("keep_order", options.keep_order),
        ("phrases", options.text.phrases.is_some()),
        ("keep_text", options.text.keep_text > 0),
    ];
    match asked.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((name, _)) => Err(ReadError::Option {
            name,
            value: "set".to_owned(),
            remedy: "leave it out: it needs all documents in memory, and these go into blocks",
        }),
    }
}

/// For each word, true if it stays; `None` if all do.
fn kept_words(
    statistics: &Statistics,
    options: &ReadOptions,
    report: &ReadReport,
) -> Option<Vec<bool>> {
    if !report.format.has_texts() {
        return None;
    }
    // Words of skipped files may be in the vocabulary.
    let least = u64::from(options.text.min_document_frequency);
    let least = if report.skipped_files.is_empty() { least } else { least.max(1) };
    let most = options.text.max_document_frequency * statistics.num_documents() as f64;
    let is_kept = |&frequency: &u64| frequency >= least && frequency as f64 <= most;
    let kept: Vec<bool> = statistics.document_frequencies().iter().map(is_kept).collect();
    let drops =
        least > 1 || options.text.max_document_frequency < 1.0 || !report.skipped_files.is_empty();
    (drops && kept.contains(&false)).then_some(kept)
}

/// Completes the directory.
fn finish(
    writer: BlockWriter,
    mut words: Corpus,
    (path, options): (&Path, &ReadOptions),
    report: &ReadReport,
) -> Result<BlockDirectory, CutError> {
    if writer.statistics().num_tokens() == 0 {
        return Err(CutError::Read(ReadError::NoTokens {
            path: path.to_owned(),
            documents: writer.statistics().num_documents(),
            dropped: super::DroppedWords::default(),
            skipped: report.skipped_files.len(),
        }));
    }
    let num_words = words.num_words().max(writer.statistics().num_words());
    let used = writer.statistics().word_frequencies().iter().filter(|&&tokens| tokens > 0).count();
    let (unused, limit) = ((num_words - used) as u64, options.max_unused_words);
    if unused > limit && !report.format.has_texts() {
        let (path, words) = (path.to_owned(), num_words as u64);
        let document = writer.statistics().num_documents();
        return Err(ReadError::UnusedWords { path, words, unused, limit, document }.into());
    }
    let vocabulary = words.take_vocabulary();
    Ok(writer.finish(num_words, vocabulary.as_ref())?)
}

/// Sets the sizes of all documents.
fn measure(report: &mut ReadReport, blocks: &BlockDirectory) {
    let statistics = blocks.statistics();
    let unused = statistics.word_frequencies().iter().filter(|&&tokens| tokens == 0);
    report.documents = statistics.num_documents();
    report.words = statistics.num_words() as u64;
    report.pairs = blocks.parts().iter().map(|part| part.pairs).sum();
    report.tokens = statistics.num_tokens();
    report.empty_documents = statistics.num_empty();
    report.unused_words = unused.count() as u64;
}

/// The error of a block that was not written.
fn failed(error: Result<FileError, TooWide>, path: &Path, options: &ReadOptions) -> CutError {
    match error {
        Ok(error) => error.into(),
        Err(TooWide { words, unused, document }) => {
            let (path, limit) = (path.to_owned(), options.max_unused_words);
            ReadError::UnusedWords { path, words, unused, limit, document }.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::corpus::{CorpusBuilder, Format};

    /// A directory that is removed at the end of a test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("lda-into-blocks-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, content: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The documents of all blocks as one corpus, with their names and dates.
    fn joined(blocks: &BlockDirectory) -> Corpus {
        let mut builder = CorpusBuilder::new().num_words(blocks.num_words());
        for block in 0..blocks.parts().len() {
            let documents = blocks.read(block).unwrap();
            for d in 0..documents.num_documents() {
                builder.push_pairs(documents.document(d).iter()).unwrap();
                if let Some(dates) = documents.dates() {
                    builder.push_date(dates[d]);
                }
                if let Some(name) = documents.document_name(d) {
                    builder.push_name(name);
                }
            }
        }
        let mut corpus = builder.build().unwrap();
        if let Some(vocabulary) = blocks.vocabulary() {
            corpus.set_vocabulary(vocabulary.clone()).unwrap();
        }
        corpus
    }

    /// Reads a file at once and in blocks of every size, and compares.
    fn compare(path: &Path, options: &ReadOptions) -> usize {
        let (whole, report) = Corpus::read_with_report(path, options).unwrap();
        let mut most = 0;
        for tokens in [0, 2, 5, u64::MAX] {
            let scratch = Scratch::new();
            let cut = BlockDirectory::read(path, options, tokens, scratch.0.join("blocks"));
            let (blocks, of_blocks) = cut.unwrap();
            assert!(joined(&blocks) == whole, "{}: {tokens} tokens", path.display());
            assert_eq!(of_blocks, report, "{}: {tokens} tokens", path.display());
            let statistics = blocks.statistics();
            assert_eq!(statistics.word_frequencies(), whole.word_frequencies());
            assert_eq!(statistics.num_empty(), whole.num_empty() as u64);
            most = most.max(blocks.parts().len());
        }
        most
    }

    #[test]
    fn blocks_of_every_format_are_the_corpus() {
        let scratch = Scratch::new();
        let mut columns = ReadOptions::default();
        columns.columns.text = vec!["text".to_owned()];
        columns.columns.id = Some("id".to_owned());
        columns.columns.date = Some("day".to_owned());
        let mut rare = ReadOptions::default();
        rare.text.min_document_frequency = 2;
        rare.text.max_document_frequency = 0.6;
        let plain = ReadOptions::default();
        let text = "red blue red\n\nblue green\nred green violet\nblue red\n";
        let table = "id,day,text\nx,2001,red blue\ny,2002-03-04,\nz,1999,blue green red\n";
        let json = "{\"id\": \"x\", \"day\": \"2001\", \"text\": \"red blue\"}\n\
            {\"id\": \"y\", \"day\": \"1999\", \"text\": \"blue\"}\n";
        for (name, content, options) in [
            ("docword.a.txt", "4\n6\n5\n1 2 1\n1 6 2\n2 1 3\n4 2 2\n4 1 1\n", &plain),
            ("a.svm", "1 2:1 3:4\n1\n2 1:1 9:1\n", &plain),
            ("a.ldac", "2 0:1 5:2\n0\n1 3:1\n", &plain),
            (
                "a.mtx",
                "%%MatrixMarket matrix coordinate integer general\n3 4 3\n1 1 2\n3 4 1\n3 2 1\n",
                &plain,
            ),
            ("a.txt", text, &plain),
            ("b.txt", text, &rare),
            ("a.csv", table, &columns),
            ("a.jsonl", json, &columns),
        ] {
            if cfg!(not(feature = "tables")) && options.columns.id.is_some() {
                continue;
            }
            let blocks = compare(&scratch.write(name, content), options);
            assert!(blocks > 1, "{name}: {blocks}");
        }
    }

    #[test]
    fn files_of_a_directory_are_documents_of_blocks() {
        let scratch = Scratch::new();
        for (name, content) in
            [("d/one.txt", "red blue red"), ("d/two.txt", "blue"), ("d/sub/three.txt", "green")]
        {
            scratch.write(name, content);
        }
        // Its words are in the vocabulary until it turns out to be no text.
        fs::write(scratch.0.join("d/not.txt"), [b"odd words \xff".as_slice(), &[0xfe; 9]].concat())
            .unwrap();
        assert!(compare(&scratch.0.join("d"), &ReadOptions::default()) > 1);
    }

    fn refused(content: &str, name: &str, options: &ReadOptions) -> String {
        let scratch = Scratch::new();
        let path = scratch.write(name, content);
        let read = BlockDirectory::read(path, options, 2, scratch.0.join("blocks"));
        assert!(BlockDirectory::open(scratch.0.join("blocks")).is_err(), "it is incomplete");
        read.unwrap_err().to_string()
    }

    #[test]
    fn refusals_say_what_and_where() {
        let plain = ReadOptions::default();
        let unsorted = refused("3\n4\n3\n1 1 2\n3 1 1\n2 1 1\n", "docword.a.txt", &plain);
        assert!(unsorted.contains("docword.a.txt:6: this document comes after"), "{unsorted}");
        let wrong = refused("3\n4\n3\n1 1 2\n3 1 1\n", "docword.a.txt", &plain);
        assert!(wrong.contains("3 pairs (NNZ) are stated, but 2 follow"), "{wrong}");
        let ordered = ReadOptions { keep_order: true, ..ReadOptions::default() };
        assert!(refused("red blue\n", "a.txt", &ordered).contains("`keep_order` = set: leave"));
        let wide = refused("1 1:2\n1 4000000000:2\n", "a.svm", &plain);
        assert!(wide.contains("4000000000 words, of which"), "{wide}");
        let stated = refused("1\n4000000000\n1\n1 1 3\n", "docword.a.txt", &plain);
        assert!(stated.contains("4000000000 words, of which 3999999999"), "{stated}");
        let none = refused("the of and\n", "a.txt", &plain);
        assert!(none.contains("no tokens") || none.contains("no token"), "{none}");
        // A file where the directory should be.
        let scratch = Scratch::new();
        let path = scratch.write("a.txt", "red blue\n");
        let error = BlockDirectory::read(&path, &plain, 2, &path).unwrap_err();
        assert!(matches!(error, CutError::File(_)), "{error}");
    }

    #[test]
    fn a_block_that_cannot_be_written_ends_the_reading() {
        let scratch = Scratch::new();
        let path = scratch.write("a.txt", "red blue\ngreen\nred\nviolet blue\n");
        // A directory is in the place of the second block.
        fs::create_dir_all(scratch.0.join("blocks/part-00001/x")).unwrap();
        let read =
            BlockDirectory::read(&path, &ReadOptions::default(), 2, scratch.0.join("blocks"));
        let error = read.unwrap_err();
        assert!(matches!(error, CutError::File(_)), "{error}");
        assert!(error.to_string().contains("part-00001"), "{error}");
    }

    proptest! {
        #[test]
        fn any_documents_come_back(
            documents in prop::collection::vec(
                prop::collection::vec((0..20u32, 1..9u32), 0..6), 1..12,
            ),
            tokens in 1..40u64,
        ) {
            prop_assume!(documents.iter().any(|document| !document.is_empty()));
            let whole = Corpus::from_pairs(documents).unwrap();
            let mut file = Vec::new();
            crate::corpus::write_uci(&whole, &mut file).unwrap();
            let scratch = Scratch::new();
            let options = ReadOptions { format: Some(Format::Uci), ..ReadOptions::default() };
            let name = |words, _: &ReadReport| Ok::<_, CutError>(words);
            let (blocks, _) =
                BlockDirectory::read_from(&file[..], "docs", &options, tokens, &scratch.0, name)
                    .unwrap();
            prop_assert!(joined(&blocks) == whole);
            let largest = blocks.parts().iter().map(|part| part.tokens).max().unwrap();
            let longest = whole.documents().map(|document| document.len()).max().unwrap();
            prop_assert!(largest < tokens + longest);
        }
    }
}
