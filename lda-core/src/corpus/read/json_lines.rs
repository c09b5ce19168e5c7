//! Reader of JSON lines: one object per line.

use serde_json::{Map, Value};

use super::Parsed;
use super::columns::push_date;
use super::error::{Place, ReadError};
use super::options::{Columns, ReadOptions};
use super::scan::{Scanner, utf8};
use super::text::TextCollector;

/// Parses JSON lines.
pub(super) fn parse(input: &mut Scanner<'_>, options: &ReadOptions) -> Result<Parsed, ReadError> {
    let path = input.path().to_owned();
    let mut collector = TextCollector::new(input.destination(), options)?;
    // Columns that no line has had so far.
    let mut unseen: Vec<&String> = options.columns.text.iter().collect();
    let mut first: Option<(Place, Vec<String>)> = None;
    loop {
        let at = input.place();
        let Some(line) = input.whole_line()? else { break };
        let line = utf8(line, &at)?.trim();
        if !line.is_empty() {
            let object = object(line, &at)?;
            unseen.retain(|column| !object.contains_key(*column));
            let names = || (at.clone(), object.keys().cloned().collect());
            let (_, columns) = first.get_or_insert_with(names);
            if options.columns.text.is_empty() {
                let columns = std::mem::take(columns);
                return Err(ReadError::Column { at, missing: None, columns, header: false });
            }
            add(&object, &options.columns, &mut collector, at)?;
        }
        input.count_line();
    }
    if let (Some(missing), Some((at, columns))) = (unseen.first(), first) {
        let missing = Some(missing.to_string());
        return Err(ReadError::Column { at, missing, columns, header: false });
    }
    collector.finish(&path, options)
}

fn object(line: &str, at: &Place) -> Result<Map<String, Value>, ReadError> {
    serde_json::from_str(line).map_err(|error| ReadError::Syntax {
        at: at.clone(),
        expected: "a JSON object on one line",
        found: error.to_string(),
    })
}

/// Adds an object as a document.
fn add(
    object: &Map<String, Value>,
    columns: &Columns,
    collector: &mut TextCollector,
    at: Place,
) -> Result<(), ReadError> {
    for column in &columns.text {
        match object.get(column) {
            None | Some(Value::Null) => {}
            Some(Value::Array(parts)) => {
                for part in parts {
                    collector.add_field(&text(part, column, &at)?, at.clone())?;
                }
            }
            Some(value) => collector.add_field(&text(value, column, &at)?, at.clone())?,
        }
    }
    if let Some(column) = &columns.id {
        collector.builder.push_name(text(given(object, column, &at)?, column, &at)?.trim());
    }
    if let Some(column) = &columns.date {
        push_date(collector, &text(given(object, column, &at)?, column, &at)?, &at)?;
    }
    collector.end_document(at)
}

/// A field that every object must have.
fn given<'o>(
    object: &'o Map<String, Value>,
    column: &String,
    at: &Place,
) -> Result<&'o Value, ReadError> {
    object.get(column).ok_or_else(|| ReadError::Column {
        at: at.clone(),
        missing: Some(column.clone()),
        columns: object.keys().cloned().collect(),
        header: false,
    })
}

/// A string or a number as text.
fn text(value: &Value, column: &str, at: &Place) -> Result<String, ReadError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => {
            let found: String = other.to_string().chars().take(40).collect();
            let found = format!("`{found}` in the field `{column}`");
            Err(ReadError::Syntax { at: at.clone(), expected: "a string or a number", found })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::read::PhraseOptions;
    use crate::corpus::{Corpus, Format};

    fn read(lines: &str, text: &[&str]) -> Result<Corpus, String> {
        let mut options = ReadOptions::default();
        options.columns.text = text.iter().map(|&name| name.to_owned()).collect();
        options.columns.id = lines.contains("\"id\"").then(|| "id".to_owned());
        let read = Corpus::read_from(lines.as_bytes(), "lines", &options);
        read.map(|(corpus, _)| corpus).map_err(|error| error.to_string())
    }

    #[test]
    fn objects_become_documents() {
        let lines = "{\"id\": 7, \"text\": \"Tree \\u00e9t\\u00e9\", \"tags\": [\"sea\", \"wave\"]}\n\n\
            { \"id\": \"b\", \"text\": null}\n{\"id\": \"c\", \"tags\": \"leaf\"}\n";
        let corpus = read(lines, &["text", "tags"]).unwrap();
        assert_eq!(corpus.num_documents(), 3);
        let words: Vec<&str> = corpus.vocabulary().unwrap().iter().collect();
        assert_eq!(words, ["tree", "\u{e9}t\u{e9}", "sea", "wave", "leaf"]);
        assert_eq!([0, 1, 2].map(|d| corpus.doc_length(d)), [4, 0, 1]);
        assert_eq!([0, 1, 2].map(|d| corpus.document_name(d).unwrap()), ["7", "b", "c"]);
        // One line that is longer than the sample of the detection, and than a block.
        let long = format!("{{\"text\": \"{}\"}}\n", "tree leaf ".repeat(1 << 15));
        assert_eq!(read(&long, &["text"]).unwrap().num_tokens(), 1 << 16);
    }

    #[test]
    fn phrases_do_not_span_fields() {
        let lines = "{\"title\": \"New\", \"text\": \"York in New York\"}\n";
        for search in [false, true] {
            let mut options = ReadOptions::default();
            options.columns.text = vec!["title".into(), "text".into()];
            match search {
                false => options.text.tokenizer.phrases = vec!["new york".into()],
                true => {
                    let mut phrases = PhraseOptions::default();
                    (phrases.min_count, phrases.threshold) = (1, -1.0);
                    options.text.phrases = Some(phrases);
                }
            }
            let corpus = Corpus::read_from(lines.as_bytes(), "lines", &options).unwrap().0;
            let words: Vec<&str> = corpus.vocabulary().unwrap().iter().collect();
            // "in" is a stop word, and may be part of a phrase.
            let expected: &[&str] = match search {
                false => &["new", "york", "new_york"],
                true => &["new", "york_in_new_york"],
            };
            assert_eq!(words, expected, "{search}");
        }
    }

    #[test]
    fn what_would_be_read_wrongly_is_refused() {
        let lines = "{\"text\": \"tree\"}\n{\"text\": \"leaf\"}\n";
        for (lines, text, said) in [
            (lines, vec![], "lines:1: the columns are `text`; name those of the texts"),
            (lines, vec!["body"], "no column `body`: the columns are `text`"),
            (
                "{\"id\": 1, \"text\": \"a\"}\n{\"text\": \"b\"}\n",
                vec!["text"],
                "lines:2: no column `id`",
            ),
            (
                "{\"text\": \"a\"}\n{\"text\": {\"x\": 1}}\n",
                vec!["text"],
                "lines:2: expected a string",
            ),
            ("[\n{\"text\": \"a\"}]\n", vec!["text"], "this is JSON"),
        ] {
            let error = read(lines, &text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let mut options = ReadOptions::default();
        options.columns.text = vec!["text".to_owned()];
        let error =
            Format::JsonLines.read_from(&b"{\"text\": \"a\"}\n{\"te"[..], "lines", &options);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("lines:2: expected a JSON object on one line"), "{error}");
    }
}
