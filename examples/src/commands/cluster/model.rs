//! `lda cluster model`: the model of the last checkpoint of a run.
//!
//! It needs the documents, the configuration and the checkpoints, and no node.

use lda_core::model::TopicModel;
use lda_dist::cluster::{RunError, SavedCounts};
use lda_dist::documents::StoredDocuments;
use lda_dist::priors::Priors;
use lda_examples::output::Output;

use crate::commands::cluster::args::Model;
use crate::commands::cluster::config::Config;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::from_model::from_stored;
use crate::commands::cluster::training::Extent;

/// Reads the checkpoint and writes the model.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Model) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    let config = Config::read(&args.config)?;
    let Some(snapshots) = &config.snapshots else {
        let file = args.config.display();
        let usage = format!("{file}: it has no table [snapshots], so the run has no checkpoints");
        return Err(ClusterError::Usage(usage));
    };
    let place = |error| ClusterError::Stored { place: config.documents.to_string(), error };
    let documents = StoredDocuments::open(config.documents.open()?).map_err(place)?;
    let from = from_stored(&config, &documents)?;
    let setup = config.training.setup(
        Some(documents.num_shards()),
        Extent::of(&documents),
        from.as_ref(),
    )?;
    let storage = snapshots.directory.open()?;
    let output = Output::create_file(&args.out)?;
    let saved = SavedCounts::read(&setup, &documents, &*storage).map_err(RunError::from)?;
    if let Some(damaged) = &saved.damaged {
        args.program.note(&format!("warning: {damaged}; the model is of the checkpoint before"));
    }
    let Priors { alpha, beta } = saved.priors;
    let model = TopicModel::from_counts(&saved.counts, alpha, beta)
        .with_vocabulary(documents.vocabulary().map_err(place)?);
    args.program.note(&format!("the model of epoch {}", saved.epoch));
    Ok(output.fill(|out| model.write_to(out))?)
}
