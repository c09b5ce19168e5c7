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
use lda_examples::matrix::{self, DocumentTopics, Layout, Matrix};
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
    /// Training documents and their topics.
    pub documents: &'a mut dyn DocumentTopics,
    /// Trained model.
    pub model: &'a TopicModel,
    /// Measures of the topics, if they were asked for.
    pub diagnostics: Option<&'a TopicDiagnostics<'a>>,
    /// (seconds, log joint likelihood per token) of each evaluation.
    pub curve: Vec<(f64, f64)>,
}

/// Documents in memory, and their topics.
pub struct AtOnce<'a>(pub &'a Corpus, pub Assignments);

impl DocumentTopics for AtOnce<'_> {
    fn num_documents(&self) -> u64 {
        self.0.num_documents() as u64
    }

    fn visit(
        &mut self,
        f: &mut (dyn FnMut(u64, &Corpus, &Assignments) -> io::Result<()> + Send),
    ) -> io::Result<()> {
        f(0, self.0, &self.1)
    }
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
    pub fn write(self, outcome: Outcome<'_>, provenance: &Provenance) -> Result<(), OutputError> {
        let Outcome { documents, model, diagnostics, curve } = outcome;
        let mut results = Vec::new();
        let json = provenance.to_json();
        // The model first: it cannot be made again where the documents cannot be read.
        if let Some(output) = self.model {
            let model = model.clone().with_provenance(provenance.of_model(model.provenance()));
            results.push(output.fill(|out| model.write_to(out)));
        }
        if let Some((layout, file)) = self.topic_words {
            let matrix = Matrix::of_topics(model);
            results.push(file.fill(provenance, |out| matrix.write(layout, &json, out)));
        }
        if let Some((picture, output)) = self.plot {
            let chart = chart(&curve, provenance);
            results.push(output.fill(|out| picture.write(&chart, &json, out)));
        }
        if let (Some(output), Some(found)) = (self.diagnostics, diagnostics) {
            results.push(output.fill(|out| found.write_csv(&json, out)));
        }
        if let Some(file) = self.assignments {
            results.push(file.fill(provenance, |out| write_assignments(documents, out)));
        }
        if let Some((layout, file)) = self.doc_topics {
            let prior = (model.alpha(), model.num_topics());
            results.push(file.fill(provenance, |out| {
                matrix::write_documents(documents, prior, layout, &json, out)
            }));
        }
        results.into_iter().collect()
    }
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

fn write_assignments(
    documents: &mut dyn DocumentTopics,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    documents.visit(&mut |_, _, topics| {
        topics.as_slice().iter().try_for_each(|topic| writeln!(out, "{topic}"))
    })
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
