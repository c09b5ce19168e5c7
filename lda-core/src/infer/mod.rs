//! Topics of new documents, the model held fixed.
//!
//! [`Inference`] makes a model ready for one of three methods:
//!
//! | method | answer | cost |
//! |---|---|---|
//! | [fold-in](Method::FoldIn) | mean of Gibbs samples: the posterior's shares, up to chance | O(min(K_d log K_w, K_w + K_d)) a token and sweep |
//! | [variational](Method::Variational) | mean of one Dirichlet, deterministic | O(K_w) a word and iteration, and O(K) |
//! | [RT-LDA](Method::Rt) | the most probable topics, deterministic | as fold-in, and few sweeps |
//!
//! [`RtLda`] is RT-LDA alone, which gives the topic of each token too: for services that have
//! microseconds for a query. [`Translation`] brings a corpus to a model's word ids. What a model
//! foretells of unseen text is [`eval::perplexity`](crate::eval::perplexity)'s matter.
//!
//! # RT-LDA
//! Gibbs sampling with φ fixed draws the topic of token i of word w from
//! (C_dk¬i + α_k) φ_kw; here it takes the greatest:
//!
//! ```text
//! for each token of word w:                      C_d begins empty and grows
//!     z ← argmax_k (C_dk + α_k) φ_kw
//!     put the token into C_d
//! repeat for some sweeps, for each token, until none moves:
//!     take the token out of C_d
//!     z ← argmax_k (C_dk + α_k) φ_kw             the lowest k of equals
//!     put it back
//! ```
//!
//! A token that moves makes p(z, w | φ, α) greater, or as great with a lower topic, so the sweeps
//! climb to a local optimum and stop: iterated conditional modes (Besag 1986). Which one depends on
//! the order of the tokens. A mode is no mean: words that topics share go to the one that has more
//! already, so the leading topic's share comes out too large, where samples would divide them.
//!
//! The idea is RT-LDA's, of Tencent's Peacock (Wang et al. 2015, "Peacock: Learning Long-Tail Topic
//! Features for Industrial Applications"), which ZenLDA adopts too: it replaces "the sampling
//! operation [...] by the max operation", at similar perplexity. First topics, ties, stopping and
//! the search for the maximum are not taken from there.
//!
//! # Three candidates instead of K
//! Let floor_k = β / (C_k + Vβ), which is φ_kw where C_wk = 0 and less than it elsewhere. The
//! maximum is among
//!
//! 1. the word's best topic of an empty document, argmax_k α_k φ_kw: one a word, found beforehand;
//! 2. the document's topics, (C_dk + α_k) φ_kw for every k with C_dk > 0.
//!
//! For candidate 1 the weight is too low if the document has that topic, as C_dk counts for nothing
//! in it; then the same topic stands among 2 with its true weight. So no weight is ever too high,
//! and the one that wins is true; nobody has to look for the best topic that is *not* in the
//! document.
//!
//! φ of the document's topics is found in one of two ways, whichever is shorter:
//!
//! * by search: each of them is looked up in the word's row, O(K_d log K_w). A query has few
//!   topics, however many its words have;
//! * by scan, sixteen at a time: the word's row, where the document's factor C_dk + α_k is gathered
//!   for each topic (0 where it has no token), then the document's topics with floor_k for φ_kw,
//!   which again is too low for those of the word's row, and these have been seen: O(K_w + K_d).
//!
//! So a token costs O(min(K_d log K_w, K_d + K_w)), and a document nothing that grows with K.
//! 20-word queries at K = 1,000 took 7 µs at the median and 14 µs at the 99th percentile (one core
//! of a virtual AMD EPYC with AVX-512; 22 and 52 µs with plain code;
//! `cargo bench -p lda-benches --bench infer` measures yours).
//!
//! # Numerics
//! α_k, φ_kw and floor_k are rounded to `f32` once and kept normal; a weight is one conversion, one
//! sum and one product, the same wherever it is computed. Rounding keeps order, so "too low" above
//! reads "not above" in `f32`, where a large count or β may make both equal. A weight that is too
//! low belongs to a topic whose true weight is in the race as well; equal or not, it cannot change
//! which topic has the greatest weight, nor which is the lowest of equals. The answer is, bit by
//! bit, the one of all K weights computed in `f32`, on any instruction set. Which of two topics
//! wins whose exact weights differ by less than some 10⁻⁷ of their size is a matter of rounding.

mod argmax;
mod fold_in;
mod frozen_phi;
mod row;
mod rt;
mod session;
#[cfg(test)]
mod session_tests;
mod tables;
#[cfg(test)]
mod tests;
mod translation;
mod variational;

pub use rt::{Inferred, RtLda, RtLdaError, RtOptions, RtScratch};
pub use session::{Answer, Inference, InferenceError, Method, Session};
pub use translation::{Translation, TranslationError};
