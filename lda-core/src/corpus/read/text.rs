//! Parser of plain text. [`Format::Text`] documents the format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Place, ReadError};
use super::format::{CorpusFormat, SupportedOptions};
use super::kept_texts::KeptTexts;
use super::options::TextOptions;
#[cfg(feature = "tables")]
use super::phrases::Item;
use super::phrases::PhraseFinder;
use super::scan::{Piece, Scanner, utf8};
use super::tokenizer::{DropReason, Tokenizer};
use super::word_cache::WordCache;
use super::{
    Compression, DroppedWords, Format, Input, Parsed, ReadOptions, ReadReport, SkippedFile, Volume,
};
use crate::corpus::blocks::{BlockSink, Destination};
use crate::corpus::{BuildError, Corpus, CorpusBuilder};

/// Row in the table of formats.
pub(super) static FORMAT: CorpusFormat = CorpusFormat {
    format: Format::Text,
    name: "text",
    extensions: &[],
    prefixes: &[],
    sniff: |sample| sample.is_text(),
    options: SupportedOptions::OF_TEXT,
    parse,
    read_directory: Some(read_directory),
};

fn parse(input: &mut Scanner<'_>, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let mut collector = TextCollector::new(input.destination(), options)?;
    let mut open = false;
    while let Some(ends_line) = collector.piece(input)? {
        open = !ends_line;
        if ends_line {
            collector.end_document(input.place())?;
            input.count_line();
        }
    }
    if open {
        collector.end_document(input.place())?;
    }
    collector.finish(input.path(), options)
}

fn read_directory(
    path: &Path,
    options: &ReadOptions,
    blocks: Option<&BlockSink>,
) -> Result<(Corpus, ReadReport), ReadError> {
    options.check(Format::Text)?;
    let destination = Destination { blocks: blocks.cloned(), ..Destination::default() };
    let mut collector = TextCollector::new(destination, options)?;
    let mut files = 0;
    let mut volume = Volume { compression: Compression::None, bytes: 0, packed_bytes: 0 };
    walk(path, &options.text.extensions, |file| {
        files += 1;
        let dropped = *collector.tokenizer.dropped();
        match read_file(file, options, &mut collector) {
            Ok((bytes, packed_bytes)) => {
                volume.bytes += bytes;
                volume.packed_bytes += packed_bytes;
                let name = file.strip_prefix(path).unwrap_or(file);
                collector.builder.push_name(&name.to_string_lossy());
                collector.end_document(Place::line(file, 0))
            }
            Err(error) if !options.text.strict && is_skipped(file, &error) => {
                collector.skip_file(file, &error, dropped);
                Ok(())
            }
            Err(error) => Err(error),
        }
    })?;
    if files == 0 {
        let (path, extensions) = (path.to_owned(), options.text.extensions.clone());
        return Err(ReadError::NoFiles { path, extensions });
    }
    let parsed = collector.finish(path, options)?;
    super::report(parsed, volume, Format::Text, path, blocks)
}

/// Adds the words of a file; returns its bytes, after and before decompression.
fn read_file(
    file: &Path,
    options: &ReadOptions,
    collector: &mut TextCollector,
) -> Result<(u64, u64), ReadError> {
    let mut input = Scanner::new(Input::file(file)?.encoded(options)?)?;
    if input.rest().contains(&0) {
        return Err(ReadError::UnreadKind { path: file.to_owned(), kind: "a binary file" });
    }
    while let Some(ends_line) = collector.piece(&mut input)? {
        if ends_line {
            input.count_line();
        }
    }
    Ok((input.bytes(), input.extent().consumed()))
}

/// Whether a directory is read without this file: it is no text, or a link to nothing.
fn is_skipped(file: &Path, error: &ReadError) -> bool {
    let is_link = || fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink());
    match error {
        ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => is_link(),
        error => error.is_of_no_text(),
    }
}

/// Calls `visit` with each file and each link to nothing, in sorted order.
fn walk(
    path: &Path,
    extensions: &[String],
    mut visit: impl FnMut(&Path) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    // Directories still to visit, the next one last.
    let mut stack = vec![path.to_owned()];
    while let Some(path) = stack.pop() {
        let io = |source| ReadError::Io { path: path.clone(), source };
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&path).map_err(io)? {
            let entry = entry.map_err(io)?;
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                entries.push(entry.path());
            }
        }
        entries.sort_unstable();
        let mut directories = Vec::new();
        for entry in entries {
            let fail = |source| ReadError::Io { path: entry.clone(), source };
            let link = fs::symlink_metadata(&entry).map_err(fail)?;
            if link.is_dir() {
                directories.push(entry);
            } else if is_wanted(&entry, extensions) {
                match fs::metadata(&entry) {
                    Ok(metadata) if !metadata.is_file() => {}
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(fail(error));
                    }
                    _ => visit(&entry)?,
                }
            }
        }
        stack.extend(directories.into_iter().rev());
    }
    Ok(())
}

fn is_wanted(path: &Path, extensions: &[String]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_listed = |known| extensions.iter().any(|e| e.trim_start_matches('.') == known);
    extensions.is_empty() || extension.is_some_and(is_listed)
}

/// Builder of a corpus from text.
pub(super) struct TextCollector {
    pub(super) builder: CorpusBuilder,
    tokenizer: Tokenizer,
    cache: WordCache<Outcome>,
    /// Words of all documents, if they are searched for phrases. The builder receives them in the end.
    finder: Option<PhraseFinder>,
    skipped_files: Vec<SkippedFile>,
    texts: Option<KeptTexts>,
    /// True if documents go into blocks: words are dropped by frequency when all blocks are written.
    is_in_blocks: bool,
}

impl TextCollector {
    pub(super) fn new(destination: Destination, options: &ReadOptions) -> Result<Self, ReadError> {
        let is_in_blocks = destination.blocks.is_some();
        let builder = CorpusBuilder::into_destination(destination, u64::MAX);
        Ok(Self {
            is_in_blocks,
            builder: if options.keep_order { builder.keep_order() } else { builder },
            tokenizer: Tokenizer::new(&options.text.tokenizer)?,
            cache: WordCache::new(),
            finder: options.text.phrases.map(PhraseFinder::new),
            skipped_files: Vec::new(),
            texts: Some(options.text.keep_text).filter(|&limit| limit > 0).map(KeptTexts::new),
        })
    }

    /// Adds the words of the next piece of a line, and returns whether the line ends after it.
    /// `None` at the end of the input.
    fn piece(&mut self, input: &mut Scanner<'_>) -> Result<Option<bool>, ReadError> {
        let at = input.place();
        let Some(Piece { text, ends_line }) = input.piece()? else { return Ok(None) };
        self.add(utf8(text, &at)?, at)?;
        if let Some(texts) = self.texts.as_mut().filter(|_| ends_line) {
            texts.end_line();
        }
        Ok(Some(ends_line))
    }

    /// Adds the words of a text to the document.
    fn add(&mut self, text: &str, at: Place) -> Result<(), ReadError> {
        let Self { builder, tokenizer, finder, texts, cache, .. } = self;
        if let Some(texts) = texts {
            texts.push(text);
        }
        let mut result = Ok(());
        match finder {
            Some(finder) => tokenizer.for_each_item(text, |item| {
                if result.is_ok() {
                    result = finder.push(item).map_err(BuildError::from);
                }
            }),
            None if tokenizer.has_phrases() => {
                tokenizer.for_each_word_of_part(text, &mut pushing(builder, &mut result));
            }
            None => result = push_words((tokenizer, cache), text, builder),
        }
        result.map_err(|source| ReadError::Build { at, source })
    }

    /// Adds a text that is not continued by the next one: no phrase spans both.
    #[cfg(feature = "tables")]
    pub(super) fn add_field(&mut self, text: &str, at: Place) -> Result<(), ReadError> {
        self.add(text, at.clone())?;
        let Self { builder, tokenizer, finder, texts, .. } = self;
        if let Some(texts) = texts {
            texts.end_line();
        }
        let mut result = Ok(());
        match finder {
            Some(finder) => result = finder.push(Item::Dropped).map_err(BuildError::from),
            None => tokenizer.end_text(&mut pushing(builder, &mut result)),
        }
        result.map_err(|source| ReadError::Build { at, source })
    }

    pub(super) fn end_document(&mut self, at: Place) -> Result<(), ReadError> {
        if let Some(texts) = &mut self.texts {
            texts.end();
        }
        match &mut self.finder {
            Some(finder) => {
                finder.end_document();
                Ok(())
            }
            None => self.end_words().map_err(|source| ReadError::Build { at, source }),
        }
    }

    fn end_words(&mut self) -> Result<(), BuildError> {
        let Self { builder, tokenizer, .. } = self;
        let mut result = Ok(());
        tokenizer.end_text(&mut pushing(builder, &mut result));
        result.and_then(|()| builder.end_words())
    }

    /// Finds the phrases, and adds the documents to the builder.
    fn join_phrases(&mut self) -> Result<(), BuildError> {
        let Some(finder) = self.finder.take() else { return Ok(()) };
        self.tokenizer.add_phrases(&finder.find());
        for document in finder.documents() {
            let Self { builder, tokenizer, .. } = self;
            let mut result = Ok(());
            document.for_each(|item| tokenizer.join(item, &mut pushing(builder, &mut result)));
            result?;
            self.end_words()?;
        }
        Ok(())
    }

    /// Leaves out the file whose words were added since the last document ended.
    /// `dropped` are the words that were dropped before.
    fn skip_file(&mut self, file: &Path, error: &ReadError, dropped: DroppedWords) {
        self.builder.clear_words();
        self.tokenizer.clear(dropped);
        if let Some(finder) = &mut self.finder {
            finder.clear_document();
        }
        if let Some(texts) = &mut self.texts {
            texts.clear();
        }
        let (path, reason) = (file.to_owned(), error.to_string());
        self.skipped_files.push(SkippedFile { path, reason });
    }

    pub(super) fn finish(
        mut self,
        path: &Path,
        options: &ReadOptions,
    ) -> Result<Parsed, ReadError> {
        let fail = |source: BuildError| ReadError::Build { at: Place::line(path, 0), source };
        self.join_phrases().map_err(fail)?;
        let (mut corpus, repairs) = self.builder.build_any().map_err(fail)?;
        let tokens = corpus.num_tokens();
        if !self.is_in_blocks {
            drop_by_frequency(&mut corpus, &options.text);
        }
        if !self.skipped_files.is_empty() && !self.is_in_blocks {
            // Some of their words may be in the vocabulary.
            corpus.compact();
        }
        if let Some(vocabulary) = &mut corpus.vocabulary {
            vocabulary.shrink();
            vocabulary.set_tokenizer(Some(self.tokenizer.options().clone()));
        }
        let mut parsed = Parsed::new(corpus, repairs);
        parsed.dropped = *self.tokenizer.dropped();
        parsed.dropped.by_frequency = tokens - parsed.corpus.num_tokens();
        parsed.skipped_files = self.skipped_files;
        parsed.texts = self.texts.map(KeptTexts::finish);
        Ok(parsed)
    }
}

/// Outcome for a word of the text.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// It is a token; without an id, of a word that the vocabulary does not have.
    Word(Option<u32>),
    Dropped(DropReason),
}

/// Adds the words of a text to the document, where no phrases are joined.
fn push_words(
    (tokenizer, cache): (&mut Tokenizer, &mut WordCache<Outcome>),
    text: &str,
    builder: &mut CorpusBuilder,
) -> Result<(), BuildError> {
    let mut result = Ok(());
    tokenizer.for_each_piece(text, |tokenizer, piece| {
        if result.is_err() {
            return;
        }
        let found = cache.get(piece, || match tokenizer.judge(piece) {
            Ok(word) => builder.word_id(word).map(Outcome::Word),
            Err(reason) => Ok(Outcome::Dropped(reason)),
        });
        match found {
            Ok(Outcome::Word(id)) => builder.push_id(id),
            Ok(Outcome::Dropped(reason)) => tokenizer.count(reason),
            Err(error) => result = Err(error),
        }
    });
    result
}

/// A function that adds each word to the document, until one fails.
fn pushing(
    builder: &mut CorpusBuilder,
    result: &mut Result<(), BuildError>,
) -> impl FnMut(Option<&str>) {
    |word| {
        if let Some(word) = word.filter(|_| result.is_ok()) {
            *result = builder.push_word(word);
        }
    }
}

fn drop_by_frequency(corpus: &mut Corpus, options: &TextOptions) {
    let least = options.min_document_frequency;
    let most = options.max_document_frequency * corpus.num_documents() as f64;
    if least <= 1 && options.max_document_frequency >= 1.0 {
        return;
    }
    let frequencies = corpus.document_frequencies();
    corpus.retain_words(|word| {
        let frequency = frequencies[word as usize];
        frequency >= least && f64::from(frequency) <= most
    });
}

#[cfg(test)]
mod tests {
    use super::super::{PhraseOptions, StopWords, WordRule};
    use super::*;

    fn parse(text: &str, options: &ReadOptions) -> Result<(Corpus, ReadReport), ReadError> {
        Format::Text.read_from(text.as_bytes(), "text", options)
    }

    fn documents(text: &str, options: &ReadOptions) -> Vec<Vec<String>> {
        let mut options = options.clone();
        options.keep_order = true;
        let (corpus, _) = parse(text, &options).unwrap();
        let word = |&id: &u32| corpus.vocabulary().unwrap().word(id).to_owned();
        (0..corpus.num_documents())
            .map(|d| corpus.tokens(d).unwrap().iter().map(word).collect())
            .collect()
    }

    fn plain() -> ReadOptions {
        let mut options = ReadOptions::default();
        options.text.tokenizer.stop_words = StopWords::None;
        options.text.tokenizer.min_length = 1;
        options
    }

    #[test]
    fn beginnings_of_texts_are_kept_on_request() {
        let text = "  First text, of some words\n\nSecond\n";
        let mut options = plain();
        assert_eq!(parse(text, &options).unwrap().1.texts, None);
        let without = parse(text, &options).unwrap().0;
        for phrases in [None, Some(PhraseOptions::default())] {
            options.text.phrases = phrases;
            options.text.keep_text = 11;
            let (corpus, report) = parse(text, &options).unwrap();
            assert_eq!(report.texts.unwrap(), ["First text,…", "", "Second"]);
            assert_eq!(corpus.num_documents(), without.num_documents());
            assert_eq!(corpus.num_tokens(), without.num_tokens());
        }
    }

    #[test]
    fn lines_are_documents() {
        let found = documents("One two\r\n\nthree\n\nFOUR", &plain());
        assert_eq!(found, [vec!["one", "two"], vec![], vec!["three"], vec![], vec!["four"]]);
        let (corpus, report) = parse("a b\n\n", &plain()).unwrap();
        assert_eq!((corpus.num_documents(), report.empty_documents), (2, 1));
        assert_eq!(corpus.tokens(0), None);
    }

    #[test]
    fn words_are_those_of_unicode() {
        let found =
            documents("Don\u{2019}t panic: na\u{ef}ve \u{c4}RZTE 3.14 x1 \u{4e2d}", &plain());
        assert_eq!(found, [["don't", "panic", "na\u{ef}ve", "\u{e4}rzte", "x1", "\u{4e2d}"]]);
        let mut options = plain();
        options.text.tokenizer.numbers = true;
        options.text.tokenizer.lowercase = false;
        assert_eq!(documents("Pi is 3.14", &options), [["Pi", "is", "3.14"]]);
    }

    #[test]
    fn identifiers_are_split_on_request() {
        let mut options = plain();
        options.text.tokenizer.split_identifiers = true;
        let found = documents("readHTTPHeader snake_case std::io a.b.c utf8 Vec2D ABC", &options);
        let expected = "read http header snake case std io a b c utf8 vec2 d abc";
        assert_eq!(found, [expected.split(' ').collect::<Vec<_>>()]);
    }

    #[test]
    fn segmented_text_is_cut_at_white_space() {
        let mut options = plain();
        options.text.tokenizer.words = WordRule::Whitespace;
        let text = "\u{4eca}\u{5929} \u{5929}\u{6c14}\u{3000}\u{6cb3}\u{8fb9}\tnew_york, --- 7";
        let found = documents(text, &options);
        assert_eq!(
            found,
            [["\u{4eca}\u{5929}", "\u{5929}\u{6c14}", "\u{6cb3}\u{8fb9}", "new_york,"]]
        );
    }

    #[cfg(feature = "regex")]
    #[test]
    fn words_are_the_matches_of_a_pattern() {
        let mut options = plain();
        let words = |options: &mut ReadOptions, pattern: &str| {
            options.text.tokenizer.words = WordRule::Pattern(pattern.to_owned());
            documents("#Rust and c++, x*y a-b-c --", options)
        };
        assert_eq!(words(&mut options, r"[\w+-]+"), [["rust", "and", "c++", "x", "y", "a-b-c"]]);
        assert_eq!(words(&mut options, r"#(\w+)"), [["rust"]]);
        // Matches of nothing are no words, and the other rules hold too.
        options.text.tokenizer.min_length = 2;
        assert_eq!(words(&mut options, r"\w*"), [["rust", "and"]]);
        for (pattern, reason) in
            [("(a)(b)", "several groups"), ("[a", "unclosed"), ("a{9999999}", "size")]
        {
            options.text.tokenizer.words = WordRule::Pattern(pattern.to_owned());
            let error = parse("a b", &options).unwrap_err().to_string();
            assert!(error.contains(pattern) && error.contains(reason), "{error}");
        }
    }

    #[cfg(feature = "normalization")]
    #[test]
    fn accents_have_one_form_on_request() {
        let text = "caf\u{e9} cafe\u{301} CAFE\u{301}\n";
        let mut options = plain();
        assert_eq!(parse(text, &options).unwrap().0.num_words(), 2);
        options.text.tokenizer.nfc = true;
        assert_eq!(documents(text, &options), [["caf\u{e9}"; 3]]);
        options.text.tokenizer.stop_words = StopWords::List(vec!["Cafe\u{301}".into()]);
        assert!(parse(text, &options).is_err(), "all are stop words");
    }

    #[cfg(not(any(feature = "regex", feature = "normalization")))]
    #[test]
    fn rules_that_are_not_compiled_in_are_refused() {
        let mut options = plain();
        options.text.tokenizer.nfc = true;
        let error = parse("one two", &options).unwrap_err().to_string();
        assert!(error.contains("feature `normalization`"), "{error}");
        options = plain();
        options.text.tokenizer.words = WordRule::Pattern("a".into());
        let error = parse("one two", &options).unwrap_err().to_string();
        assert!(error.contains("feature `regex`"), "{error}");
    }

    #[test]
    fn a_corpus_without_words_says_why() {
        let mut options = ReadOptions::default();
        options.text.tokenizer.max_length = 5;
        let error = parse("12 7 the x longest\n", &options).unwrap_err().to_string();
        for reason in
            ["of its 5 words 2 are numbers", "1 are shorter", "1 are longer", "1 are stop words"]
        {
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn stop_words_and_lengths_drop_tokens() {
        let mut options = ReadOptions::default();
        let (_, report) = parse("The cat isn\u{2019}t on a mat.", &options).unwrap();
        assert_eq!((report.tokens, report.dropped_tokens), (2, 4));
        options.text.tokenizer.stop_words = StopWords::List(vec!["CAT".into()]);
        options.text.tokenizer.max_length = 3;
        assert_eq!(documents("the Cat spoke a bit", &options), [["the", "bit"]]);
    }

    #[test]
    fn document_frequencies_drop_words() {
        let text = "all rare some\nall some\nall\nall some other\n";
        let mut options = plain();
        options.text.min_document_frequency = 2;
        options.text.max_document_frequency = 0.75;
        options.keep_order = true;
        let (corpus, report) = parse(text, &options).unwrap();
        assert_eq!(corpus.vocabulary().unwrap().iter().collect::<Vec<_>>(), ["some"]);
        assert_eq!((report.dropped_tokens, report.empty_documents, report.tokens), (6, 1, 3));
        assert_eq!(corpus.tokens(3), Some(&[0][..]));
        assert_eq!((corpus.num_documents(), corpus.num_pairs()), (4, 3));
    }

    #[test]
    fn refusals() {
        let error = parse(" \n...\n", &plain()).unwrap_err().to_string();
        assert!(error.contains("the corpus has no tokens"), "{error}");
        let invalid =
            Format::Text.read_from(&b"fine\nnot \xe4 fine\n"[..], "text", &plain()).unwrap_err();
        assert_eq!(
            invalid.to_string(),
            "text:2: invalid UTF-8 (`\\xe4`); convert the file, for example with \
             `iconv -f WINDOWS-1252 -t UTF-8`, or, for texts, set `encoding` to theirs"
        );
        let mut options = plain();
        options.text.min_document_frequency = 2;
        assert!(matches!(parse("a b\nc\n", &options), Err(ReadError::NoTokens { .. })));
    }

    fn with_phrases() -> ReadOptions {
        let mut options = ReadOptions::default();
        let phrases = PhraseOptions { min_count: 3, ..PhraseOptions::default() };
        options.text.phrases = Some(phrases);
        options
    }

    const PHRASES: &str = "Rain fell on New York and the Bank of America\nNew York rain, new bridges\n\
        The Bank of America in New York\nBridges and the bank of America\nYork has bridges, new rain\n";

    #[test]
    fn texts_for_a_model_have_its_phrases() {
        let mut options = with_phrases();
        options.keep_order = true;
        let (corpus, report) = parse(PHRASES, &options).unwrap();
        let vocabulary = corpus.vocabulary().unwrap();
        let rules = vocabulary.tokenizer().unwrap();
        assert_eq!(rules.phrases, ["bank of america", "new york"]);
        assert!(vocabulary.id("bank_of_america").is_some() && vocabulary.id("america").is_none());
        // The stop words in phrases are not dropped: on and the; the in; and the; has is none.
        let kept_out = PHRASES.split_whitespace().count() as u64 - report.tokens;
        assert_eq!(report.dropped_tokens + 2 * 3 + 3, kept_out);
        let mut again = ReadOptions { keep_order: true, ..ReadOptions::default() };
        again.text.tokenizer = rules.clone();
        assert_eq!(parse(PHRASES, &again).unwrap(), (corpus.clone(), report));
        let mut tokenizer = Tokenizer::new(rules).unwrap();
        for (d, line) in PHRASES.lines().enumerate() {
            let mut words = Vec::new();
            tokenizer.for_each_word(line, |word| words.extend(word.map(str::to_owned)));
            let of_corpus = corpus.tokens(d).unwrap().iter().map(|&w| vocabulary.word(w));
            assert!(of_corpus.eq(words.iter().map(String::as_str)), "{words:?}");
        }
    }

    #[test]
    fn phrases_that_no_text_has_are_refused() {
        let mut options = plain();
        options.text.tokenizer.phrases = vec!["york".into()];
        let error = parse("a b", &options).unwrap_err().to_string();
        assert!(error.contains("option `phrases` = \"york\": a phrase has two or more"), "{error}");
        options.text.tokenizer.phrases = vec!["the boeing".into(), "boeing 747".into()];
        let error = parse("a boeing 747", &options).unwrap_err().to_string();
        assert!(error.contains("\"boeing 747\": `numbers`, `min_length`"), "{error}");
        options.text.tokenizer.numbers = true;
        assert_eq!(documents("a boeing 747", &options), [["a", "boeing_747"]]);
    }
}
