//! A run of `lda infer`, from the options to the output.

use std::io::{self, Write};
use std::time::Instant;

use lda_core::container::FileError;
use lda_core::eval::leading_words;
use lda_core::infer::{Answer, Inference, Method};
use lda_core::model::TopicModel;
use lda_examples::documents::{DocumentsError, translate};
use lda_examples::output::{Output, OutputError};
use lda_examples::program::StartError;
use lda_examples::table;
use thiserror::Error;

use crate::commands::infer::args::Args;
use crate::commands::infer::documents::{self, Documents};
use crate::commands::infer::write::{Batch, Form, Shown};

/// Number of documents whose answers are in memory at a time.
const BATCH: usize = 4096;

/// Errors of `lda infer`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InferError {
    /// Invalid options.
    #[error("{0}")]
    Usage(String),
    /// The model cannot be read.
    #[error("{0}")]
    Model(#[from] FileError),
    /// The topics of the documents cannot be inferred.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Print(io::Error),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl InferError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Documents(error) if error.is_usage() => 2,
            _ => 1,
        }
    }
}

/// Reads the model and the documents, infers topics, and writes them.
///
/// # Errors
/// [`InferError`].
pub fn run(args: &Args) -> Result<(), InferError> {
    let form = Form::of(args.out.as_deref()).map_err(InferError::Usage)?;
    args.inference.program.start()?;
    let note = |text: &str| args.inference.program.note(text);
    let output = args.out.as_deref().map(Output::create).transpose()?;
    let method = args.inference.method.method().map_err(DocumentsError::from)?;
    // The file is untrusted input, so all of it is checked.
    let model = TopicModel::load(&args.model)?;
    note(&format!(
        "{}: {} topics, {} words",
        args.model.display(),
        model.num_topics(),
        model.num_words()
    ));
    let inference = args.inference.inference(&model)?;
    let documents = match documents::read(args, &model, &note)? {
        Documents::Some(corpus) => {
            Documents::Some(Box::new(translate(&corpus, &model, &args.model)?.1))
        }
        empty => empty,
    };
    let name = |&word: &u32| table::name(model.vocabulary(), word);
    let terms = leading_words(&model, args.terms as usize);
    let terms = terms.iter().map(|words| words.iter().map(name).collect()).collect();
    let terms = (args.terms > 0).then_some(terms);
    let shown = Shown { top: args.top, terms };
    let mut work = Work { inference, documents, form, shown, done: Done::default() };
    match output {
        Some(output) => output.fill(|out| work.write(out))?,
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            match work.write(&mut out).and_then(|()| out.flush()) {
                // A reader such as `head` closes the pipe after the first lines, which is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                other => other.map_err(InferError::Print)?,
            }
        }
    }
    note(&work.done.describe(method));
    Ok(())
}

/// Documents to infer, and output options.
struct Work<'a> {
    inference: Inference<&'a TopicModel>,
    /// Documents with word ids of the model.
    documents: Documents,
    form: Form,
    shown: Shown,
    done: Done,
}

/// Statistics of the documents inferred.
#[derive(Default)]
struct Done {
    documents: usize,
    tokens: u64,
    unknown: u64,
    /// Seconds of inference, without reading and writing.
    seconds: f64,
}

impl Work<'_> {
    /// Infers and writes in batches, which bounds the memory of the answers.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let number = self.documents.number();
        self.form.begin(&self.inference, &self.documents, out)?;
        let mut answers = Vec::new();
        for first in (0..number).step_by(BATCH) {
            let range = first..number.min(first + BATCH);
            let start = Instant::now();
            match &self.documents {
                Documents::Empty(_) => answers.resize(range.len(), Answer::default()),
                Documents::Some(corpus) => {
                    self.inference.infer_documents(corpus, range, &mut answers);
                }
            }
            self.done.add(&answers, start.elapsed().as_secs_f64());
            let batch = Batch { documents: &self.documents, first, answers: &answers };
            self.form.write(&self.inference, &batch, &self.shown, out)?;
        }
        Ok(())
    }
}

impl Done {
    fn add(&mut self, answers: &[Answer], seconds: f64) {
        self.documents += answers.len();
        self.tokens += answers.iter().map(|answer| answer.tokens).sum::<u64>();
        self.unknown += answers.iter().map(|answer| answer.unknown).sum::<u64>();
        self.seconds += seconds;
    }

    fn describe(&self, method: Method) -> String {
        let Self { documents, tokens, unknown, seconds } = *self;
        format!(
            "{documents} documents, {tokens} tokens, and {unknown} tokens of unknown words; \
             {:.0} documents/s with {}",
            documents as f64 / seconds.max(1e-9),
            method.name()
        )
    }
}
