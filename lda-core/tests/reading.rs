//! Files on disk, and what is written comes back, in every format.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use lda_core::Corpus;
#[cfg(feature = "text")]
use lda_core::corpus::read::{PhraseOptions, StopWords, TextOptions};
use lda_core::corpus::{Date, Format, ReadError, ReadOptions, write_uci};
use proptest::prelude::*;

/// A directory of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lda-core-reading-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("writable");
        fs::write(&path, content).expect("writable");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Rows = Vec<Vec<(u32, u32)>>;

/// Documents with at least one token among them; some empty, words ascending, counts of all sizes.
fn rows() -> impl Strategy<Value = Rows> {
    let count = prop_oneof![4 => 1u32..4, 1 => 1u32..2_000_000];
    let row = prop::collection::btree_map(0u32..300, count, 0..12);
    prop::collection::vec(row, 1..20)
        .prop_map(|rows| rows.into_iter().map(Vec::from_iter).collect::<Rows>())
        .prop_filter("a token is needed", |rows| rows.iter().any(|row| !row.is_empty()))
}

fn lines(rows: &Rows, base: u32, head: impl Fn(&[(u32, u32)]) -> String) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(&head(row));
        for &(word, count) in row {
            write!(text, " {}:{count}", word + base).expect("a string takes it");
        }
        text.push('\n');
    }
    text
}

proptest! {
    #[test]
    fn uci_round_trip(rows in rows()) {
        let corpus = Corpus::from_pairs(&rows).unwrap();
        let mut text = Vec::new();
        write_uci(&corpus, &mut text).unwrap();
        let (again, report) = Format::Uci.read_from(&text[..], "t", &ReadOptions::default()).unwrap();
        prop_assert_eq!(&again, &corpus);
        prop_assert_eq!(again.fingerprint(), corpus.fingerprint());
        prop_assert_eq!(report.unsorted_pairs + report.repeated_pairs, 0);
        let (found, _) = Corpus::read_from(&text[..], "t", &ReadOptions::default()).unwrap();
        prop_assert_eq!(found, corpus);
    }

    #[test]
    fn svmlight_round_trip(rows in rows(), base in 0u32..3) {
        let corpus = Corpus::from_pairs(&rows).unwrap();
        let text = lines(&rows, base, |_| "+1".to_owned());
        let mut options = ReadOptions::default();
        options.index_base = base;
        let (again, _) = Format::Svmlight.read_from(text.as_bytes(), "t", &options).unwrap();
        prop_assert_eq!(again, corpus);
    }

    #[test]
    fn ldac_round_trip(rows in rows()) {
        let corpus = Corpus::from_pairs(&rows).unwrap();
        let text = lines(&rows, 0, |row| row.len().to_string());
        let (again, _) =
            Format::Ldac.read_from(text.as_bytes(), "t", &ReadOptions::default()).unwrap();
        prop_assert_eq!(&again, &corpus);
        let (found, report) =
            Corpus::read_from(text.as_bytes(), "t", &ReadOptions::default()).unwrap();
        prop_assert_eq!(found, corpus);
        prop_assert_eq!(report.format, Format::Ldac);
    }

    #[test]
    fn matrix_market_round_trip(rows in rows(), order in any::<u64>(), transpose: bool) {
        let corpus = Corpus::from_pairs(&rows).unwrap();
        let mut entries: Vec<(usize, u32, u32)> = Vec::new();
        for (d, row) in rows.iter().enumerate() {
            entries.extend(row.iter().map(|&(word, count)| (d + 1, word + 1, count)));
        }
        entries.sort_by_key(|entry| {
            (entry.0 as u64 * 1_000_003 + u64::from(entry.1)).wrapping_mul(order | 1)
        });
        let (documents, words) = (corpus.num_documents(), corpus.num_words());
        let (height, width) = if transpose { (words, documents) } else { (documents, words) };
        let mut text = format!(
            "%%MatrixMarket matrix coordinate integer general\n{height} {width} {}\n",
            entries.len(),
        );
        for (document, word, count) in entries {
            let (row, column) =
                if transpose { (word as usize, document) } else { (document, word as usize) };
            writeln!(text, "{row} {column} {count}").unwrap();
        }
        let mut options = ReadOptions::default();
        options.transpose = transpose;
        let (again, _) = Format::MatrixMarket.read_from(text.as_bytes(), "t", &options).unwrap();
        prop_assert_eq!(&again, &corpus);
    }

    #[cfg(feature = "text")]
    #[test]
    fn text_round_trip(documents in prop::collection::vec(
        prop::collection::vec("[a-zäøж]{1,8}", 0..12), 1..12,
    )) {
        prop_assume!(documents.iter().any(|document| !document.is_empty()));
        let corpus = Corpus::from_words(&documents).unwrap();
        let lines = documents.iter().map(|words| words.join(" ") + "\n").collect::<String>();
        let mut options = ReadOptions::default();
        options.text.tokenizer.stop_words = StopWords::None;
        options.text.tokenizer.min_length = 1;
        let (again, _) = Format::Text.read_from(lines.as_bytes(), "t", &options).unwrap();
        let vocabulary = again.vocabulary().unwrap();
        prop_assert_eq!(vocabulary.tokenizer(), Some(&options.text.tokenizer));
        prop_assert!(vocabulary.iter().eq(corpus.vocabulary().unwrap().iter()));
        // The same but for the rules, which words in memory do not have.
        let tokens = |corpus: &Corpus| -> Vec<_> {
            corpus.documents().map(|document| document.iter().collect::<Vec<_>>()).collect()
        };
        prop_assert_eq!(tokens(&again), tokens(&corpus));
    }

    #[test]
    fn arbitrary_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let options = ReadOptions::default();
        let _ = Corpus::read_from(&bytes[..], "t", &options);
        let _ = Format::Uci.read_from(&bytes[..], "t", &options);
        let _ = Format::Svmlight.read_from(&bytes[..], "t", &options);
        let _ = Format::Ldac.read_from(&bytes[..], "t", &options);
        let _ = Format::MatrixMarket.read_from(&bytes[..], "t", &options);
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Corpus::read("no/such/docword.txt").expect_err("it is not there").to_string();
    assert!(error.starts_with("no/such/docword.txt: "), "{error}");
    assert!(error.contains("check that the path is right"), "{error}");
    let corpus = Corpus::from_tokens([[0]]).expect("one token");
    let error = corpus.clone().with_vocabulary("no/vocab").expect_err("it is not there");
    assert!(matches!(error, ReadError::Io { .. }), "{error}");
    let error = corpus.with_dates("no/times").expect_err("it is not there");
    assert!(matches!(error, ReadError::Io { .. }), "{error}");
}

#[test]
fn formats_are_detected() {
    let folder = Folder::new();
    for (name, content, format) in [
        ("a.txt", "1\n2\n1\n1 2 3\n", Format::Uci),
        ("b.txt", "1 2:3\n-1 1:1\n", Format::Svmlight),
        ("c.dat", "1 1:3\n", Format::Ldac),
        (
            "d",
            "%%MatrixMarket matrix coordinate integer general\n1 2 1\n1 2 3\n",
            Format::MatrixMarket,
        ),
    ] {
        let path = folder.file(name, content);
        let (corpus, report) = Corpus::read_with_report(path, &ReadOptions::default()).expect(name);
        assert_eq!(report.format, format, "{name}");
        assert!(corpus.num_tokens() >= 3, "{name}");
    }
    let path = folder.file("e.txt", b"\x7fELF\0\0");
    let error = Corpus::read(path).expect_err("no corpus");
    assert!(matches!(error, ReadError::UnknownFormat { .. }), "{error}");
    let path = folder.file("empty", "");
    let error = Corpus::read(path).expect_err("no corpus");
    assert!(matches!(error, ReadError::NoTokens { .. }), "{error}");
}

#[test]
fn vocabularies_and_dates_must_match_the_corpus() {
    let folder = Folder::new();
    let corpus = folder.file("docword.a.txt", "2\n3\n2\n1 2 3\n2 3 1\n");
    let read = || Corpus::read(&corpus).expect("a sound file");
    let words = folder.file("vocab", "x\ny\nz\n");
    let dates = folder.file("dates", "1999\n2001-09-11\n");
    let named = read().with_vocabulary(&words).expect("three words");
    let dated = named.with_dates(&dates).expect("two dates");
    assert_eq!(dated.vocabulary().expect("given").word(1), "y");
    assert_eq!(dated.dates().expect("given")[1], Date::from_day(2001, 9, 11).expect("a day"));

    for (content, found) in [("x\ny\n", 2), ("x\ny\nz\nw\n", 4), ("", 0)] {
        let path = folder.file("wrong", content);
        let error = read().with_vocabulary(&path).expect_err("not three words");
        let text = error.to_string();
        assert!(text.contains(&format!("{found} words, but the corpus has 3")), "{text}");
        assert!(text.contains(path.to_str().expect("an ASCII path")), "{text}");
    }
    let path = folder.file("wrong", b"x\ny\n\xff\n");
    let error = read().with_vocabulary(path).expect_err("not UTF-8").to_string();
    assert!(error.contains("wrong:3: invalid UTF-8"), "{error}");
    let path = folder.file("wrong", "1999\n");
    let error = read().with_dates(path).expect_err("one date").to_string();
    assert!(error.contains("1 dates, but the corpus has 2"), "{error}");
    let path = folder.file("wrong", "1999\nsoon\n");
    let error = read().with_dates(path).expect_err("no date").to_string();
    assert!(error.contains("wrong:2: `soon` is not a date"), "{error}");
}

#[test]
fn a_dictionary_names_words_by_id() {
    let folder = Folder::new();
    let read = || Corpus::read(folder.0.join("docword.a.txt")).expect("a sound file");
    folder.file("docword.a.txt", "2\n4\n3\n1 2 3\n2 3 1\n2 1 1\n");
    let words = folder.file("a.dict", "3\n2\tz\t1\n0\tx\t1\n1\ty\t1\n");
    let named = read().with_vocabulary(words).expect("the fourth word has no token");
    let names: Vec<&str> = named.vocabulary().expect("given").iter().collect();
    assert_eq!(names, ["x", "y", "z", ""]);
    for (content, expected) in [
        (
            "0\tx\t1\n1\ty\t1\n",
            "a.dict: expected a name for each word of the documents, found none",
        ),
        ("x\ny\t3\nz\nw\n", "a.dict:2: expected one word per line, or id, word and count"),
    ] {
        let words = folder.file("a.dict", content);
        let error = read().with_vocabulary(words).expect_err("no vocabulary").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_format_without_num_words_accepts_a_longer_vocabulary() {
    let folder = Folder::new();
    let corpus = Corpus::read(folder.file("a.svm", "1 1:1 2:1\n")).expect("a sound file");
    let words = folder.file("vocab", "x\ny\nz\n");
    let corpus = corpus.with_vocabulary(words).expect("three words for two");
    assert_eq!(corpus.num_words(), 3);
}

#[test]
fn an_unsupported_option_is_rejected() {
    let mut options = ReadOptions::default();
    options.transpose = true;
    let error = Corpus::read_from(&b"1 1:1\n"[..], "t", &options).expect_err("LDA-C");
    assert!(matches!(error, ReadError::Option { name: "transpose", .. }), "{error}");
}

#[cfg(feature = "text")]
#[test]
fn a_directory_is_read_in_order() {
    let folder = Folder::new();
    for (name, content) in [
        ("b.txt", "second\nfile"),
        ("a.txt", "first"),
        ("sub/z.txt", "fourth"),
        ("sub/deeper/x.txt", "fifth"),
        ("c.md", "third"),
        (".hidden", "hidden"),
        (".git/config", "hidden"),
        ("d.txt", ""),
    ] {
        folder.file(name, content);
    }
    let read = |options: &ReadOptions| {
        let (corpus, report) = Corpus::read_with_report(&folder.0, options).expect("text");
        let words: Vec<String> =
            corpus.vocabulary().expect("text has words").iter().map(str::to_owned).collect();
        (words, report)
    };
    let mut options = ReadOptions::default();
    options.text.tokenizer.stop_words = StopWords::None;
    let (words, report) = read(&options);
    assert_eq!(words, ["first", "second", "file", "third", "fourth", "fifth"]);
    assert_eq!((report.documents, report.empty_documents, report.format), (6, 1, Format::Text));
    options.text.extensions = vec!["md".to_owned()];
    assert_eq!(read(&options).0, ["third"]);

    options.text.extensions = vec![".md".to_owned()];
    assert_eq!(read(&options).0, ["third"]);

    options.text.extensions = vec!["none".to_owned(), "nor".to_owned()];
    let error = Corpus::read_with(&folder.0, &options).expect_err("no such files").to_string();
    assert!(error.contains("no file has a name with the extension none or nor"), "{error}");
}

#[cfg(feature = "text")]
#[test]
fn files_that_are_no_text_are_skipped() {
    let folder = Folder::new();
    for (name, content) in [
        ("a.txt", &b"first 12"[..]),
        ("latin.txt", b"fine 7\n\xff"),
        ("nul.txt", b"zero\0"),
        ("picture.png", b"\x89PNG\r\n\x1a\n"),
        ("packed.bz2", b"BZh91AY&SY"),
        ("z.txt", b"last"),
    ] {
        folder.file(name, content);
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("nothing", folder.0.join("link.txt")).expect("a link");
    let mut options = ReadOptions::default();
    let (corpus, report) = Corpus::read_with_report(&folder.0, &options).expect("two texts");
    // "fine" was read before its file was found to be no text.
    let words: Vec<&str> = corpus.vocabulary().expect("text has words").iter().collect();
    assert_eq!((words, report.documents, report.dropped_tokens), (vec!["first", "last"], 2, 1));
    let skipped: Vec<String> = report
        .skipped_files
        .iter()
        .map(|file| file.path.file_name().expect("a file").to_str().expect("ASCII").to_owned())
        .collect();
    let mut expected = vec!["latin.txt", "link.txt", "nul.txt", "packed.bz2", "picture.png"];
    expected.retain(|name| cfg!(unix) || *name != "link.txt");
    assert_eq!(skipped, expected);
    assert!(report.skipped_files[0].reason.contains("latin.txt:2: invalid UTF-8"));
    assert!(report.to_string().ends_with("files skipped"), "{report}");

    options.text.strict = true;
    let error = Corpus::read_with(&folder.0, &options).expect_err("not UTF-8").to_string();
    assert!(error.contains("latin.txt:2: invalid UTF-8"), "{error}");
}

#[test]
fn encodings_and_archives_are_read_or_named() {
    let folder = Folder::new();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let pairs = folder.file("pairs", utf16("\u{feff}1 1:2\r\n2 1:1 2:1\r\n"));
    assert_eq!(Corpus::read(pairs).expect("UTF-16").num_tokens(), 4);
    for (name, content, expected) in [
        ("a.bz2", &b"BZh91AY&SY"[..], "a.bz2: a bzip2 file, which is not read; unpack"),
        ("a.zip", b"PK\x03\x04", "a.zip: a zip archive"),
        ("latin", b"one\ncaf\xe9 two\n", "latin:2: invalid UTF-8 (`\\xe9`)"),
        ("half", b"\xff\xfea", "half: it begins with the mark of UTF-16"),
    ] {
        let error = Corpus::read(folder.file(name, content)).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[cfg(all(feature = "encodings", feature = "text"))]
#[test]
fn texts_are_read_in_a_named_encoding() {
    let folder = Folder::new();
    let latin = folder.file("latin/a.txt", b"caf\xe9 r\xedo\ncaf\xe9\n");
    folder.file("latin/b.txt", "caf\u{e9} r\u{ed}o caf\u{e9} r\u{ed}o\n");
    let mut options = ReadOptions::default();
    options.encoding = Some("latin1".into());
    let corpus = Corpus::read_with(&latin, &options).expect("two words");
    let words: Vec<&str> = corpus.vocabulary().expect("words").iter().collect();
    assert_eq!((words, corpus.num_tokens()), (vec!["caf\u{e9}", "r\u{ed}o"], 3));
    // A directory: the file in UTF-8 is listed, not read as something else.
    let (corpus, report) =
        Corpus::read_with_report(latin.parent().expect("folder"), &options).expect("one file");
    assert_eq!((corpus.num_documents(), report.skipped_files.len()), (1, 1));
    let reason = &report.skipped_files[0].reason;
    assert!(
        reason.ends_with("b.txt: it is UTF-8, not windows-1252; leave `encoding` out"),
        "{reason}"
    );
    for (encoding, file, expected) in [
        ("shift_jis", &b"one\n\x93\xff\n"[..], "a:2: invalid Shift_JIS"),
        ("latin-99", b"one", "windows-1252, koi8-r"),
    ] {
        options.encoding = Some(encoding.into());
        let error = Corpus::read_with(folder.file("a", file), &options).expect_err(encoding);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[cfg(not(feature = "encodings"))]
#[test]
fn a_named_encoding_needs_its_feature() {
    let folder = Folder::new();
    let mut options = ReadOptions::default();
    options.encoding = Some("latin1".into());
    let error = Corpus::read_with(folder.file("a", "one two\n"), &options).expect_err("no feature");
    assert!(error.to_string().contains("enable feature `encodings`"), "{error}");
}

#[cfg(feature = "text")]
#[test]
fn stop_words_come_from_a_file() {
    let folder = Folder::new();
    let mut options = ReadOptions::default();
    options.text = TextOptions::default();
    options.text.tokenizer.stop_words = StopWords::File(folder.file("stop", "Cat\ndog\n"));
    let file = folder.file("a.txt", "the cat and the dog\n");
    let corpus = Corpus::read_with(&file, &options).expect("three tokens");
    assert_eq!(corpus.num_tokens(), 3);
    options.text.tokenizer.stop_words = StopWords::File("no/such/list".into());
    let error = Corpus::read_with(&file, &options).expect_err("no list").to_string();
    assert!(error.starts_with("no/such/list: "), "{error}");
}

#[cfg(feature = "text")]
#[test]
fn phrases_continue_on_the_next_line_of_a_file() {
    let folder = Folder::new();
    folder.file("a", "old rain in New\nYork, by the Bank of\nAmerica");
    folder.file("b", "New\nYork bank");
    folder.file("c", b"York bank\nNew \xff york bank");
    folder.file("d", "York");
    let mut options = ReadOptions::default();
    options.text.tokenizer.phrases = vec!["New York".into(), "bank of america".into()];
    let (given, report) = Corpus::read_with_report(&folder.0, &options).expect("three texts");
    let words: Vec<&str> = given.vocabulary().expect("text has words").iter().collect();
    assert_eq!(words, ["old", "rain", "new_york", "bank_of_america", "bank", "york"]);
    assert_eq!((report.dropped_tokens, report.skipped_files.len()), (3, 1));
    // What was read of a file that is skipped is searched for no phrases.
    options.text.tokenizer.phrases.clear();
    let mut phrases = PhraseOptions::default();
    (phrases.min_count, phrases.threshold) = (2, 0.1);
    options.text.phrases = Some(phrases);
    let (found, report) = Corpus::read_with_report(&folder.0, &options).expect("three texts");
    let rules = found.vocabulary().and_then(|words| words.tokenizer()).expect("text has rules");
    assert_eq!(rules.phrases, ["new york"]);
    assert_eq!((found.num_tokens(), report.skipped_files.len()), (4 + 2 + 1 + 1, 1));
}
