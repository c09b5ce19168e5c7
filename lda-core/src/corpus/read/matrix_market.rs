//! Parser of MatrixMarket files. [`Format::MatrixMarket`] documents the format.

use super::detect::Sample;
use super::entries::{Entries, Ids, Values};
use super::error::ReadError;
use super::format::{CorpusFormat, SupportedOptions};
use super::scan::Scanner;
use super::{Format, Parsed, ReadOptions};
use crate::corpus::assembly::Assembly;

/// Row in the table of formats.
pub(super) static FORMAT: CorpusFormat = CorpusFormat {
    format: Format::MatrixMarket,
    name: "matrix-market",
    extensions: &["mtx", "mm"],
    prefixes: &[],
    sniff,
    options: SupportedOptions {
        columns: false,
        keep_order: false,
        num_words: false,
        transpose: true,
    },
    parse,
    read_directory: None,
};

/// Whether the file begins with the banner.
fn sniff(sample: &Sample<'_>) -> bool {
    const BANNER: &[u8] = b"%%MatrixMarket";
    sample
        .bytes
        .trim_ascii_start()
        .get(..BANNER.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(BANNER))
}

fn parse(input: &mut Scanner<'_>, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let values = banner(input)?;
    while input.content()? && input.peek()? == b'%' {
        input.skip_line()?;
    }
    let [rows, columns, entries] = sizes(input)?;
    let lines = Entries {
        first: Ids::new("row", rows, "the size line"),
        second: Ids::new("column", columns, "the size line"),
        values,
    };
    let (num_documents, num_words) =
        if options.transpose { (columns, rows) } else { (rows, columns) };
    if num_documents > u64::from(u32::MAX - 1) || num_words > u64::from(u32::MAX) {
        return Err(ReadError::TooLarge { at: input.place(), what: "rows or columns" });
    }

    let mut assembly = Assembly::new(input.destination(), options.max_empty_documents);
    let least_line = if values == Values::Absent { 4 } else { 6 };
    let room = assembly.announce(num_documents, entries, input.plausible(least_line));
    input.placed(room)?;
    let mut found = 0;
    while input.content()? {
        if found == entries {
            return Err(wrong_number(input, entries, found + 1));
        }
        let line = input.line();
        let (row, column, count) = lines.read(input)?;
        let (document, word) = if options.transpose { (column, row) } else { (row, column) };
        let pushed = assembly.push_at(document, word, count);
        input.placed_at(line, pushed)?;
        found += 1;
    }
    if found < entries {
        return Err(wrong_number(input, entries, found));
    }
    let (corpus, repairs) = input.placed(assembly.finish_at(num_documents as u32))?;
    Ok(Parsed::new(corpus, repairs).stating_words(num_words as u32))
}

#[cold]
fn wrong_number(input: &Scanner<'_>, stated: u64, found: u64) -> ReadError {
    ReadError::Header { at: input.place(), what: "entries", stated, found }
}

fn banner(input: &mut Scanner<'_>) -> Result<Values, ReadError> {
    input.content()?;
    word(input, "`%%MatrixMarket` as the first word", &[("%%matrixmarket", ())])?;
    word(input, "`matrix`", &[("matrix", ())])?;
    word(
        input,
        "`coordinate` (arrays are not read; write the matrix sparse)",
        &[("coordinate", ())],
    )?;
    let field = word(
        input,
        "`integer`, `unsigned-integer`, `real` or `pattern`",
        &[
            ("integer", Values::Given),
            ("unsigned-integer", Values::Given),
            ("real", Values::Given),
            ("pattern", Values::Absent),
        ],
    )?;
    word(input, "`general` (symmetric matrices are no corpora)", &[("general", ())])?;
    input.end_line()?;
    Ok(field)
}

/// Takes one of several words, in any case.
fn word<T: Copy>(
    input: &mut Scanner<'_>,
    expected: &'static str,
    choices: &[(&str, T)],
) -> Result<T, ReadError> {
    input.blanks()?;
    let token = input.token(64)?;
    let len = token.len();
    let choice = choices.iter().find(|(name, _)| token.eq_ignore_ascii_case(name.as_bytes()));
    match choice {
        Some(&(_, value)) => {
            input.skip(len);
            Ok(value)
        }
        None => Err(input.syntax(expected)),
    }
}

fn sizes(input: &mut Scanner<'_>) -> Result<[u64; 3], ReadError> {
    let mut sizes = [0; 3];
    for (size, what) in sizes.iter_mut().zip([
        "the number of rows",
        "the number of columns",
        "the number of entries",
    ]) {
        *size = input.number(what)?;
    }
    input.end_line()?;
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::super::ReadReport;
    use super::*;
    use crate::corpus::Corpus;

    const HEAD: &str = "%%MatrixMarket matrix coordinate integer general\n";

    fn parse_with(text: &str, options: &ReadOptions) -> Result<(Corpus, ReadReport), ReadError> {
        Format::MatrixMarket.read_from(text.as_bytes(), "a.mtx", options)
    }

    fn parse(text: &str) -> Result<(Corpus, ReadReport), ReadError> {
        parse_with(text, &ReadOptions::default())
    }

    fn rows(corpus: &Corpus) -> Vec<Vec<(u32, u32)>> {
        corpus.documents().map(|row| row.iter().collect()).collect()
    }

    #[test]
    fn legal_oddities_are_kept_and_counted() {
        let text = "%%matrixmarket MATRIX coordinate REAL general\n% by hand\n%\n\n 3 4  5 \r\n\
                    2 4 1.0\n1 1 2\n\n2 1 3e0\n2 4 20e-1\n1 3 0.0";
        let (corpus, report) = parse(text).unwrap();
        assert_eq!(rows(&corpus), [vec![(0, 2)], vec![(0, 3), (3, 3)], vec![]]);
        assert_eq!((report.repeated_pairs, report.zero_counts), (1, 1));
        assert_eq!((report.empty_documents, report.unused_words), (1, 2));
        assert_eq!(report.out_of_order_documents, 2);
    }

    #[test]
    fn transposed_columns_are_documents() {
        let text = format!("{HEAD}2 3 3\n1 1 5\n2 1 6\n1 3 7\n");
        let options = ReadOptions { transpose: true, ..ReadOptions::default() };
        let (corpus, _) = parse_with(&text, &options).unwrap();
        assert_eq!(rows(&corpus), [vec![(0, 5), (1, 6)], vec![], vec![(0, 7)]]);
        assert_eq!(corpus.num_words(), 2);
    }

    #[test]
    fn patterns_count_one() {
        let text = "%%MatrixMarket matrix coordinate pattern general\n1 3 2\n1 3\n1 1\n";
        assert_eq!(rows(&parse(text).unwrap().0), [vec![(0, 1), (2, 1)]]);
        let error = parse(&text.replace("1 3\n", "1 3 1\n")).unwrap_err().to_string();
        assert!(error.contains("a.mtx:3: expected the end of the line, found `1`"), "{error}");
    }

    #[test]
    fn refusals() {
        for (body, expected) in [
            ("1 3 1\n1 4 1\n", "a.mtx:3: column 4 is not in 1..=3"),
            ("1 3 1\n2 1 1\n", "a.mtx:3: row 2 is not in 1..=1"),
            ("1 3 1\n0 1 1\n", "row 0 is not in 1..=1"),
            ("1 3 2\n1 1 1\n", "a.mtx:4: 2 entries are stated, but 1 follow"),
            ("1 3 0\n1 1 1\n", "a.mtx:3: 0 entries are stated, but 1 follow"),
            ("1 3\n", "expected the number of entries, found the end of the line"),
            ("1 3 1 1\n", "expected the end of the line, found `1`"),
            ("1 3 1\n1 1 -1\n", "the count `-1` is negative"),
            ("1 3 1\n1 1 1.5\n", "the count `1.5` is not whole"),
            ("1 3 1\n1 1 4294967296\n", "the count `4294967296` is above"),
            ("1 3 1\n1 1\n", "the count the end of the line is not a number"),
            ("4294967295 3 1\n1 1 1\n", "more rows or columns than a corpus can hold"),
            ("4294967294 3 1\n1 1 1\n", "more than 16777216 documents without tokens"),
            ("1 3 0\n", "the corpus has no tokens"),
        ] {
            let message = parse(&format!("{HEAD}{body}")).expect_err(body).to_string();
            assert!(message.contains(expected), "{body:?}: {message}");
        }
        for (banner, expected) in [
            ("", "expected `%%MatrixMarket`"),
            ("%MatrixMarket", "expected `%%MatrixMarket`"),
            ("%%MatrixMarket vector", "expected `matrix`, found `vector`"),
            ("%%MatrixMarket matrix array integer general", "arrays are not read"),
            ("%%MatrixMarket matrix coordinate complex general", "found `complex`"),
            ("%%MatrixMarket matrix coordinate integer symmetric", "expected `general`"),
            ("%%MatrixMarket matrix coordinate", "found the end of the line"),
        ] {
            let message = parse(&format!("{banner}\n1 1 1\n1 1 1\n")).expect_err(banner);
            let message = message.to_string();
            assert!(message.contains(expected), "{banner:?}: {message}");
        }
    }
}
