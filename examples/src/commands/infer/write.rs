//! Output formats of answers.

use std::io::{self, Write};
use std::path::Path;

use lda_core::infer::{Answer, Inference};
use lda_core::interop::npy;
use lda_core::model::TopicModel;
use serde::Serialize;

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
struct Line {
    document: usize,
    tokens: u64,
    unknown: u64,
    /// (topic, share), largest first.
    topics: Vec<(u32, f64)>,
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
        documents: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let topics = inference.model().num_topics();
        match self {
            Self::JsonLines => Ok(()),
            Self::Csv => {
                write!(out, "document")?;
                (0..topics).try_for_each(|topic| write!(out, ",{topic}"))?;
                writeln!(out)
            }
            Self::Npy => npy::write_header(out, "<f8", &[documents, topics]),
        }
    }

    /// Writes answers; the first one is that of document `first`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        self,
        inference: &Inference<&TopicModel>,
        first: usize,
        answers: &[Answer],
        top: Option<u32>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match self {
            Self::JsonLines => {
                for (document, answer) in (first..).zip(answers) {
                    let mut topics = inference.leading(answer);
                    topics.truncate(top.map_or(usize::MAX, |top| top as usize));
                    let Answer { tokens, unknown, .. } = *answer;
                    serde_json::to_writer(&mut *out, &Line { document, tokens, unknown, topics })?;
                    out.write_all(b"\n")?;
                }
            }
            Self::Csv => {
                for (document, answer) in (first..).zip(answers) {
                    write!(out, "{document}")?;
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
