//! A run from the command line to the last line.

use std::io::{self, Read, Write};
use std::time::Instant;

use lda_core::Corpus;
use lda_core::corpus::read::text;
use lda_core::file::FileError;
use lda_core::infer::{Answer, Inference};
use lda_core::model::TopicModel;
use lda_examples::documents::{Answered, DocumentsError};
use lda_examples::output::{Output, OutputError};
use lda_examples::program::ThreadsError;
use lda_examples::reading::{self, ReadingError};
use thiserror::Error;

use crate::args::Args;
use crate::write::Form;

/// Why a run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InferError {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The model cannot be read.
    #[error("{0}")]
    Model(#[from] FileError),
    /// Topics of the documents cannot be had.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Print(io::Error),
    /// The thread pool could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

impl InferError {
    /// Exit status: 2 where the command line is to blame, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Documents(error) if error.is_usage() => 2,
            _ => 1,
        }
    }
}

/// Reads, infers, writes.
///
/// # Errors
/// [`InferError`].
pub fn run(args: &Args) -> Result<(), InferError> {
    let form = Form::of(args.out.as_deref()).map_err(InferError::Usage)?;
    args.program.start_threads()?;
    let note = |text: &str| args.program.note(text);
    let output = args.out.as_deref().map(Output::create).transpose()?;
    // The file is somebody's, and may be anything.
    let model = TopicModel::map(&args.model, true)?;
    note(&format!(
        "{}: {} topics, {} words",
        args.model.display(),
        model.num_topics(),
        model.num_words()
    ));
    let method = args.method.method();
    let inference =
        Inference::new(&model, method, args.method.seed).map_err(DocumentsError::from)?;
    let documents = documents(args, &note)?;
    let start = Instant::now();
    let answers = match documents {
        Documents::Empty(documents) => vec![Answer::default(); documents],
        Documents::Some(corpus) => Answered::new(&corpus, &inference, &args.model)?.answers,
    };
    let seconds = start.elapsed().as_secs_f64();
    match output {
        Some(output) => {
            output.fill(|out| form.write(&inference, &answers, args.top, out))?;
        }
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            let written = form.write(&inference, &answers, args.top, &mut out);
            match written.and_then(|()| out.flush()) {
                // Who reads only the first lines, as `head` does, has what he wants.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                other => other.map_err(InferError::Print)?,
            }
        }
    }
    let tokens: u64 = answers.iter().map(|answer| answer.tokens).sum();
    let unknown: u64 = answers.iter().map(|answer| answer.unknown).sum();
    note(&format!(
        "{} documents, {tokens} tokens, {unknown} more of words that the model does not know; {:.0} \
         documents/s by {}",
        answers.len(),
        answers.len() as f64 / seconds.max(1e-9),
        method.name()
    ));
    Ok(())
}

/// What there is to answer.
enum Documents {
    /// So many, without a word: no corpus is made of them.
    Empty(usize),
    Some(Box<Corpus>),
}

fn documents(args: &Args, note: &dyn Fn(&str)) -> Result<Documents, DocumentsError> {
    if let Some(path) = &args.path {
        let read = reading::read(path, &args.reading, &mut |text| note(text))?;
        return Ok(Documents::Some(Box::new(read.corpus)));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(DocumentsError::Input)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Documents::Empty(bytes.iter().filter(|&&byte| byte == b'\n').count()));
    }
    let options = reading::read_options(&args.reading).map_err(ReadingError::from)?;
    let (corpus, _) =
        text::from_reader(&bytes[..], "standard input", &options).map_err(ReadingError::from)?;
    Ok(Documents::Some(Box::new(corpus)))
}
