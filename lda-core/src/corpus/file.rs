//! Corpus files: the arrays of a corpus in a container with checksums.
//!
//! Sections of a [file](crate::container), in this order; those marked * are present only if they
//! have content.
//!
//! | section | element | content |
//! |---|---|---|
//! | `about` | u8 | pairs: `documents`, `words`, `tokens`, `corpus` (fingerprint, hexadecimal); `tokenizer.NAME` for the rules of text, if they are known |
//! | `offsets` | u32 | D + 1: the pairs of document d are entries `offsets[d]` to `offsets[d + 1]` of `words` and `counts` |
//! | `words` | u32 | word of each pair, ascending in a document |
//! | `counts` | u8, u16, u32 | count of each pair, none 0; the narrowest type that fits all |
//! | `dates`* | u32 | date of each document: year · 512 + month · 32 + day; month and day are 0 if only the year is known |
//! | `starts`* | u64 | D + 1: the tokens of document d in their order are entries `starts[d]` to `starts[d + 1]` of `tokens` |
//! | `tokens`* | u32 | word ids |
//! | `doc-ends`* | u64 | D: the name of document d ends before byte `doc-ends[d]` of `doc-names` |
//! | `doc-names`* | u8 | names of documents, UTF-8, concatenated |
//! | `word-ends`* | u32 | V: the name of word w ends before byte `word-ends[w]` of `word-names` |
//! | `word-names`* | u8 | names of words, UTF-8, concatenated |

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

use super::names::DocumentNames;
use super::read::TokenizerOptions;
use super::{Corpus, Date, MAX_TOKENS, MAX_WORD, Sequence, Vocabulary};
use crate::container::pairs::{self, ABOUT, Pairs};
use crate::container::{FileError, Kind, Number, Reader, Source, Writer, replace};

impl Corpus {
    /// Writes the corpus with vocabulary, dates and order at `path`, [atomically](replace): a
    /// failure leaves the old file.
    ///
    /// # Errors
    /// [`FileError`] for I/O errors.
    ///
    /// ```no_run
    /// use lda_core::Corpus;
    ///
    /// Corpus::read("docword.nips.txt.gz")?.with_vocabulary("vocab.nips.txt.gz")?.save("nips.corpus")?;
    /// assert_eq!(Corpus::load("nips.corpus")?.num_documents(), 1740);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        replace(path.as_ref(), |file| self.write_to(file).map_err(FileError::from))
    }

    /// Writes the corpus at the current position of `out`. The header is written last, so that an
    /// incomplete file is invalid.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to<W: Write + Seek>(&self, out: W) -> io::Result<()> {
        let (dates, sequence, names) =
            (self.dates.as_ref(), self.sequence.as_ref(), self.vocabulary.as_ref());
        let two = usize::from(sequence.is_some())
            + usize::from(names.is_some())
            + usize::from(self.names.is_some());
        let sections = 4 + usize::from(dates.is_some()) + 2 * two;
        let mut file = Writer::new(out, Kind::Corpus, sections)?;
        let mut about = vec![
            ("documents".to_owned(), self.num_documents().to_string()),
            ("words".to_owned(), self.num_words.to_string()),
            ("tokens".to_owned(), self.num_tokens.to_string()),
            ("corpus".to_owned(), format!("{:016x}", self.fingerprint())),
        ];
        let tokenizer = names.and_then(Vocabulary::tokenizer);
        about.extend(tokenizer.map(TokenizerOptions::to_pairs).unwrap_or_default());
        let about = about.iter().map(|(name, value)| (&**name, &**value));
        file.section(ABOUT, pairs::to_bytes(about))?;
        file.section("offsets", self.offsets.iter().copied())?;
        file.section("words", self.words.iter().copied())?;
        let counts = self.counts.iter().copied();
        match self.counts.iter().max().copied().unwrap_or(0) {
            0..=0xff => file.section("counts", counts.map(|count| count as u8))?,
            0x100..=0xffff => file.section("counts", counts.map(|count| count as u16))?,
            _ => file.section("counts", counts)?,
        }
        if let Some(dates) = dates {
            file.section("dates", dates.iter().map(|date| date.to_bits()))?;
        }
        if let Some(Sequence { tokens, starts }) = sequence {
            file.section("starts", starts.iter().copied())?;
            file.section("tokens", tokens.iter().copied())?;
        }
        if let Some(names) = &self.names {
            let (text, ends) = names.parts();
            file.section("doc-ends", ends.iter().copied())?;
            file.section("doc-names", text.bytes())?;
        }
        if let Some(names) = names {
            let (text, ends) = names.parts();
            file.section("word-ends", ends.iter().copied())?;
            file.section("word-names", text.bytes())?;
        }
        file.finish()?.flush()
    }

    /// Reads a file written by [`save`](Self::save). Compares every checksum and checks every
    /// entry.
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let open = || Self::load_from(BufReader::new(File::open(path)?));
        open().map_err(|error: FileError| error.at(path))
    }

    /// Reads a corpus file that spans all of `from`. Memory is bounded by its length.
    ///
    /// # Errors
    /// [`FileError`] names the problem.
    ///
    /// ```
    /// use std::io::Cursor;
    ///
    /// use lda_core::Corpus;
    ///
    /// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "wave"]])?;
    /// let mut file = Cursor::new(Vec::new());
    /// corpus.write_to(&mut file)?;
    /// assert!(Corpus::load_from(file)? == corpus);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_from<R: Read + Seek>(from: R) -> Result<Self, FileError> {
        read(&mut Reader::open(from, Kind::Corpus)?)
    }
}

fn read(file: &mut impl Source) -> Result<Corpus, FileError> {
    let about = Pairs::parse(&file.array::<u8>(ABOUT)?)?;
    let documents = about.read::<u32>("documents")?;
    let num_words = about.read::<u32>("words")?;
    let tokens = about.read::<u64>("tokens")?;
    let corpus = about.required("corpus", |text| u64::from_str_radix(text, 16).ok())?;
    let each = u64::from(documents) + 1;
    let offsets = file.exactly::<u32>("offsets", each)?.into_vec();
    let pairs = ascending("offsets", offsets.iter().map(|&at| at.into()))?;
    let words = file.exactly::<u32>("words", pairs)?.into_vec();
    for ends in offsets.windows(2) {
        let document = &words[ends[0] as usize..ends[1] as usize];
        let below = document.last().is_none_or(|&word| word < num_words && word <= MAX_WORD);
        if !below || !document.is_sorted_by(|a, b| a < b) {
            let why = "those of a document do not ascend, or are not below `words`";
            return Err(FileError::malformed("words", why));
        }
    }
    let counts = if file.has_of::<u8>("counts") {
        widened(file.exactly::<u8>("counts", pairs)?.into_vec())
    } else if file.has_of::<u16>("counts") {
        widened(file.exactly::<u16>("counts", pairs)?.into_vec())
    } else {
        file.exactly::<u32>("counts", pairs)?.into_vec()
    };
    let sum = counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    if counts.contains(&0) || sum != tokens || tokens > MAX_TOKENS {
        let why = format!("they are 0 or sum to {sum}, not to the {tokens} tokens of a corpus");
        return Err(FileError::malformed("counts", why));
    }
    let mut read = Corpus {
        offsets,
        words,
        counts,
        num_words,
        num_tokens: tokens,
        width_is_open: false,
        vocabulary: None,
        dates: None,
        sequence: None,
        names: None,
    };
    if read.fingerprint() != corpus {
        return Err(FileError::malformed("corpus", "it is of other documents"));
    }
    read_optional(file, &mut read)?;
    if let Some(vocabulary) = &mut read.vocabulary {
        vocabulary.set_tokenizer(TokenizerOptions::from_pairs(&about)?);
    }
    Ok(read)
}

/// Reads the sections that a corpus need not have.
fn read_optional(file: &mut impl Source, read: &mut Corpus) -> Result<(), FileError> {
    let documents = read.num_documents() as u64;
    if file.has("dates") {
        let dates = file.exactly::<u32>("dates", documents)?.into_vec();
        let dates: Option<Vec<Date>> = dates.into_iter().map(Date::from_bits).collect();
        read.dates = Some(dates.ok_or_else(|| FileError::malformed("dates", "one is none"))?);
    }
    if file.has("starts") {
        let starts = file.exactly::<u64>("starts", documents + 1)?.into_vec();
        let all = ascending("starts", starts.iter().copied())?;
        let sequence = Sequence { tokens: file.exactly("tokens", all)?.into_vec(), starts };
        check_order(read, &sequence)?;
        read.sequence = Some(sequence);
    }
    if file.has("doc-ends") {
        let ends = file.exactly::<u64>("doc-ends", documents)?.into_vec();
        let names = DocumentNames::from_parts(file.array("doc-names")?.into_vec(), ends);
        let wrong = || FileError::malformed("doc-ends", "they are not ends of names");
        read.names = Some(names.ok_or_else(wrong)?);
    }
    if file.has("word-ends") {
        let ends = file.exactly::<u32>("word-ends", read.num_words.into())?;
        let names = file.array::<u8>("word-names")?;
        let text = Vocabulary::check_parts(&names, &ends)?;
        read.vocabulary = Some(Vocabulary::from_parts(text, &ends));
    }
    Ok(())
}

fn widened<T: Number + Into<u32>>(counts: Vec<T>) -> Vec<u32> {
    counts.into_iter().map(Into::into).collect()
}

/// Checks that numbers begin at 0 and do not descend; returns the last.
fn ascending(name: &str, mut ends: impl Iterator<Item = u64>) -> Result<u64, FileError> {
    let mut last = (ends.next() == Some(0)).then_some(0);
    for end in ends {
        last = last.filter(|&last| last <= end).map(|_| end);
    }
    last.ok_or_else(|| FileError::malformed(name, "they do not ascend from 0"))
}

/// Checks that the ordered tokens of each document match its pairs.
fn check_order(corpus: &Corpus, sequence: &Sequence) -> Result<(), FileError> {
    let mut sorted = Vec::new();
    for (d, ends) in sequence.starts.windows(2).enumerate() {
        sorted.clear();
        sorted.extend_from_slice(&sequence.tokens[ends[0] as usize..ends[1] as usize]);
        sorted.sort_unstable();
        let runs = sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64));
        if !runs.eq(corpus.document(d).iter().map(|(word, count)| (word, count.into()))) {
            let why = format!("those of document {d} are not those of its pairs");
            return Err(FileError::malformed("tokens", why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::corpus::CorpusBuilder;

    fn written(corpus: &Corpus) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        corpus.write_to(&mut file).unwrap();
        file.into_inner()
    }

    /// With names of words and documents, rules of text, dates and order.
    fn whole() -> Corpus {
        let mut builder = CorpusBuilder::new().keep_order();
        for (document, date) in
            [(vec!["b", "a", "b"], "2001"), (vec![], "2002-02-03"), (vec!["c"], "1999-12-31")]
        {
            builder.push_words(document).unwrap();
            builder.push_date(date.parse().unwrap());
            builder.push_name(&format!("é {date}"));
        }
        let mut corpus = builder.build().unwrap();
        let names = corpus.vocabulary.as_mut().unwrap();
        names.set_tokenizer(Some(TokenizerOptions::default()));
        corpus
    }

    /// A file with a section of another content.
    fn with(corpus: &Corpus, name: &str, change: impl Fn(&mut Vec<u32>)) -> Vec<u8> {
        let bytes = written(corpus);
        let mut from = Reader::open(Cursor::new(&bytes), Kind::Corpus).unwrap();
        let numbers = ["offsets", "words", "dates", "tokens", "word-ends"];
        let bytewise = [ABOUT, "counts", "doc-names", "word-names"];
        let names = [ABOUT, "offsets", "words", "counts", "dates", "starts", "tokens"];
        let texts = ["doc-ends", "doc-names", "word-ends", "word-names"];
        let names: Vec<&str> = names.into_iter().chain(texts).collect();
        let there: Vec<&str> = names.into_iter().filter(|name| from.has(name)).collect();
        let mut to = Writer::new(Cursor::new(Vec::new()), Kind::Corpus, there.len()).unwrap();
        for section in there {
            if numbers.contains(&section) {
                let mut content = from.numbers::<u32>(section).unwrap();
                if section == name {
                    change(&mut content);
                }
                to.section(section, content).unwrap();
            } else if bytewise.contains(&section) {
                let content = from.numbers::<u8>(section).unwrap();
                let mut wide: Vec<u32> = content.into_iter().map(u32::from).collect();
                if section == name {
                    change(&mut wide);
                }
                to.section(section, wide.into_iter().map(|byte| byte as u8)).unwrap();
            } else {
                let content = from.numbers::<u64>(section).unwrap();
                let mut narrow: Vec<u32> = content.into_iter().map(|at| at as u32).collect();
                if section == name {
                    change(&mut narrow);
                }
                to.section(section, narrow.into_iter().map(u64::from)).unwrap();
            }
        }
        to.finish().unwrap().into_inner()
    }

    #[test]
    fn every_part_of_a_corpus_round_trips() {
        let corpus = whole();
        let again = Corpus::load_from(Cursor::new(written(&corpus))).unwrap();
        assert!(again == corpus);
        assert_eq!(again.tokens(0), Some([0, 1, 0].as_slice()));
        assert_eq!(again.vocabulary().unwrap().id("c"), Some(2));
        assert!(again.clone().set_vocabulary(Vocabulary::new()).is_err(), "its width is settled");
        let none = corpus.select([]);
        assert!(Corpus::load_from(Cursor::new(written(&none))).unwrap() == none);
    }

    #[test]
    fn counts_use_the_narrowest_type() {
        for (count, bytes) in [(255, 1), (256, 2), (65_535, 2), (65_536, 4)] {
            let corpus = Corpus::from_pairs([[(0, count), (1, 1)]]).unwrap();
            let file = written(&corpus);
            let mut read = Reader::open(Cursor::new(&file), Kind::Corpus).unwrap();
            let found = [
                read.numbers::<u8>("counts").map_or(0, |_| 1),
                read.numbers::<u16>("counts").map_or(0, |_| 2),
                read.numbers::<u32>("counts").map_or(0, |_| 4),
            ];
            assert_eq!(found.iter().sum::<i32>(), bytes, "{count}");
            assert!(Corpus::load_from(Cursor::new(file)).unwrap() == corpus);
        }
    }

    #[test]
    fn inconsistent_files_are_rejected() {
        let corpus = whole();
        type Change = fn(&mut Vec<u32>);
        let changes: [(&str, Change, &str); 15] = [
            ("offsets", |at| at[1] = 3, "do not ascend from 0"),
            ("offsets", |at| at[0] = 1, "do not ascend from 0"),
            ("offsets", |at| at.truncate(3), "3 values, not 4"),
            ("words", |words| words[2] = 3, "not below `words`"),
            ("words", |words| words[0] = 1, "do not ascend"),
            ("words", |words| words[2] = 0, "it is of other documents"),
            ("counts", |counts| counts[0] = 1, "sum to 3, not to the 4"),
            ("counts", |counts| (counts[0], counts[1]) = (3, 0), "are 0"),
            ("dates", |dates| dates[1] |= 31, "one is none"),
            ("starts", |starts| starts[1] = 2, "not those of its pairs"),
            ("tokens", |tokens| tokens[0] = 1, "those of document 0"),
            ("doc-ends", |ends| ends[0] = 1, "not ends of names"),
            ("doc-names", |names| names[0] = 0xff, "not ends of names"),
            ("word-ends", |ends| ends[0] = 9, "not ends of names"),
            ("word-names", |names| names[0] = 0xff, "not UTF-8"),
        ];
        assert!(Corpus::load_from(Cursor::new(with(&corpus, "", |_| {}))).unwrap() == corpus);
        for (section, change, why) in changes {
            let read = Corpus::load_from(Cursor::new(with(&corpus, section, change)));
            let found = read.expect_err(section).to_string();
            assert!(found.contains(why), "{section}: {found}");
        }
        let mut plain = corpus.clone();
        plain.vocabulary.as_mut().unwrap().set_tokenizer(None);
        let about = with(&plain, ABOUT, |about| *about.last_mut().unwrap() = b'x'.into());
        assert!(Corpus::load_from(Cursor::new(about)).unwrap_err().to_string().contains("corpus"));
    }

    #[test]
    fn truncated_and_damaged_files_are_rejected() {
        let bytes = written(&whole());
        for end in 0..bytes.len() {
            assert!(Corpus::load_from(Cursor::new(&bytes[..end])).is_err(), "{end}");
        }
        let path = std::env::temp_dir().join(format!("lda-no-corpus-{}", std::process::id()));
        std::fs::write(&path, "no corpus").unwrap();
        let found = Corpus::load(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(found.contains("lda-no-corpus") && found.contains("not a file of this"), "{found}");
    }

    proptest! {
        #[test]
        fn any_corpus_round_trips(
            documents in prop::collection::vec(
                prop::collection::vec((0..40u32, 1..70_000u32), 0..6), 1..8,
            ),
        ) {
            prop_assume!(documents.iter().any(|document| !document.is_empty()));
            let corpus = Corpus::from_pairs(documents).unwrap();
            let again = Corpus::load_from(Cursor::new(written(&corpus))).unwrap();
            prop_assert!(again == corpus);
        }

        #[test]
        fn a_changed_byte_is_detected(at in 0..2000usize, by in 1..=255u8) {
            let mut bytes = written(&whole());
            let at = at % bytes.len();
            bytes[at] ^= by;
            if let Ok(read) = Corpus::load_from(Cursor::new(bytes)) {
                // Bytes between sections are not read.
                prop_assert!(read == whole());
            }
        }
    }
}
