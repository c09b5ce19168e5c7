//! Reader of tables of texts: CSV and TSV.
//!
//! The crate `csv` splits records and fields. Memory is bounded: a record has at most 16 MiB, also if
//! a quotation mark is never closed.

use std::io::{self, Read};

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::Parsed;
use super::columns::push_date;
use super::error::{Place, ReadError};
use super::options::{Columns, ReadOptions};
use super::scan::{Scanner, utf8};
use super::text::TextCollector;

/// Maximum size of a record in bytes, to within the buffer of the crate `csv`.
const MAX_RECORD: usize = 1 << 24;

/// The bytes of a table.
struct Table<'s, 'a> {
    input: &'s mut Scanner<'a>,
    /// Bytes that the current record may still have.
    left: usize,
    /// Quotation marks so far.
    quotes: u64,
    failure: Option<ReadError>,
}

impl Read for Table<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let len = buffer.len().min(self.left);
        match self.input.take(&mut buffer[..len]) {
            Ok(len) => {
                self.left -= len;
                self.quotes += buffer[..len].iter().filter(|&&byte| byte == b'"').count() as u64;
                Ok(len)
            }
            Err(error) => {
                self.failure = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

/// Parses a table.
pub(super) fn parse(input: &mut Scanner<'_>, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let path = input.path().to_owned();
    let separator = separator(input.rest());
    let mut collector = TextCollector::new(input.destination(), options)?;
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .quoting(separator != b'\t')
        .has_headers(false)
        .from_reader(Table { input, left: MAX_RECORD, quotes: 0, failure: None });
    let mut record = ByteRecord::new();
    let mut places: Option<Places> = None;
    // The first record of several lines.
    let mut long: Option<Place> = None;
    loop {
        reader.get_mut().left = MAX_RECORD;
        let read = reader.read_byte_record(&mut record);
        let at = Place::line(&path, record.position().map_or(0, csv::Position::line));
        match read {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => return Err(failed(error, &mut reader, at)),
        }
        if long.is_none() && record.as_slice().contains(&b'\n') {
            long = Some(at.clone());
        }
        let places = match &places {
            Some(places) => places,
            None => {
                let found = places.insert(Places::find(&options.columns, &record, &at)?);
                if options.columns.header {
                    continue;
                }
                found
            }
        };
        places.add(&record, &mut collector, at)?;
    }
    let quotes = reader.get_ref().quotes;
    if let Some(at) = long.filter(|_| separator != b'\t' && !quotes.is_multiple_of(2)) {
        // A mark that is never closed would join the lines that follow to one document.
        let expected = "a closing quotation mark for each opening one";
        let found = format!("{quotes} of them in the file, and a field of several lines here");
        return Err(ReadError::Syntax { at, expected, found });
    }
    collector.finish(&path, options)
}

/// The separator that the first line has most of; a comma if it has none.
fn separator(start: &[u8]) -> u8 {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    for &byte in line {
        quoted ^= byte == b'"';
        counts.iter_mut().filter(|of| of.0 == byte && !quoted).for_each(|of| of.1 += 1);
    }
    // Of equal numbers the first: max_by_key takes the last.
    counts.iter().rev().max_by_key(|of| of.1).map_or(b',', |of| of.0)
}

fn failed(error: csv::Error, reader: &mut Reader<Table<'_, '_>>, at: Place) -> ReadError {
    if let Some(failure) = reader.get_mut().failure.take() {
        return failure;
    }
    let line = reader.position().line();
    match error.into_kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let at = Place { line: pos.map_or(line, |pos| pos.line()), ..at };
            let found = format!("{len} fields, where the first line has {expected_len}");
            ReadError::Syntax { at, expected: "as many fields as in the first line", found }
        }
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let at = Place { line, ..at };
            ReadError::TooLong { at, limit: MAX_RECORD, delimiter: "record end" }
        }
        other => {
            let source = io::Error::other(format!("{other:?}"));
            ReadError::Io { path: at.path, source }
        }
    }
}

/// Places of columns in a record.
struct Places {
    text: Vec<usize>,
    id: Option<usize>,
    date: Option<usize>,
}

impl Places {
    /// Finds the columns by their names in the first record, or by their numbers.
    fn find(columns: &Columns, first: &ByteRecord, at: &Place) -> Result<Self, ReadError> {
        let mut names = Vec::new();
        for (number, field) in (1..).zip(first) {
            names.push(match columns.header {
                true => utf8(field, at)?.trim().to_owned(),
                false => number.to_string(),
            });
        }
        let missing = |missing: Option<&String>| ReadError::Column {
            at: at.clone(),
            missing: missing.cloned(),
            columns: names.clone(),
            header: columns.header,
        };
        let place = |column: &String| {
            let number = || column.parse::<usize>().ok()?.checked_sub(1);
            let named = names.iter().position(|name| name == column);
            named.or_else(number).filter(|&place| place < names.len())
        };
        let found = |column: &String| place(column).ok_or_else(|| missing(Some(column)));
        if columns.text.is_empty() {
            return Err(missing(None));
        }
        Ok(Self {
            text: columns.text.iter().map(found).collect::<Result<_, _>>()?,
            id: columns.id.as_ref().map(found).transpose()?,
            date: columns.date.as_ref().map(found).transpose()?,
        })
    }

    /// Adds a record as a document.
    fn add(
        &self,
        record: &ByteRecord,
        collector: &mut TextCollector,
        at: Place,
    ) -> Result<(), ReadError> {
        let field = |place: usize| utf8(&record[place], &at);
        for &place in &self.text {
            collector.add_field(field(place)?, at.clone())?;
        }
        if let Some(id) = self.id {
            collector.builder.push_name(field(id)?.trim());
        }
        if let Some(date) = self.date {
            push_date(collector, field(date)?, &at)?;
        }
        collector.end_document(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, ReadOptions};
    use crate::corpus::Corpus;

    fn options(text: &[&str]) -> ReadOptions {
        let mut options = ReadOptions { keep_order: true, ..ReadOptions::default() };
        options.columns.text = text.iter().map(|&name| name.to_owned()).collect();
        options
    }

    fn read(table: &str, options: &ReadOptions) -> Result<Corpus, String> {
        let read = Corpus::read_from(table.as_bytes(), "table", options);
        read.map(|(corpus, _)| corpus).map_err(|error| error.to_string())
    }

    fn documents(corpus: &Corpus) -> Vec<String> {
        let word = |&id: &u32| corpus.vocabulary().unwrap().word(id).to_owned();
        let document = |d| corpus.tokens(d).unwrap().iter().map(word).collect::<Vec<_>>().join(" ");
        (0..corpus.num_documents()).map(document).collect()
    }

    #[test]
    fn columns_become_documents() {
        let table = "id,title,text,date\r\na,\"Tree, leaf\",\"Sea\nand \"\"wave\"\"\",2001-02-03\r\n\
            b,Root,,2002-03-04T05:06:07Z\r\n";
        let mut options = options(&["title", "text"]);
        (options.columns.id, options.columns.date) = (Some("id".into()), Some("4".into()));
        let corpus = read(table, &options).unwrap();
        assert_eq!(documents(&corpus), ["tree leaf sea wave", "root"]);
        assert_eq!((corpus.document_name(0), corpus.document_name(1)), (Some("a"), Some("b")));
        let dates: Vec<String> = corpus.dates().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(dates, ["2001-02-03", "2002-03-04"]);
        let part = corpus.select([1]);
        assert_eq!(part.document_name(0), Some("b"));
    }

    #[test]
    fn separators_are_found_and_tabs_need_no_quotes() {
        for table in ["id;text\n1;\"tree; leaf\"\n", "id\ttext\n1\ttree \"leaf\n"] {
            let options = ReadOptions { format: Some(Format::Csv), ..options(&["text"]) };
            assert_eq!(documents(&read(table, &options).unwrap()), ["tree leaf"], "{table}");
        }
        let mut headless = options(&["3"]);
        headless.columns.header = false;
        let corpus = read("1\tx\ttree leaf\n2\ty\tsea wave\n", &headless).unwrap();
        assert_eq!(documents(&corpus), ["tree leaf", "sea wave"]);
    }

    #[test]
    fn what_would_be_read_wrongly_is_refused() {
        let table = "id,text\n1,tree\n2,leaf\n";
        let columns = "the columns are `id`, `text`; name those of the texts in `columns.text` (their numbers";
        for (table, text, said) in [
            (table, vec![], columns),
            (table, vec!["body"], "table:1: no column `body`: the columns are `id`, `text`"),
            (table, vec!["0"], "no column `0`"),
            (table, vec!["3"], "no column `3`"),
            (
                "id,text\n1,a,b\n",
                vec!["text"],
                "table:2: expected as many fields as in the first line",
            ),
            (
                "id,text\n1,\"tree\n2,leaf\n3,sea\n",
                vec!["text"],
                "table:2: expected a closing quotation",
            ),
            ("id,text\n1,\"tree\n2,\"leaf\"\n", vec!["text"], "expected a closing quotation"),
        ] {
            let error = read(table, &options(&text)).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let mut dated = options(&["text"]);
        dated.columns.date = Some("id".into());
        let error = read("id,text\n1999,tree\nsoon,leaf\n", &dated).unwrap_err();
        assert!(error.starts_with("table:3: `soon` is not a date"), "{error}");
        let long = format!("id,text\n1,\"{}\n", "tree\n".repeat(4 << 20));
        let error = read(&long, &options(&["text"])).unwrap_err();
        assert!(error.contains("more than 16777216 bytes without a record end"), "{error}");
        let invalid =
            Corpus::read_from(&b"id,text\n1,tr\xffee\n"[..], "t.csv", &options(&["text"]));
        assert!(invalid.unwrap_err().to_string().starts_with("t.csv:2: invalid UTF-8"));
    }
}
