//! Documents of `lda infer`.

use std::io::{self, Read};

use lda_core::Corpus;
use lda_core::corpus::{Format, ReadError, ReadOptions};
use lda_core::model::TopicModel;
use lda_examples::documents::DocumentsError;
use lda_examples::reading::{self, ReadingError};

use crate::commands::infer::args::Args;

/// Documents to infer.
#[derive(Debug)]
pub enum Documents {
    /// Only documents without tokens, this many: no corpus can be built from them.
    Empty(usize),
    Some(Box<Corpus>),
}

impl Documents {
    /// Number of documents.
    pub fn number(&self) -> usize {
        match self {
            Self::Empty(number) => *number,
            Self::Some(corpus) => corpus.num_documents(),
        }
    }

    /// Name of document `d`, if documents have names.
    pub fn name(&self, d: usize) -> Option<&str> {
        match self {
            Self::Empty(_) => None,
            Self::Some(corpus) => corpus.document_name(d),
        }
    }
}

/// Reads the documents at PATH, or texts from standard input without one.
///
/// # Errors
/// [`DocumentsError`].
pub fn read(
    args: &Args,
    model: &TopicModel,
    note: &dyn Fn(&str),
) -> Result<Documents, DocumentsError> {
    let reading = &args.inference.reading;
    if let Some(path) = &args.path {
        return match reading::read(path, reading, Some(model), &mut |text| note(text)) {
            Ok(read) => Ok(Documents::Some(Box::new(read.corpus))),
            Err(error) => without_tokens(error),
        };
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(DocumentsError::Input)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Documents::Empty(bytes.iter().filter(|&&byte| byte == b'\n').count()));
    }
    reading::refuse_phrases(reading, Some(model))?;
    let options = reading::read_options(reading, Some(model)).map_err(ReadingError::from)?;
    reading.text.words.warning(reading::rules(model)).iter().for_each(|warning| note(warning));
    match read_texts(&bytes, &options) {
        Ok(corpus) => Ok(Documents::Some(Box::new(corpus))),
        Err(error) => without_tokens(error.into()),
    }
}

/// Reads standard input: texts, also in a table or in JSON lines. Numbers are words there.
fn read_texts(bytes: &[u8], options: &ReadOptions) -> Result<Corpus, ReadError> {
    const NAME: &str = "standard input";
    let is_of_numbers = |format: Format| !format.has_texts();
    match Corpus::read_from(bytes, NAME, options) {
        Ok((_, report)) if is_of_numbers(report.format) => {}
        Ok((corpus, _)) => return Ok(corpus),
        Err(error @ (ReadError::Structured { .. } | ReadError::Column { .. })) => {
            return Err(error);
        }
        Err(error) if options.format.is_some() => return Err(error),
        Err(_) => {}
    }
    Ok(Format::Text.read_from(bytes, NAME, options)?.0)
}

/// Documents whose words were all dropped are inferred as empty ones; other errors stay errors.
fn without_tokens(error: ReadingError) -> Result<Documents, DocumentsError> {
    match error {
        ReadingError::Read(ReadError::NoTokens { documents, .. }) => {
            Ok(Documents::Empty(documents as usize))
        }
        error => Err(error.into()),
    }
}
