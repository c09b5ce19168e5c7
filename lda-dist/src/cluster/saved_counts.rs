//! The counts of a checkpoint, without the nodes of the run: for a model of a run that has been stopped,
//! goes on, or has ended without one.

use lda_core::counts::TopicIndex;

use super::collected_counts::CollectedCounts;
use super::saved_topics::SavedShard;
use super::{Documents, Failed, Setup};
use crate::priors::Priors;
use crate::snapshot::{LATEST, Latest, SnapshotId, decode_latest};
use crate::storage::Storage;

/// Attempts to read checkpoints of a run that goes on.
const ATTEMPTS: u32 = 10;

/// C_w and C_k of a checkpoint.
#[derive(Debug)]
#[non_exhaustive]
pub struct SavedCounts {
    /// Epoch after which the checkpoint was written.
    pub epoch: u32,
    /// The counts, for a [`TopicModel`](lda_core::model::TopicModel).
    pub counts: CollectedCounts,
    /// Priors of the epoch.
    pub priors: Priors,
    /// Why the checkpoint of a later epoch could not be read, if there is one.
    pub damaged: Option<Failed>,
}

impl SavedCounts {
    /// Reads the last checkpoint of a run, or the one before if that cannot be read. Shards are read one
    /// after the other. The setup must have the model, documents and shards of the run; other options
    /// may differ.
    ///
    /// # Errors
    /// [`Failed::Snapshot`] if there is no checkpoint of this run, or neither can be read;
    /// [`Failed::Documents`] if the documents cannot.
    pub fn read<D: Documents>(
        setup: &Setup,
        documents: &D,
        storage: &dyn Storage,
    ) -> Result<Self, Failed> {
        let mut found = latest(setup, storage)?;
        for _ in 0..ATTEMPTS {
            let read = Self::read_latest(setup, documents, storage, found);
            let now = latest(setup, storage)?;
            // A run that goes on removes a checkpoint after it has written two others.
            match read {
                Err(Failed::Snapshot { .. }) if now != found => found = now,
                read => return read,
            }
        }
        let why = "the run writes checkpoints faster than they can be read: stop it first";
        Err(Failed::Snapshot { name: LATEST.to_owned(), why: why.to_owned() })
    }

    fn read_latest<D: Documents>(
        setup: &Setup,
        documents: &D,
        storage: &dyn Storage,
        latest: Latest,
    ) -> Result<Self, Failed> {
        let read = |epoch| counts(setup, documents, storage, epoch);
        match read(latest.epoch) {
            Ok((counts, priors)) => Ok(Self { epoch: latest.epoch, counts, priors, damaged: None }),
            Err(damaged @ Failed::Snapshot { .. }) if latest.before > 0 => {
                let (counts, priors) = read(latest.before)?;
                Ok(Self { epoch: latest.before, counts, priors, damaged: Some(damaged) })
            }
            Err(failed) => Err(failed),
        }
    }
}

/// The epochs of the last checkpoints.
pub(super) fn latest(setup: &Setup, storage: &dyn Storage) -> Result<Latest, Failed> {
    let failed = |why: String| Failed::Snapshot { name: LATEST.to_owned(), why };
    if !storage.has(LATEST).map_err(|error| failed(error.to_string()))? {
        let why = "it does not exist: the run has completed no checkpoint there";
        return Err(failed(why.to_owned()));
    }
    let text = storage.read(LATEST).map_err(|error| failed(error.to_string()))?;
    decode_latest(setup.run(), &text).map_err(|error| failed(error.to_string()))
}

fn counts<D: Documents>(
    setup: &Setup,
    documents: &D,
    storage: &dyn Storage,
    epoch: u32,
) -> Result<(CollectedCounts, Priors), Failed> {
    let (topics, words) = (setup.spec.topics(), setup.spec.words());
    let mut priors = setup.spec.priors();
    let mut counts = CollectedCounts::new(topics as usize, words as usize);
    for shard in 0..setup.options.shards {
        let (counts, narrow) = (&mut counts, u64::from(topics) <= u16::MAX_TOPICS);
        let add = if narrow { add_shard::<u16, D> } else { add_shard::<u32, D> };
        let id = SnapshotId { run: setup.run(), epoch, shard };
        priors = add(setup, documents, storage, id, counts)?.unwrap_or(priors);
    }
    if let Some(pseudo) = setup.spec.pseudo_counts() {
        (0..words).for_each(|word| counts.add(word, 0, pseudo.word(word as usize)));
    }
    counts.merge();
    Ok((counts, priors))
}

/// Adds the counts of a shard. Returns the priors of the epoch, if they change.
fn add_shard<T: TopicIndex, D: Documents>(
    setup: &Setup,
    documents: &D,
    storage: &dyn Storage,
    id: SnapshotId,
    counts: &mut CollectedCounts,
) -> Result<Option<Priors>, Failed> {
    let SavedShard::<T> { shard, priors, .. } = SavedShard::read(setup, documents, storage, id)?;
    let tokens = shard.tokens();
    tokens.counts(0, |at, row| counts.add(tokens.words(0)[at as usize], 0, row));
    Ok(priors)
}
