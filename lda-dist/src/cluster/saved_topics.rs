//! Topics of the documents of a checkpoint, without the nodes of the run.
//!
//! Shards are read one at a time, so a process that reads some of them holds the documents of one, and
//! several processes can share the work.

use lda_core::Corpus;
use lda_core::counts::TopicIndex;

use super::saved_counts::latest;
use super::{Documents, Failed, Setup};
use crate::placement::{Partitioner, Placement};
use crate::priors::Priors;
use crate::shard::{Shard, ShardDocuments};
use crate::snapshot::{Snapshot, SnapshotId, decode};
use crate::storage::Storage;
use crate::wire::Lists;

/// Documents of a shard, and C_d of each in a checkpoint.
#[derive(Debug)]
pub struct SavedTopics {
    documents: Corpus,
    first: u64,
    rows: Lists<u32>,
    priors: Priors,
}

impl SavedTopics {
    /// Epoch of the last checkpoint of a run, which [`read`](Self::read) takes.
    ///
    /// # Errors
    /// [`Failed::Snapshot`] if there is no checkpoint of this run.
    pub fn last_epoch(setup: &Setup, storage: &dyn Storage) -> Result<u32, Failed> {
        latest(setup, storage).map(|latest| latest.epoch)
    }

    /// Reads a shard after an epoch. The setup must have the model, documents and shards of the run; other
    /// options may differ. A run that goes on keeps its last two checkpoints, so the one of the epoch may be
    /// removed meanwhile.
    ///
    /// # Errors
    /// [`Failed::Snapshot`] if there is no such checkpoint of this run, or if it cannot be read;
    /// [`Failed::Documents`] if the documents cannot.
    pub fn read<D: Documents>(
        setup: &Setup,
        documents: &D,
        storage: &dyn Storage,
        (epoch, shard): (u32, u16),
    ) -> Result<Self, Failed> {
        let id = SnapshotId { run: setup.run(), epoch, shard };
        let is_narrow = u64::from(setup.spec.topics()) <= u16::MAX_TOPICS;
        let read = if is_narrow { read_rows::<u16, D> } else { read_rows::<u32, D> };
        read(setup, documents, storage, id)
    }

    /// The documents of the shard.
    pub fn documents(&self) -> &Corpus {
        &self.documents
    }

    /// Number of the shard's first document among all documents.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// (topic, tokens) of each document, in order: topics ascending, tokens above 0.
    pub fn rows(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        self.rows.iter()
    }

    /// Priors of the epoch.
    pub fn priors(&self) -> &Priors {
        &self.priors
    }
}

fn read_rows<T: TopicIndex, D: Documents>(
    setup: &Setup,
    documents: &D,
    storage: &dyn Storage,
    id: SnapshotId,
) -> Result<SavedTopics, Failed> {
    let SavedShard::<T> { shard, documents, first, priors } =
        SavedShard::read(setup, documents, storage, id)?;
    let (mut rows, mut row) = (Lists::default(), Vec::new());
    for document in 0..documents.num_documents() {
        shard.tokens().row(document, &mut row);
        rows.push(&row);
    }
    let priors = priors.unwrap_or_else(|| setup.spec.priors());
    Ok(SavedTopics { documents, first, rows, priors })
}

/// A shard with the topics of a checkpoint. It has a single partition.
pub(super) struct SavedShard<T: TopicIndex> {
    pub shard: Shard<T>,
    documents: Corpus,
    first: u64,
    /// Priors of the epoch, if they change.
    pub priors: Option<Priors>,
}

impl<T: TopicIndex> SavedShard<T> {
    /// Reads the documents and the snapshot.
    pub fn read<D: Documents>(
        setup: &Setup,
        documents: &D,
        storage: &dyn Storage,
        id: SnapshotId,
    ) -> Result<Self, Failed> {
        let number = id.shard;
        let (documents, first) = documents
            .read(number)
            .map_err(|error| Failed::Documents { shard: number, why: error.to_string() })?;
        // Snapshots do not depend on the placement.
        let words = setup.spec.words() as usize;
        let placement = Placement::new(Partitioner::Range, &vec![1; words], 1, 1)
            .map_err(|error| Failed::Documents { shard: number, why: error.to_string() })?;
        let range = 0..documents.num_documents();
        let of_shard = ShardDocuments { corpus: &documents, range, first };
        let hybrid = setup.options.hybrid;
        let mut shard = Shard::new(&setup.spec, hybrid, &placement, number, of_shard)?;
        let failed = |why: String| Failed::Snapshot { name: id.name(), why };
        let bytes = storage.read(&id.name()).map_err(|error| failed(error.to_string()))?;
        let Snapshot { state, priors } =
            decode::<T>(&id, &bytes).map_err(|error| failed(error.to_string()))?;
        shard.restore(&setup.spec, &state).map_err(|error| failed(error.to_string()))?;
        Ok(Self { shard, documents, first, priors })
    }
}
