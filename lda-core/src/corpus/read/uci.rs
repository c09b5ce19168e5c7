//! Parser of UCI bag-of-words. [`Format::Uci`] documents the format.

use super::detect::{Sample, is_number};
use super::entries::{Entries, Ids, Values};
use super::error::ReadError;
use super::format::{CorpusFormat, SupportedOptions};
use super::scan::Scanner;
use super::{Format, Parsed, ReadOptions};
use crate::corpus::assembly::Assembly;

/// Row in the table of formats.
pub(super) static FORMAT: CorpusFormat = CorpusFormat {
    format: Format::Uci,
    name: "uci",
    extensions: &[],
    prefixes: &["docword."],
    sniff,
    options: SupportedOptions {
        columns: false,
        keep_order: false,
        num_words: false,
        transpose: false,
    },
    parse,
    read_directory: None,
};

/// Whether the file begins with three numbers, one per line.
fn sniff(sample: &Sample<'_>) -> bool {
    let lines = &sample.lines;
    lines.len() >= 3 && lines[..3].iter().all(|line| is_number(line.trim_ascii()))
}

/// Length of the shortest line of a pair, `1 1 1`.
const LEAST_LINE: u64 = 6;

fn parse(input: &mut Scanner<'_>, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let num_documents = header(input, "the number of documents", u32::MAX - 1)?;
    let num_words = header(input, "the number of words", u32::MAX)?;
    let num_pairs = header(input, "the number of pairs (NNZ)", u64::MAX)?;
    let documents = Ids::new("document id", num_documents, "the header's first line");
    let words = Ids::new("word id", num_words, "the header's second line");

    let mut assembly = Assembly::new(input.destination(), options.max_empty_documents);
    let room = assembly.announce(num_documents, num_pairs, input.plausible(LEAST_LINE));
    input.placed(room)?;
    let lines = Entries { first: documents, second: words, values: Values::Given };
    let mut pairs = 0;
    while input.content()? {
        if pairs == num_pairs {
            return Err(wrong_nnz(input, num_pairs, pairs + 1));
        }
        let line = input.line();
        let (document, word, count) = lines.read(input)?;
        let pushed = assembly.push_at(document, word, count);
        input.placed_at(line, pushed)?;
        pairs += 1;
    }
    if pairs < num_pairs {
        return Err(wrong_nnz(input, num_pairs, pairs));
    }
    let (corpus, repairs) = input.placed(assembly.finish_at(num_documents as u32))?;
    Ok(Parsed::new(corpus, repairs).stating_words(num_words as u32))
}

fn header(
    input: &mut Scanner<'_>,
    what: &'static str,
    most: impl Into<u64>,
) -> Result<u64, ReadError> {
    input.content()?;
    let value = input.number(what)?;
    if value > most.into() {
        return Err(ReadError::TooLarge { at: input.place(), what });
    }
    input.end_line()?;
    Ok(value)
}

fn wrong_nnz(input: &Scanner<'_>, stated: u64, found: u64) -> ReadError {
    ReadError::Header { at: input.place(), what: "pairs (NNZ)", stated, found }
}

#[cfg(test)]
mod tests {
    use super::super::ReadReport;
    use super::*;
    use crate::corpus::Corpus;

    fn parse(text: &str) -> Result<(Corpus, ReadReport), ReadError> {
        Format::Uci.read_from(text.as_bytes(), "docword", &ReadOptions::default())
    }

    fn error(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn irregular_input_is_accepted_and_counted() {
        let text = "\n 5\r\n4 \n\n7\n2 3 1\n\n2\t1  2\r\n4 4 0\n2 3 4\n1 2 1\n2 1 1\n  4 4 9";
        let (corpus, report) = parse(text).unwrap();
        let rows: Vec<Vec<_>> = corpus.documents().map(|row| row.iter().collect()).collect();
        let expected =
            [vec![(1, 1)], vec![(0, 3), (2, 5)], vec![], vec![(3, 9)], Vec::<(u32, u32)>::new()];
        assert_eq!(rows, expected);
        assert_eq!((report.documents, report.words, report.pairs, report.tokens), (5, 4, 4, 18));
        assert_eq!((report.empty_documents, report.unused_words), (2, 0));
        assert_eq!((report.repeated_pairs, report.zero_counts), (2, 1));
        assert_eq!((report.unsorted_pairs, report.out_of_order_documents), (1, 2));
        assert_eq!(report.bytes, text.replace("\r\n", "\n").len() as u64);
    }

    #[test]
    fn ids_out_of_range_are_rejected() {
        let text = error("2\n3\n1\n1 4 1\n");
        assert!(text.starts_with("docword:4: word id 4 is not in 1..=3; "), "{text}");
        let text = error("2\n3\n1\n3 1 1\n");
        assert!(text.starts_with("docword:4: document id 3 is not in 1..=2; "), "{text}");
        assert!(error("2\n3\n1\n0 1 1\n").contains("document id 0 is not in 1..=2"));
        assert!(error("2\n3\n1\n1 0 1\n").contains("word id 0 is not in 1..=3"));
        assert!(
            error("2\n3\n1\n1 99999999999999999999 1\n").contains("word id 18446744073709551615")
        );
        assert!(error("0\n3\n1\n1 1 1\n").contains("document id 1 is not in"));
        assert!(error("2\n3\n1\n-1 1 1\n").contains("expected document id, found `-1`"));
    }

    #[test]
    fn a_wrong_header_is_rejected() {
        let text = error("1\n3\n3\n1 1 1\n1 2 1\n");
        assert!(text.contains("docword:6: 3 pairs (NNZ) are stated, but 2 follow"), "{text}");
        let text = error("1\n3\n1\n1 1 1\n1 2 1\n");
        assert!(text.contains("docword:5: 1 pairs (NNZ) are stated, but 2 follow"), "{text}");
        assert!(error("").contains("docword:1: expected the number of documents"));
        assert!(error("1\n3\n").contains("docword:3: expected the number of pairs (NNZ)"));
        assert!(error("1 3\n1\n").contains("docword:1: expected the end of the line, found `3`"));
        assert!(error("-1\n3\n1\n").contains("found `-1`"));
        assert!(error("4294967295\n3\n1\n").contains("more the number of documents"));
        assert!(error("1\n4294967296\n1\n").contains("more the number of words"));
    }

    #[test]
    fn invalid_counts_are_rejected() {
        for (count, problem) in [
            ("-1", "is negative"),
            ("1.5", "is not whole"),
            ("4294967296", "is above 2^32 - 1"),
            ("x", "is not a number"),
            ("1x", "is not a number"),
            ("", "is not a number"),
        ] {
            let text = error(&format!("1\n3\n1\n1 1 {count}\n"));
            assert!(text.starts_with("docword:4: the count "), "{text}");
            assert!(text.contains(problem), "{count}: {text}");
        }
        assert!(parse("1\n3\n1\n1 1 4294967295\n").is_ok());
        assert_eq!(parse("1\n3\n1\n1 1 2.0\n").unwrap().0.num_tokens(), 2);
        assert!(error("1\n3\n2\n1 1 4294967295\n1 1 1\n").contains("add up to more than 2^32 - 1"));
        assert!(error("1\n3\n1\n1 1 1 1\n").contains("expected the end of the line, found `1`"));
        assert!(error("1\n3\n1\n1,1,1\n").contains("expected a space after the id"));
    }

    #[test]
    fn a_corpus_without_tokens_is_rejected() {
        for text in ["2\n3\n0\n", "0\n0\n0\n", "1\n1\n1\n1 1 0\n"] {
            assert!(matches!(parse(text), Err(ReadError::NoTokens { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_header_drives_no_allocation() {
        let pairs = error("4\n4\n18446744073709551614\n1 1 1\n");
        assert!(pairs.contains("18446744073709551614 pairs (NNZ) are stated, but 1 follow"));
        let documents = error("4294967294\n4294967295\n1\n4294967294 4294967295 1\n");
        assert!(documents.contains("more than 16777216 documents without tokens"), "{documents}");
        let documents = error("4294967294\n4294967295\n2\n9 4294967295 1\n1 1 1\n");
        assert!(documents.contains("more than 16777216 documents without tokens"), "{documents}");
    }
}
