//! Parser of SVMlight and libsvm files. [`Format::Svmlight`] documents the format.

use super::error::ReadError;
use super::format::{CorpusFormat, SupportedOptions};
use super::pairs::{self, Indices, Labels};
use super::scan::Scanner;
use super::{Format, Parsed, ReadOptions};
use crate::corpus::assembly::Assembly;

/// Maximum length of a label, in bytes, plus 1.
const MAX_LABEL: usize = 1024;

/// Row in the table of formats.
pub(super) static FORMAT: CorpusFormat = CorpusFormat {
    format: Format::Svmlight,
    name: "svmlight",
    extensions: &["svm", "svmlight", "libsvm"],
    prefixes: &[],
    sniff: |sample| pairs::sniff(sample) == Some(Labels::Any),
    options: SupportedOptions {
        columns: false,
        keep_order: false,
        num_words: true,
        transpose: false,
    },
    parse,
    read_directory: None,
};

fn parse(input: &mut Scanner<'_>, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let indices = Indices::new(options.index_base, options.num_words);
    // A document takes at least one byte, so empty ones need no separate limit.
    let mut assembly = Assembly::new(input.destination(), u64::MAX);
    while input.content()? {
        if input.peek()? == b'#' {
            input.skip_line()?;
            continue;
        }
        let line = input.line();
        label(input)?;
        while !line_ended(input)? {
            let (word, count) = indices.read(input)?;
            let pushed = assembly.push(word, count);
            input.placed(pushed)?;
        }
        let ended = assembly.end_document();
        input.placed_at(line, ended)?;
    }
    let (corpus, repairs) = input.placed(assembly.finish())?;
    let parsed = Parsed::new(corpus, repairs);
    Ok(match options.num_words {
        Some(num_words) => parsed.stating_words(num_words),
        None => parsed,
    })
}

/// Skips the label, if the line has one, and the query id.
fn label(input: &mut Scanner<'_>) -> Result<(), ReadError> {
    let first = input.token(MAX_LABEL)?;
    if first.len() == MAX_LABEL {
        return Err(input.syntax("a label of at most 1023 bytes"));
    }
    if !first.contains(&b':') {
        let len = first.len();
        input.skip(len);
    }
    input.blanks()?;
    let next = input.token(MAX_LABEL)?;
    let len = next.len();
    match next.strip_prefix(b"qid:") {
        None => Ok(()),
        Some(id) if !id.is_empty() && id.iter().all(u8::is_ascii_digit) => {
            input.skip(len);
            Ok(())
        }
        Some(_) => Err(input.syntax("a whole number after `qid:`")),
    }
}

fn line_ended(input: &mut Scanner<'_>) -> Result<bool, ReadError> {
    if input.line_ended()? {
        return Ok(true);
    }
    if input.peek()? != b'#' {
        return Ok(false);
    }
    input.skip_line()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::ReadReport;
    use super::*;
    use crate::corpus::Corpus;

    fn parse_with(text: &str, options: &ReadOptions) -> Result<(Corpus, ReadReport), ReadError> {
        Format::Svmlight.read_from(text.as_bytes(), "a.svm", options)
    }

    fn parse(text: &str) -> Result<(Corpus, ReadReport), ReadError> {
        parse_with(text, &ReadOptions::default())
    }

    fn error(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    fn rows(corpus: &Corpus) -> Vec<Vec<(u32, u32)>> {
        corpus.documents().map(|row| row.iter().collect()).collect()
    }

    #[test]
    fn legal_oddities_are_kept_and_counted() {
        let text = "# head\n\n1 3:1 1:2.0 3:2e0\r\n-1.5e3 qid:7 2:0 4:1#c 9:9\n1,2 \n 2:+1. 1:1\n0";
        let (corpus, report) = parse(text).unwrap();
        let expected = [
            vec![(0, 2), (2, 3)],
            vec![(3, 1)],
            vec![],
            vec![(0, 1), (1, 1)],
            Vec::<(u32, u32)>::new(),
        ];
        assert_eq!(rows(&corpus), expected);
        assert_eq!((report.unsorted_pairs, report.repeated_pairs), (2, 1));
        assert_eq!((report.zero_counts, report.empty_documents, report.words), (1, 2, 4));
    }

    #[test]
    fn the_index_base_is_an_option() {
        let text = error("1 2:1\n1 0:1\n");
        assert!(text.starts_with("a.svm:2: index 0, but indices start at 1"), "{text}");
        assert!(text.contains("set `index_base` to 0"), "{text}");
        let zero = ReadOptions { index_base: 0, ..ReadOptions::default() };
        let (corpus, _) = parse_with("1 0:1 4:2\n", &zero).unwrap();
        assert_eq!(rows(&corpus), [vec![(0, 1), (4, 2)]]);
        let ten = ReadOptions { index_base: 10, ..ReadOptions::default() };
        let text = parse_with("1 9:1\n", &ten).unwrap_err().to_string();
        assert!(text.contains("index 9 is not in 10..="), "{text}");
    }

    #[test]
    fn the_number_of_words_is_an_option() {
        let five = ReadOptions { num_words: Some(5), ..ReadOptions::default() };
        let (corpus, report) = parse_with("1 2:1\n", &five).unwrap();
        assert_eq!((corpus.num_words(), report.unused_words), (5, 4));
        let text = parse_with("1 6:1\n", &five).unwrap_err().to_string();
        assert!(text.contains("index 6 is not in 1..=5"), "{text}");
        assert!(text.contains("raise `num_words`"), "{text}");
        let all = ReadOptions { max_unused_words: u64::MAX, ..ReadOptions::default() };
        assert!(parse_with("1 4294967295:1\n", &all).is_ok());
        assert!(
            error("1 4294967295:1\n")
                .contains("4294967295 words, of which 4294967294 have no token")
        );
        assert!(error("1 4294967296:1\n").contains("index 4294967296 is not in 1..=4294967295"));
    }

    #[test]
    fn refusals() {
        for (text, expected) in [
            ("1 1:-1\n", "a.svm:1: the count `-1` is negative"),
            ("1 1:1.5\n", "a.svm:1: the count `1.5` is not whole"),
            ("1 1:1e10\n", "a.svm:1: the count `1e10` is above 2^32 - 1"),
            ("1 1:x\n", "a.svm:1: the count `x` is not a number"),
            ("1 1:\n", "a.svm:1: the count the end of the line is not a number"),
            ("1 1\n", "a.svm:1: expected a colon after the index"),
            ("1 1:1 word\n", "a.svm:1: expected an index, a colon and a count, found `word`"),
            ("1 1:1 -2:1\n", "found `-2:1`"),
            ("1 qid:x 1:1\n", "expected a whole number after `qid:`"),
            ("1 1:4294967295 1:1\n", "a.svm:1: the counts of word id 0"),
            ("", "the corpus has no tokens"),
            ("1\n-1\n", "the corpus has no tokens"),
            ("1 1:0\n", "the corpus has no tokens"),
        ] {
            let message = error(text);
            assert!(message.contains(expected), "{text:?}: {message}");
        }
        assert!(error(&"9".repeat(2000)).contains("a label of at most"));
    }
}
