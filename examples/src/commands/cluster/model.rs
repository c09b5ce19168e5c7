//! `lda cluster model`: the model of the last checkpoint of a run.
//!
//! It needs the documents, the configuration and the checkpoints, and no node.

use lda_core::model::TopicModel;
use lda_dist::cluster::{RunError, SavedCounts};
use lda_dist::priors::Priors;
use lda_examples::output::Output;

use crate::commands::cluster::args::Model;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::saved::SavedRun;

/// Reads the checkpoint and writes the model.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Model) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    let run = SavedRun::open(&args.config, args.base.as_deref())?;
    let SavedRun { documents, setup, snapshots, .. } = &run;
    let output = Output::create_file(&args.out)?;
    let saved = SavedCounts::read(setup, documents, &**snapshots).map_err(RunError::from)?;
    if let Some(damaged) = &saved.damaged {
        args.program.note(&format!("warning: {damaged}; the model is of the checkpoint before"));
    }
    let Priors { alpha, beta } = saved.priors;
    let vocabulary = documents.vocabulary().map_err(|error| run.of_documents(error))?;
    let model = TopicModel::from_counts(&saved.counts, alpha, beta).with_vocabulary(vocabulary);
    args.program.note(&format!("the model of epoch {}", saved.epoch));
    Ok(output.fill(|out| model.write_to(out))?)
}
