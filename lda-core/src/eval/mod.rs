//! Evaluation of a state of the counts or of a finished model.
//!
//! Evaluation reads counts, priors and corpora and is independent of the sampler, so all samplers
//! are measured by the same code, during training and after it.
//!
//! | question | function | cost |
//! |---|---|---|
//! | has the chain converged? | [`likelihood::log_joint`] | non-zeros of C_d and C_w, plus K |
//! | how well do θ and φ explain the training words? | [`predictive::log_predictive`] | K_d per (document, word) pair, plus K_w per word |
//! | does the model predict unseen text? | [`perplexity::held_out_perplexity`] | O(K_w + K_d) per token and sweep |
//! | how probable is a document? | [`left_to_right::left_to_right`] | the square of its length, per particle |
//! | do the words of a topic occur together? | [`coherence::coherence`] | occurrences of top words, and pairs of them per document |
//! | how large, narrow and distinct is each topic? | [`diagnostics::diagnose`] | non-zeros of C_d and C_w |
//! | which topics of two runs are the same? | [`align::align`] | K² distances and an assignment |
//! | which topics do several runs share? | [`consensus::consensus`] | an alignment per pair of runs |
//! | how far apart are topics? | [`TopicDistances`] | K² pairs of entries |
//! | which topics are similar, on a map? | [`classical_scaling`], [`smacof`] | K² per iteration |
//! | the same, for thousands of topics | [`ApproximateDistances`] | 64 words per topic and landmark |
//! | how many topics? | [`num_topics`], [`Sweep`](crate::train::Sweep) | see there |
//! | do chains agree? | [`convergence::r_hat`] | one pass over their values |
//! | what is a topic about? | [`top_words::top_words`], [`top_words::leading_words`] | non-zeros of C_w |
//!
//! Results do not depend on the number of threads: work is split into chunks of a fixed number of
//! rows; each chunk is summed in order, and the chunk sums are added in order.

pub mod align;
pub mod approximate;
pub(crate) mod cancelled;
pub mod coherence;
pub mod consensus;
pub mod convergence;
pub mod diagnostics;
pub mod distance;
mod eigenvalues;
mod fold_in;
pub mod left_to_right;
pub mod likelihood;
pub mod mds;
pub mod num_topics;
pub mod perplexity;
pub mod phi;
pub mod predictive;
mod sum;
pub mod top_words;

pub use align::{Alignment, align};
pub use approximate::ApproximateDistances;
pub use coherence::{
    Coherence, CoherenceError, CoherenceOptions, Counting, Measure, Window, coherence,
    coherence_while,
};
pub use consensus::{Consensus, ConsensusError, SharedTopic, consensus};
pub use convergence::r_hat;
pub use diagnostics::{Diagnostics, TopicDiagnostics, diagnose, diversity};
pub use distance::TopicDistances;
pub use left_to_right::{LeftToRight, LeftToRightOptions, left_to_right, left_to_right_while};
pub use likelihood::{LogJoint, log_joint};
pub use mds::{classical_scaling, smacof};
pub use perplexity::{
    CompletionError, CompletionOptions, DocumentCompletion, held_out_perplexity,
    held_out_perplexity_while,
};
pub use phi::{Phi, PhiError};
pub use predictive::log_predictive;
pub use top_words::{Ranking, TopWord, TopWordsError, leading_words, top_words};
