//! Output files of a run.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use lda_core::Corpus;
use lda_core::model::TopicModel;
use lda_core::train::Assignments;

use crate::commands::train::args::ResultArgs;
use crate::commands::train::diagnostics::TopicDiagnostics;
use crate::commands::train::plot::{Chart, Picture};
use crate::commands::train::provenance::Provenance;
use lda_examples::matrix::{Layout, Matrix};
use lda_examples::output::{Output, OutputError, sidecar};

/// Output files, opened before training so that one that cannot be written fails at once.
#[derive(Debug)]
pub struct Results {
    /// One line per epoch; taken by the log.
    pub log: Option<Output>,
    assignments: Option<WithSidecar>,
    doc_topics: Option<(Layout, WithSidecar)>,
    topic_words: Option<(Layout, WithSidecar)>,
    model: Option<Output>,
    diagnostics: Option<Output>,
    plot: Option<(Picture, Output)>,
}

/// A file of a format without comments, and the sidecar file with the options.
#[derive(Debug)]
struct WithSidecar {
    output: Output,
    sidecar: Option<Output>,
}

/// Results of a run.
pub struct Outcome<'a> {
    /// Training documents.
    pub corpus: &'a Corpus,
    /// Trained model.
    pub model: &'a TopicModel,
    /// Topic assignments.
    pub assignments: &'a Assignments,
    /// Measures of the topics, if they were asked for.
    pub diagnostics: Option<&'a TopicDiagnostics<'a>>,
    /// (seconds, log joint likelihood per token) of each evaluation.
    pub curve: Vec<(f64, f64)>,
}

/// Results of a run that follow from its model.
pub struct OfModel<'a> {
    /// Trained model.
    pub model: &'a TopicModel,
    /// (seconds, log joint likelihood per token) of each evaluation.
    pub curve: Vec<(f64, f64)>,
}

impl Results {
    /// Opens all requested files.
    ///
    /// # Errors
    /// [`OutputError`] of the first file that cannot be written.
    pub fn create(args: &ResultArgs) -> Result<Self, OutputError> {
        let matrix = |path: &Option<_>| -> Result<_, OutputError> {
            let Some(path): &Option<std::path::PathBuf> = path else { return Ok(None) };
            let Some(layout) = Layout::of(path) else { return Ok(None) };
            Ok(Some((layout, WithSidecar::create(path, layout.needs_sidecar())?)))
        };
        let plot = match &args.plot {
            Some(path) => Picture::of(path).map(|p| Output::create(path).map(|o| (p, o))),
            None => None,
        };
        Ok(Self {
            log: args.log.as_deref().map(Output::create).transpose()?,
            assignments: args
                .assignments
                .as_deref()
                .map(|path| WithSidecar::create(path, true))
                .transpose()?,
            doc_topics: matrix(&args.doc_topics)?,
            topic_words: matrix(&args.topic_words)?,
            model: args.save.as_deref().map(Output::create_file).transpose()?,
            diagnostics: args.diagnostics.as_deref().map(Output::create).transpose()?,
            plot: plot.transpose()?,
        })
    }

    /// Writes all files except the log. If one file fails, the others are still written.
    ///
    /// # Errors
    /// The first [`OutputError`].
    pub fn write(self, outcome: &Outcome<'_>, provenance: &Provenance) -> Result<(), OutputError> {
        let Outcome { corpus, model, assignments, .. } = *outcome;
        let mut results = Vec::new();
        if let Some(file) = self.assignments {
            results.push(file.fill(provenance, |out| write_assignments(assignments, out)));
        }
        if let Some((layout, file)) = self.doc_topics {
            let matrix =
                Matrix::of_documents(corpus, assignments, model.alpha(), model.num_topics());
            results.push(
                file.fill(provenance, |out| matrix.write(layout, &provenance.to_json(), out)),
            );
        }
        if let (Some(output), Some(found)) = (self.diagnostics, outcome.diagnostics) {
            results.push(output.fill(|out| found.write_csv(&provenance.to_json(), out)));
        }
        let of_model = OfModel { model, curve: outcome.curve.clone() };
        results.extend(write_of_model(
            (self.topic_words, self.model, self.plot),
            &of_model,
            provenance,
        ));
        results.into_iter().collect()
    }

    /// Writes the files that need the model alone. If one fails, the others are still written.
    ///
    /// # Errors
    /// The first [`OutputError`].
    pub fn write_of_model(
        self,
        outcome: &OfModel<'_>,
        provenance: &Provenance,
    ) -> Result<(), OutputError> {
        let files = (self.topic_words, self.model, self.plot);
        write_of_model(files, outcome, provenance).into_iter().collect()
    }
}

/// Files that need the model alone: words of topics, the model, and the plot.
type FilesOfModel = (Option<(Layout, WithSidecar)>, Option<Output>, Option<(Picture, Output)>);

fn write_of_model(
    (topic_words, model_file, plot): FilesOfModel,
    outcome: &OfModel<'_>,
    provenance: &Provenance,
) -> Vec<Result<(), OutputError>> {
    let (model, mut results) = (outcome.model, Vec::new());
    if let Some((layout, file)) = topic_words {
        let matrix = Matrix::of_topics(model);
        results.push(file.fill(provenance, |out| matrix.write(layout, &provenance.to_json(), out)));
    }
    if let Some(output) = model_file {
        let model = model.clone().with_provenance(provenance.of_model(model.provenance()));
        results.push(output.fill(|out| model.write_to(out)));
    }
    if let Some((picture, output)) = plot {
        let chart = chart(&outcome.curve, provenance);
        let metadata = provenance.to_json();
        results.push(output.fill(|out| picture.write(&chart, &metadata, out)));
    }
    results
}

impl WithSidecar {
    fn create(path: &Path, needs_sidecar: bool) -> Result<Self, OutputError> {
        let output = Output::create(path)?;
        let sidecar = match needs_sidecar && output.is_file() {
            true => Some(Output::create(&sidecar(path))?),
            false => None,
        };
        Ok(Self { output, sidecar })
    }

    fn fill(
        self,
        provenance: &Provenance,
        write: impl FnOnce(&mut BufWriter<std::fs::File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        self.output.fill(write)?;
        match self.sidecar {
            Some(sidecar) => {
                sidecar.fill(|out| writeln!(out, "{{\"options\":{}}}", provenance.to_json()))
            }
            None => Ok(()),
        }
    }
}

fn write_assignments(assignments: &Assignments, out: &mut impl Write) -> io::Result<()> {
    assignments.as_slice().iter().try_for_each(|topic| writeln!(out, "{topic}"))
}

fn chart(curve: &[(f64, f64)], provenance: &Provenance) -> Chart {
    Chart {
        title: provenance.title(),
        y_label: "log joint likelihood per token (nats)".to_owned(),
        x_label: "seconds of sampling".to_owned(),
        caption: provenance.caption(),
        points: curve.to_vec(),
    }
}
