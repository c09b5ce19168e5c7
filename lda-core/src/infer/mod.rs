//! Inference of topics for new documents with a fixed model.
//!
//! [`Inference`] prepares a model for one of three methods:
//!
//! | method | answer | cost |
//! |---|---|---|
//! | [fold-in](Method::FoldIn) | mean of Gibbs samples: the posterior's shares, up to sampling error | O(min(K_d log K_w, K_w + K_d)) per token and sweep |
//! | [variational](Method::Variational) | mean of one Dirichlet, deterministic | O(K_w) per word and iteration, and O(K) per iteration |
//! | [RT-LDA](Method::Rt) | the most probable topics, deterministic | as fold-in, with few sweeps |
//!
//! [`RtLda`] is RT-LDA alone and also returns the topic of each token, for services with a budget
//! of microseconds per query. [`Translation`] maps a corpus to a model's word ids.
//! [`eval::perplexity`](crate::eval::perplexity) measures how well a model predicts unseen text.
//!
//! # RT-LDA
//! Gibbs sampling with φ fixed draws the topic of token i of word w in proportion to
//! (C_dk¬i + α_k) φ_kw; RT-LDA takes the topic of the largest weight:
//!
//! ```text
//! for each token of word w:                      C_d begins empty and grows
//!     z ← argmax_k (C_dk + α_k) φ_kw
//!     add the token to C_d
//! repeat for some sweeps, for each token, until none moves:
//!     remove the token from C_d
//!     z ← argmax_k (C_dk + α_k) φ_kw             ties: the lowest k
//!     add it to C_d
//! ```
//!
//! A token that moves increases p(z, w | φ, α), or keeps it and lowers the topic, so the sweeps
//! climb to a local optimum and stop: iterated conditional modes (Besag 1986). The order of the
//! tokens decides among local optima. A mode is not a mean: words shared by several topics all go
//! to the topic that already has more tokens, where samples would divide them. The share of the
//! leading topic is therefore too large.
//!
//! The idea is RT-LDA's, of Tencent's Peacock (Wang et al. 2015, "Peacock: Learning Long-Tail Topic
//! Features for Industrial Applications"), which ZenLDA adopts too: it replaces "the sampling
//! operation [...] by the max operation", at similar perplexity. The initial topics, ties, the
//! stopping rule and the search for the maximum are our own.
//!
//! # Three candidates instead of K
//! Let floor_k = β / (C_k + Vβ). It equals φ_kw where C_wk = 0 and is below φ_kw elsewhere. The
//! maximum is among
//!
//! 1. the word's best topic in an empty document, argmax_k α_k φ_kw: one per word, precomputed;
//! 2. the document's topics, (C_dk + α_k) φ_kw for every k with C_dk > 0.
//!
//! The weight of candidate 1 omits C_dk and is too low if the document has that topic; the same
//! topic is then among candidates 2 with its true weight. So no weight is ever too high, and the
//! largest is a true weight. No search for the best topic that is *not* in the document is needed.
//!
//! φ of the document's topics is found in the cheaper of two ways:
//!
//! * by search: each topic is looked up in the word's row, O(K_d log K_w). A query has few topics,
//!   even if its words have many;
//! * by scan, sixteen at a time: first the word's row, gathering the document's factor C_dk + α_k
//!   for each topic (0 without tokens); then the document's topics with floor_k for φ_kw. The
//!   latter is too low for topics of the word's row, but those are covered by the first part:
//!   O(K_w + K_d).
//!
//! A token costs O(min(K_d log K_w, K_d + K_w)); no cost of a document grows with K.
//! 20-word queries at K = 1,000 took 7 µs at the median and 14 µs at the 99th percentile (one core
//! of a virtual AMD EPYC with AVX-512; 22 and 52 µs with plain code;
//! `cargo bench -p lda-benches --bench infer` measures yours).
//!
//! # Numerics
//! α_k, φ_kw and floor_k are rounded to `f32` once and kept normal. A weight is one conversion, one
//! sum and one product, computed the same way everywhere. Rounding preserves order, so "too low"
//! above means "not above" in `f32`, where a large count or β may make both equal. The topic of a
//! weight that is too low is also a candidate with its true weight; so the low weight changes
//! neither which topic has the largest weight nor which topic wins a tie. The answer is bit for bit
//! that of all K weights computed in `f32`, on any instruction set. Between two topics whose exact
//! weights differ by less than about 10⁻⁷ of their size, rounding decides.

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
