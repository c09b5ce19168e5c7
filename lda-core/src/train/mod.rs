//! Training: epochs of a sampler over a corpus, on a pool of threads.
//!
//! [`Lda`] is the short way; [`Trainer`] the one to drive epoch by epoch.
//!
//! # What "exact" means with more than one block
//! The corpus is cut into a grid of G × G blocks (see [`layout`](crate::layout)); in a wave, G
//! blocks that share no document and no word are sampled at once. Rows are always current; the
//! totals C_k are the wave's plus the block's own changes. With G = 1 an exact sampler is exact.
//! With more, C_k lags by what the other blocks of the wave did, at most G − 1 blocks of about T/G²
//! tokens each.
//!
//! # Warm-up
//! A state is its assignments, so one sampler can go on where another stopped. Far from the posterior
//! any sampler leads there, and WarpLDA's epochs are several times as short as an exact one's; near it
//! the exact one is worth its price. A run may begin with epochs of WarpLDA
//! ([`TrainOptions::warm_up`]), and one that nobody has asked for a sampler does ([`Choice::auto`], where
//! the times are). The law that the run converges to is that of the sampler that ends it.
//!
//! # Reproducible
//! Same resolved options and same corpus: same assignments, bit for bit, at any thread count, on any
//! instruction set. A time budget or a cancelled run ends after some epoch n; it equals a run asked
//! for n epochs, unless that makes a shorter warm-up of one that nobody has asked for. A
//! [`Snapshot`] takes a run up where it was, to the same bits.

mod assignments;
pub mod checkpoint;
mod engine;
mod exclusion;
mod held_out;
mod lda;
mod memory;
mod options;
mod pass;
mod registry;
mod report;
mod resume_state;
pub mod seed_counts;
pub mod snapshot;
mod start;
mod state;
#[cfg(test)]
mod tests;
mod trainer;
mod view;

pub use assignments::Assignments;
pub use checkpoint::{Checkpoints, Latest};
pub use held_out::HeldOut;
pub use lda::{Lda, Trained};
pub use memory::MemoryEstimate;
pub use options::{
    Choice, Learn, LearnAlpha, LevelOff, OptionsError, Resolved, SamplerKind, SamplerOptions,
    TrainOptions,
};
pub use report::{EpochReport, Flow, Observer};
pub use seed_counts::{PseudoCounts, PseudoCountsError, Weight};
pub use snapshot::{ResumeError, Snapshot};
pub use start::Start;
pub use state::CountsError;
pub use trainer::{Init, Trainer};
