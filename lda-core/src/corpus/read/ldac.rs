//! Parser of LDA-C files. [`Format::Ldac`] documents the format.

use super::error::{Place, ReadError};
use super::format::{CorpusFormat, SupportedOptions};
use super::pairs::{self, Indices, Labels};
use super::scan::Scanner;
use super::{Format, Parsed, ReadOptions};
use crate::corpus::assembly::Assembly;

/// Row in the table of formats.
pub(super) static FORMAT: CorpusFormat = CorpusFormat {
    format: Format::Ldac,
    name: "ldac",
    extensions: &["ldac", "lda-c"],
    prefixes: &[],
    sniff: |sample| pairs::sniff(sample) == Some(Labels::NumPairs),
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
    let indices = Indices::new(0, options.num_words);
    // A document takes at least one byte, so empty ones need no separate limit.
    let mut assembly = Assembly::new(input.destination(), u64::MAX);
    while input.content()? {
        let line = input.line();
        let stated = input.number("the number of pairs in the document")?;
        let mut found = 0;
        while !input.line_ended()? {
            let (word, count) = indices.read(input)?;
            let pushed = assembly.push(word, count);
            input.placed(pushed)?;
            found += 1;
        }
        if found != stated {
            let at = Place::line(input.path(), line);
            return Err(ReadError::Header { at, what: "pairs of the document", stated, found });
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

#[cfg(test)]
mod tests {
    use super::super::ReadReport;
    use super::*;
    use crate::corpus::Corpus;

    fn parse(text: &str) -> Result<(Corpus, ReadReport), ReadError> {
        Format::Ldac.read_from(text.as_bytes(), "ap.dat", &ReadOptions::default())
    }

    #[test]
    fn legal_oddities_are_kept_and_counted() {
        let (corpus, report) = parse("3 5:1 0:2.0 5:2\n\n0\r\n  2\t7:0 1:1  \n1 1:4").unwrap();
        let rows: Vec<Vec<_>> = corpus.documents().map(|row| row.iter().collect()).collect();
        assert_eq!(rows, [vec![(0, 2), (5, 3)], vec![], vec![(1, 1)], vec![(1, 4)]]);
        assert_eq!((report.unsorted_pairs, report.repeated_pairs), (1, 1));
        assert_eq!((report.zero_counts, report.empty_documents), (1, 1));
        assert_eq!((report.words, report.unused_words), (8, 5));
    }

    #[test]
    fn refusals() {
        for (text, expected) in [
            ("2 0:1\n", "ap.dat:1: 2 pairs of the document are stated, but 1 follow"),
            ("1 0:1\n1 0:1 1:1\n", "ap.dat:2: 1 pairs of the document are stated, but 2 follow"),
            ("-1 0:1\n", "ap.dat:1: expected the number of pairs in the document, found `-1`"),
            ("x\n", "expected the number of pairs in the document, found `x`"),
            ("0:1\n", "expected an index, a colon and a count, found `:1`"),
            ("1 0:-2\n", "the count `-2` is negative"),
            ("1 0:2.5\n", "the count `2.5` is not whole"),
            ("1 0:4294967296\n", "the count `4294967296` is above 2^32 - 1"),
            ("1 4294967295:1\n", "index 4294967295 is not in 0..=4294967294"),
            ("2 0:4294967295 0:1\n", "ap.dat:1: the counts of word id 0"),
            ("1 0 1\n", "expected a colon after the index"),
            ("", "the corpus has no tokens"),
            ("0\n0\n", "the corpus has no tokens"),
        ] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
        }
        let three = ReadOptions { num_words: Some(3), ..ReadOptions::default() };
        let error =
            Format::Ldac.read_from(&b"1 3:1\n"[..], "ap.dat", &three).unwrap_err().to_string();
        assert!(error.contains("index 3 is not in 0..=2"), "{error}");
    }
}
