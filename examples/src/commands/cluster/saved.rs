//! A run whose checkpoints are read without its nodes.

use std::path::Path;
use std::sync::Arc;

use lda_dist::cluster::Setup;
use lda_dist::documents::{StoredDocuments, StoredError};
use lda_dist::storage::Storage;

use crate::commands::cluster::config::Config;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::from_model::from_stored;
use crate::commands::cluster::training::Extent;

/// Documents and checkpoints of a run that a file configures.
pub struct SavedRun {
    pub documents: StoredDocuments<Arc<dyn Storage>>,
    pub setup: Setup,
    pub snapshots: Arc<dyn Storage>,
    /// Place of the documents.
    place: String,
}

impl SavedRun {
    /// Reads the configuration, whose relative paths start at `base` or at its own directory, and opens the documents and the checkpoints.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn open(file: &Path, base: Option<&Path>) -> Result<Self, ClusterError> {
        let config = Config::read(file, base)?;
        let Some(snapshots) = &config.snapshots else {
            let file = file.display();
            let usage =
                format!("{file}: it has no table [snapshots], so the run has no checkpoints");
            return Err(ClusterError::Usage(usage));
        };
        let place = config.documents.to_string();
        let documents = StoredDocuments::open(config.documents.open()?)
            .map_err(|error| ClusterError::Stored { place: place.clone(), error })?;
        let from = from_stored(&config, &documents)?;
        let setup = config.training.setup(
            Some(documents.num_shards()),
            Extent::of(&documents),
            from.as_ref(),
        )?;
        Ok(Self { documents, setup, snapshots: snapshots.directory.open()?, place })
    }

    /// An error of the documents.
    pub fn of_documents(&self, error: StoredError) -> ClusterError {
        ClusterError::Stored { place: self.place.clone(), error }
    }
}
