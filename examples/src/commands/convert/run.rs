//! A run of `lda convert`, from the options to the output files.

use std::path::PathBuf;

use lda_core::model::{Counts, TopicModel};
use lda_core::prior::Alpha;
use lda_core::train::Resolved;
use lda_examples::documents::{Answered, DocumentsError};
use lda_examples::json::ascii_line;
use lda_examples::matrix::{DenseError, Layout, Matrix};
use lda_examples::output::{Output, OutputError};
use lda_examples::program::StartError;
use lda_examples::reading;
use serde::Serialize;
use thiserror::Error;

use crate::commands::convert::args::{Args, Form};
use crate::commands::convert::import::{self, ImportError, Imported};
use crate::commands::convert::{gensim, npz, pyldavis};

/// Errors of `lda convert`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// Invalid options.
    #[error("{0}")]
    Usage(String),
    /// The model cannot be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The model has no counts.
    #[error(
        "{}: it has probabilities and no counts, which gensim needs: write .npy instead",
        .0.display()
    )]
    NoCounts(PathBuf),
    /// The JSON for pyLDAvis would be too large for a browser.
    #[error(
        "{topics} topics by {words} words would be more than 1 GiB of JSON: leave out rare words in \
         training, for instance with --min-document-frequency"
    )]
    TooLarge {
        /// Number of topics.
        topics: usize,
        /// Number of words.
        words: usize,
    },
    /// The matrix would be too large for a dense file.
    #[error(transparent)]
    Dense(#[from] DenseError),
    /// The topics of the documents cannot be inferred.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl ConvertError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Dense(_) | Self::Import(ImportError::Alpha) => 2,
            Self::Documents(error) if error.is_usage() => 2,
            _ => 1,
        }
    }
}

/// Reads the model and writes it in another format.
///
/// # Errors
/// [`ConvertError`].
pub fn run(args: &Args) -> Result<(), ConvertError> {
    let form = args.to.map_or_else(|| Form::of(&args.out), Ok).map_err(ConvertError::Usage)?;
    args.inference.program.start()?;
    let note = |text: &str| args.inference.program.note(text);
    let Imported { model, is_snapshot } = import::import(args)?;
    if let Some(path) = args.path.as_ref().filter(|_| form != Form::Pyldavis && !is_snapshot) {
        let usage = format!(
            "{}: only a snapshot and a .json output need documents: omit them, or name a .json file",
            path.display()
        );
        return Err(ConvertError::Usage(usage));
    }
    let (name, topics, words) = (args.model.display(), model.num_topics(), model.num_words());
    note(&format!("{name}: {topics} topics, {words} words"));
    let model = match args.merge_duplicates {
        Some(distance) => merge(model, distance, &note),
        None => model,
    };
    let out = &args.out;
    match form {
        Form::Lda => Output::create_file(out)?.fill(|out| model.write_to(out))?,
        Form::Npz => Output::create_file(out)?.fill(|out| npz::write(&model, out))?,
        Form::Npy => write_matrix(args, &model, Layout::Npy)?,
        Form::Csv => write_matrix(args, &model, Layout::Csv)?,
        Form::Mtx => write_matrix(args, &model, Layout::MatrixMarket)?,
        Form::Gensim if model.counts().is_none() => {
            return Err(ConvertError::NoCounts(args.model.clone()));
        }
        Form::Gensim => gensim::Files::create(out)?.fill(&model)?,
        Form::Pyldavis => write_documents(args, &model, &note)?,
    }
    Ok(())
}

/// Merges the topics that are nearer than `distance` to each other, and says which.
fn merge(model: TopicModel, distance: f64, note: &dyn Fn(&str)) -> TopicModel {
    let clusters = model.duplicates(distance);
    for cluster in &clusters {
        let topics: Vec<String> = cluster.iter().map(u32::to_string).collect();
        note(&format!("merging topics {}", topics.join(", ")));
    }
    let merged = model.merge(&clusters).model;
    let (before, after) = (model.num_topics(), merged.num_topics());
    note(&format!("{after} topics are left, as {} were duplicates", before - after));
    let mut provenance = merged.provenance().clone();
    let text = format!("{before} topics merged to {after} by distances below {distance}");
    provenance.notes.push(("merge-duplicates".to_owned(), text));
    merged.with_provenance(provenance)
}

fn write_matrix(args: &Args, model: &TopicModel, layout: Layout) -> Result<(), ConvertError> {
    layout.check_size("--out", &args.out, model.num_topics(), model.num_words())?;
    let output = Output::create(&args.out)?;
    let about = About::new(args, model);
    let matrix = Matrix::of_topics(model);
    Ok(output.fill(|out| matrix.write(layout, &ascii_line(&about), out))?)
}

fn write_documents(
    args: &Args,
    model: &TopicModel,
    note: &dyn Fn(&str),
) -> Result<(), ConvertError> {
    let Some(path) = &args.path else {
        let usage = "the JSON for pyLDAvis contains documents: name them after the model";
        return Err(ConvertError::Usage(usage.to_owned()));
    };
    let (topics, words) = (model.num_topics(), model.num_words());
    if Layout::Csv.check_size("--out", &args.out, topics, words).is_err() {
        return Err(ConvertError::TooLarge { topics, words });
    }
    let output = Output::create(&args.out)?;
    let inference = args.inference.inference(model)?;
    let corpus = reading::read(path, &args.inference.reading, Some(model), &mut |text| note(text))
        .map_err(DocumentsError::from)?
        .corpus;
    let Answered { documents, answers, .. } = Answered::new(&corpus, &inference, &args.model)?;
    Ok(output.fill(|out| pyldavis::write(&inference, &documents, &answers, out))?)
}

/// Provenance of a matrix.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct About<'a> {
    program: &'static str,
    model: String,
    alpha: &'a Alpha,
    beta: Option<f64>,
    /// Options of the training run, if the model has them.
    trained: Option<Resolved>,
    epochs: Option<u32>,
}

impl<'a> About<'a> {
    fn new(args: &Args, model: &'a TopicModel) -> Self {
        Self {
            program: "convert",
            model: args.model.display().to_string(),
            alpha: model.alpha(),
            beta: model.counts().map(Counts::beta),
            // Options of a newer version are left out.
            trained: Resolved::from_provenance(model.provenance()).ok().flatten(),
            epochs: model.provenance().epochs,
        }
    }
}
