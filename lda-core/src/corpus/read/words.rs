//! Side files of a corpus: the vocabulary with one word per line, and one date per line.

use std::io::Read;
use std::path::Path;

use super::Input;
use super::dictionary::{self, Dictionary};
use super::error::{Place, ReadError};
use super::scan::Scanner;
use crate::corpus::{BuildError, Corpus, Date, Vocabulary};

/// Reads a vocabulary: line i, counted from 1, is the word with id i - 1, without spaces around it.
/// The stream may be compressed; errors refer to it as `name`. Words may repeat; empty lines at the
/// end are ignored.
///
/// A dictionary of gensim or LightLDA, with lines `id<TAB>word<TAB>count`, is read by its ids.
///
/// # Errors
/// [`ReadError`] for invalid UTF-8, a line above 128 KiB, a dictionary that repeats ids or words, a
/// stream that fails.
pub fn read_vocabulary(reader: impl Read, name: impl AsRef<Path>) -> Result<Vocabulary, ReadError> {
    Ok(vocabulary(Input::stream(reader, name.as_ref()), 0)?.0)
}

/// Reads words; also returns whether the file is a dictionary. Empty lines at the end are words only
/// as far as needed to reach `expected`.
pub(super) fn vocabulary(
    input: Input<'_>,
    expected: usize,
) -> Result<(Vocabulary, bool), ReadError> {
    let mut input = Scanner::new(input)?;
    let mut vocabulary = Vocabulary::new();
    let mut dictionary: Option<Dictionary> = None;
    let mut empty = 0usize;
    loop {
        let at = input.place();
        let Some(line) = input.text_line()? else { break };
        let line = line.trim();
        if line.is_empty() {
            empty += 1;
        } else if let Some(dictionary) = &mut dictionary {
            dictionary.add(line, &at)?;
        } else if dictionary::entry(line).is_some() && dictionary::may_follow(&vocabulary) {
            dictionary.insert(Dictionary::default()).add(line, &at)?;
        } else {
            let words = std::iter::repeat_n("", std::mem::take(&mut empty)).chain([line]);
            push(&mut vocabulary, words, &at)?;
        }
        input.count_line();
    }
    let (at, is_dictionary) = (input.place(), dictionary.is_some());
    if let Some(dictionary) = dictionary {
        vocabulary = dictionary.finish(at.clone())?;
        empty = expected;
    }
    let missing = expected.saturating_sub(vocabulary.len()).min(empty);
    push(&mut vocabulary, std::iter::repeat_n("", missing), &at)?;
    vocabulary.shrink();
    Ok((vocabulary, is_dictionary))
}

fn push<'a>(
    vocabulary: &mut Vocabulary,
    words: impl Iterator<Item = &'a str>,
    at: &Place,
) -> Result<(), ReadError> {
    for word in words {
        let full = |error| ReadError::Build { at: at.clone(), source: BuildError::from(error) };
        vocabulary.push(word).map_err(full)?;
    }
    Ok(())
}

fn dates(input: Input<'_>) -> Result<Vec<Date>, ReadError> {
    let mut input = Scanner::new(input)?;
    let mut dates = Vec::new();
    let mut blank: Option<Place> = None;
    loop {
        let at = input.place();
        let Some(text) = input.text_line()? else { break };
        let at = match (text.trim(), blank.take()) {
            ("", earlier) => {
                blank = Some(earlier.unwrap_or(at));
                input.count_line();
                continue;
            }
            // A blank line before a date is a document without one.
            (_, Some(earlier)) => {
                let source = "".parse::<Date>().expect_err("an empty string is not a date");
                return Err(ReadError::Date { at: earlier, source });
            }
            (_, None) => at,
        };
        dates.push(text.trim().parse().map_err(|source| ReadError::Date { at, source })?);
        input.count_line();
    }
    dates.shrink_to_fit();
    Ok(dates)
}

impl Corpus {
    /// Sets the vocabulary from a file with one word per line, or from a dictionary of gensim or
    /// LightLDA ([`read_vocabulary`]), which may be compressed.
    ///
    /// # Errors
    /// [`ReadError::Syntax`] for a line with tabs that is not of a dictionary, and for a dictionary
    /// without a word of the documents; [`ReadError::Length`] if the number of lines differs from the number of words (a corpus from
    /// a format that does not state the number of words, like SVMlight, accepts more lines); errors
    /// for invalid UTF-8 and for a missing file.
    pub fn with_vocabulary(mut self, path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let (vocabulary, is_dictionary) = vocabulary(Input::file(path)?, self.num_words())?;
        if is_dictionary {
            dictionary::check_names(&vocabulary, &self.used_words(), Place::line(path, 0))?;
        }
        if let Some(id) = vocabulary.iter().position(|word| word.contains('\t')) {
            return Err(ReadError::Syntax {
                at: Place::line(path, id as u64 + 1),
                expected: "one word per line, or id, word and count with tabs between",
                found: format!("`{}`", vocabulary.word(id as u32)),
            });
        }
        let (found, expected) = (vocabulary.len() as u64, self.num_words() as u64);
        let what = "words";
        self.set_vocabulary(vocabulary).map_err(|_| ReadError::Length {
            path: path.to_owned(),
            what,
            found,
            expected,
        })?;
        Ok(self)
    }

    /// Sets the dates of documents from a file with one [`Date`] per line, which may be compressed.
    ///
    /// # Errors
    /// [`ReadError::Length`] if the number of lines differs from the number of documents;
    /// [`ReadError::Date`] for an invalid line; errors for a missing file.
    pub fn with_dates(mut self, path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let dates = dates(Input::file(path)?)?;
        let (found, expected) = (dates.len() as u64, self.num_documents() as u64);
        let what = "dates";
        self.set_dates(dates).map_err(|_| ReadError::Length {
            path: path.to_owned(),
            what,
            found,
            expected,
        })?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[u8], expected: usize) -> Result<Vec<String>, ReadError> {
        let (vocabulary, _) = vocabulary(Input::stream(text, Path::new("vocab")), expected)?;
        Ok(vocabulary.iter().map(str::to_owned).collect())
    }

    #[test]
    fn lines_are_words() {
        assert_eq!(words(b"a\r\nb c\n\xc3\xa4", 0).unwrap(), ["a", "b c", "ä"]);
        assert_eq!(words(b"a\n\nb\n\n\n", 0).unwrap(), ["a", "", "b"]);
        assert_eq!(words(b"a\n\nb\n\n\n", 4).unwrap(), ["a", "", "b", ""]);
        assert_eq!(words(b"", 0).unwrap(), [""; 0]);
        let error = words(b"a\nb\xff\n", 0).unwrap_err().to_string();
        assert_eq!(
            error,
            "vocab:2: invalid UTF-8 (`\\xff`); convert the file, for example with \
             `iconv -f WINDOWS-1252 -t UTF-8`, or, for texts, set `encoding` to theirs"
        );
        let long = vec![b'x'; 1 << 18];
        assert!(words(&long, 0).is_ok());
    }

    #[test]
    fn dictionaries_are_read_by_id() {
        let old = "0\tcomputer\t2\n2\teps\t2\n1\tgraph\t3\n";
        let new = format!("9\n{old}");
        for text in [old, &new] {
            assert_eq!(words(text.as_bytes(), 0).unwrap(), ["computer", "graph", "eps"]);
            assert_eq!(words(text.as_bytes(), 4).unwrap(), ["computer", "graph", "eps", ""]);
        }
        assert_eq!(words(b"1\tb\t7\n", 0).unwrap(), ["", "b"]);
        assert_eq!(words(b"9\n7\nx\n", 0).unwrap(), ["9", "7", "x"]);
        for (text, said) in [
            (
                "0\ta\t1\n0\tb\t1\n",
                "vocab:2: expected each id once, found id 0 for `b` and for `a`",
            ),
            ("0\ta\t1\n1\ta\t1\n", "vocab:2: expected each word once, found `a` with ids 0 and 1"),
            ("0\ta\t1\nb\n", "vocab:2: expected id, word and count"),
            ("4000000000\ta\t1\n", "the largest id of the dictionary, 4000000000"),
        ] {
            let error = words(text.as_bytes(), 0).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn dates_are_checked() {
        let parse = |text: &'static str| dates(Input::stream(text.as_bytes(), Path::new("times")));
        assert_eq!(parse("1999\r\n2000-02-29\n\n").unwrap().len(), 2);
        let error = parse("1999\n2001-02-29\n").unwrap_err().to_string();
        assert!(error.starts_with("times:2: `2001-02-29` is not a date"), "{error}");
        let error = parse("1999\n\n2001\n").unwrap_err().to_string();
        assert!(error.starts_with("times:2: `` is not a date"), "{error}");
    }
}
