//! Output formats of answers.

use std::io::{self, Write};
use std::path::Path;

use lda_core::infer::{Answer, Inference};
use lda_core::interop::npy;
use lda_core::model::TopicModel;
use lda_examples::matrix::write_field;
use serde::Serialize;

use crate::commands::infer::documents::Documents;

/// Answers of consecutive documents.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// All documents.
    pub documents: &'a Documents,
    /// The first document of the batch.
    pub first: usize,
    pub answers: &'a [Answer],
}

/// Parts of an answer in JSON.
#[derive(Debug)]
pub struct Shown {
    /// Maximum number of topics; `None`: all with tokens.
    pub top: Option<u32>,
    /// Leading words by topic; `None`: no words.
    pub terms: Option<Vec<Vec<String>>>,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object per line.
    JsonLines,
    /// Shares of all topics, with a header.
    Csv,
    /// The same as an array of 64-bit floats.
    Npy,
}

#[derive(Serialize)]
struct Line<'n> {
    document: usize,
    /// Name of the document, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'n str>,
    tokens: u64,
    unknown: u64,
    /// (topic, share), largest first.
    topics: Vec<(u32, f64)>,
    /// Leading words of each of these topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<Vec<&'n [String]>>,
}

impl Form {
    /// Format of the file's extension; JSON lines for standard output.
    ///
    /// # Errors
    /// A message with the known extensions.
    pub fn of(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else { return Ok(Self::JsonLines) };
        match path.extension().and_then(|end| end.to_str()) {
            Some("jsonl") => Ok(Self::JsonLines),
            Some("csv") => Ok(Self::Csv),
            Some("npy") => Ok(Self::Npy),
            // A device has no extension.
            None if path.starts_with("/dev") => Ok(Self::JsonLines),
            _ => Err(format!(
                "--out {}: name a file that ends in .jsonl, .csv or .npy",
                path.display()
            )),
        }
    }

    /// Writes the header of an output of `documents` answers.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(
        self,
        inference: &Inference<&TopicModel>,
        documents: &Documents,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let topics = inference.model().num_topics();
        match self {
            Self::JsonLines => Ok(()),
            Self::Csv => {
                let has_names = documents.name(0).is_some();
                write!(out, "document{}", if has_names { ",name" } else { "" })?;
                (0..topics).try_for_each(|topic| write!(out, ",{topic}"))?;
                writeln!(out)
            }
            Self::Npy => npy::write_header(out, "<f8", &[documents.number(), topics]),
        }
    }

    /// Writes the answers of a batch.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        self,
        inference: &Inference<&TopicModel>,
        batch: &Batch<'_>,
        shown: &Shown,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Batch { documents, first, answers } = *batch;
        match self {
            Self::JsonLines => {
                for (document, answer) in (first..).zip(answers) {
                    let name = documents.name(document);
                    let mut topics = inference.leading(answer);
                    topics.truncate(shown.top.map_or(usize::MAX, |top| top as usize));
                    let terms = shown.terms.as_ref().map(|terms| {
                        topics.iter().map(|topic| &terms[topic.0 as usize][..]).collect()
                    });
                    let Answer { tokens, unknown, .. } = *answer;
                    serde_json::to_writer(
                        &mut *out,
                        &Line { document, name, tokens, unknown, topics, terms },
                    )?;
                    out.write_all(b"\n")?;
                }
            }
            Self::Csv => {
                for (document, answer) in (first..).zip(answers) {
                    write!(out, "{document}")?;
                    if let Some(name) = documents.name(document) {
                        out.write_all(b",")?;
                        write_field(out, name)?;
                    }
                    inference.distribution(answer).iter().try_for_each(|x| write!(out, ",{x}"))?;
                    writeln!(out)?;
                }
            }
            Self::Npy => {
                for answer in answers {
                    for share in inference.distribution(answer) {
                        out.write_all(&share.to_le_bytes())?;
                    }
                }
            }
        }
        Ok(())
    }
}
