//! Errors of checkpoints that do not end a run.

use thiserror::Error;

/// Error of a checkpoint. The run continues.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The storage failed when a checkpoint was written, or an earlier one removed. A restart may have
    /// to go back further.
    #[error("a checkpoint is not written, the run continues: {why}")]
    NotWritten {
        /// The error of the storage.
        why: String,
    },
    /// The run continues from a checkpoint with other options than it had then.
    #[error(
        "the run continues from epoch {epoch} with other options, {changes}: its result may differ from that of a run with either"
    )]
    OtherOptions {
        /// Epoch of the checkpoint.
        epoch: u32,
        /// The options, with their values now and before.
        changes: String,
    },
    /// A worker could not read the last checkpoint, and the run went back to the one before.
    #[error(
        "{worker} cannot read the checkpoint of epoch {epoch}, so the run goes on from that of epoch {before}: {why}"
    )]
    Unreadable {
        /// The worker, such as `worker 2`.
        worker: String,
        /// Epoch of the last checkpoint.
        epoch: u32,
        /// Epoch from which the run goes on.
        before: u32,
        /// Cause.
        why: String,
    },
    /// A worker could not read the topics within an epoch from which the run was to go on with other workers.
    #[error(
        "{worker} cannot read the topics after {rounds} rounds of epoch {epoch}, so the run goes on from epoch {before}: {why}"
    )]
    MidEpoch {
        /// The worker, such as `worker 2`.
        worker: String,
        /// The epoch that had not ended.
        epoch: u32,
        /// Its rounds that had ended.
        rounds: u16,
        /// Epoch from which the run goes on.
        before: u32,
        /// Cause.
        why: String,
    },
}
