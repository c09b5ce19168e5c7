//! Training: epochs of a sampler over a corpus, on a pool of threads.
//!
//! [`Lda`] runs to the end with one call; [`Trainer`] is driven epoch by epoch; [`Sweep`] trains with
//! several numbers of topics, to choose one.
//!
//! # What "exact" means with more than one block
//! The corpus is cut into a grid of G × G blocks (see [`layout`](crate::layout)). In a wave, G blocks
//! that share no document and no word are sampled at once. Rows are always current; totals C_k are
//! those of the wave's start plus the block's own changes. With G = 1 an exact sampler is exact. With
//! more, C_k lacks the changes of the wave's other blocks: at most G − 1 blocks of about T/G² tokens
//! each.
//!
//! # Warm-up
//! The state of a run is its assignments, so one sampler can continue from another's. Far from the
//! posterior every sampler moves towards it, and an epoch of WarpLDA is several times as short as one
//! of an exact sampler; near the posterior the exact sampler is worth its price. A run can begin with
//! epochs of WarpLDA ([`TrainOptions::warm_up`]); if no sampler is set, it does ([`Choice::auto`] has
//! the times). The run converges to the law of its last sampler.
//!
//! # Reproducible
//! Same resolved options and same corpus: same assignments, bit for bit, at any thread count, on any
//! instruction set. A run that ends by a time budget or is cancelled after epoch n equals a run with
//! `epochs` set to n, unless n shortens a default warm-up. A run resumed from a [`Snapshot`] gives the
//! same bits as one that was never interrupted.

mod any_engine;
mod assignments;
pub mod blocks;
pub mod checkpoint;
mod document_sizes;
mod engine;
mod exclusion;
mod held_out;
mod lda;
mod memory;
mod options;
mod pass;
mod progress;
mod registry;
mod report;
mod resume_state;
mod run_record;
pub mod seed_counts;
pub mod snapshot;
mod spans;
mod start;
mod state;
pub mod sweep;
#[cfg(test)]
mod tests;
mod token_state;
mod trainer;
mod view;

pub use assignments::{Assignments, AssignmentsError};
pub use checkpoint::{Checkpoints, Latest};
pub use exclusion::TokenAge;
pub use held_out::HeldOut;
pub use lda::{Lda, Trained};
pub use memory::MemoryEstimate;
pub use options::{
    Choice, Learn, LearnAlpha, LevelOff, OptionsError, Resolved, SamplerKind, SamplerOptions,
    TrainOptions, check_prior_updates,
};
pub use report::{EpochReport, Flow, Observer};
pub use seed_counts::{PseudoCounts, PseudoCountsError, Weight};
pub use snapshot::{ResumeError, Snapshot};
pub use start::{DocumentTopics, FirstTopics, Start};
pub use state::CountsError;
pub use sweep::{Sweep, SweepError, SweepRun};
pub use trainer::{Init, Trainer};
