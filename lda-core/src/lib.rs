//! Topic models (latent Dirichlet allocation, LDA): training, inference and evaluation, as a library
//! to embed.
//!
//! LDA finds the topics of a collection of documents. A topic is a distribution over words; each
//! document is a mixture of topics.
//!
//! ```
//! use lda_core::{Corpus, Lda};
//!
//! let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"]];
//! let corpus = Corpus::from_words((0..100).map(|d| themes[d % 2]))?;
//! let trained = Lda::topics(2).alpha(0.1).seed(42).epochs(50).train(&corpus, ())?;
//! let model = trained.model;
//! let sea = corpus.vocabulary().and_then(|words| words.id("sea")).unwrap() as usize;
//! let tree = corpus.vocabulary().and_then(|words| words.id("tree")).unwrap() as usize;
//! let topic = if model.phi(0, sea) > model.phi(1, sea) { 0 } else { 1 };
//! assert!(model.phi(topic, sea) > 0.25 && model.phi(topic, tree) < 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why this crate
//! * **Eleven samplers behind one trait**, from exact Gibbs (F+LDA, SparseLDA) to Metropolis-Hastings
//!   (WarpLDA, LightLDA, AliasLDA). Each states its cost, its law and how far that is from the
//!   posterior. Your own sampler runs in the same trainer ([`Trainer::with_sampler`]).
//! * **Reproducible.** The same options give the same topics, bit for bit, at any number of threads and
//!   on any instruction set. A run that is resumed from a checkpoint continues with the same bits.
//! * **Sparse.** Cost and memory follow non-zero counts, not V × K; a million topics are possible.
//! * **Tested against enumerated laws.** On tiny corpora every sampler is compared with its exact
//!   transition law.
//!
//! # Where to start
//! | task | item |
//! |---|---|
//! | read or build a corpus | [`Corpus::read`], [`Corpus::from_words`], [`CorpusBuilder`] |
//! | train a model | [`Lda`]; epoch by epoch: [`Trainer`] with [`TrainOptions`] |
//! | choose the number of topics | [`Sweep`](train::Sweep) |
//! | choose a sampler | [`SamplerKind`], [`SamplerOptions`]; the table in [`sampler`] |
//! | use a model on new documents | [`Inference`] |
//! | look at a model, save it | [`TopicModel`] |
//! | measure a model | [`eval`] |
//! | continue after a crash | [`Checkpoints`], [`Snapshot`] |
//! | exchange files with MALLET, WarpLDA, gensim, pyLDAvis | [`interop`] |
//! | write a sampler | [`sampler`], with `examples/polya_urn` |
//!
//! Programs of 60 to 80 lines: `examples/embed.rs` (train, save, load, infer), `incremental.rs` (new
//! documents for a model; resuming a run) and `service_tokio.rs` (a service that trains and answers).
//!
//! The items at the root are those that most programs need. Modules have the rest, with algorithms,
//! costs and sources.
//!
//! # Features
//! | feature | default | effect |
//! |---|---|---|
//! | `gzip` | on | reads corpora compressed with gzip |
//! | `zstd` | on | reads corpora compressed with zstd |
//! | `text` | on | reads plain text; words by the Unicode rules |
//! | `encodings` | off | reads texts in encodings other than UTF-8 and UTF-16 |
//! | `regex` | off | cuts texts into the words that match a regular expression |
//! | `normalization` | off | normalises texts to the normal form C of Unicode |
//! | `tables` | off | reads the texts of CSV, TSV and JSON lines files |
//! | `mmap` | off | memory-maps models, shared between processes |
//! | `conformance` | off | a suite that checks a sampler of one's own: [`sampler`] |
//! | `tracing` | off | spans for subscribers of `tracing`: `epoch` (INFO; fields `epoch`, `sampler`) and within it `pass` (DEBUG; `name`, `set`, `round`), target `lda_core` |
//!
//! # Stability
//! The crate follows semantic versioning. A release that changes results for the same options is
//! marked "value-breaking" in the changelog. `simd`, `layout`, `counts`, `random` and `special` are
//! public for `lda-dist` and for authors of samplers; they change more often than the rest.

mod checksum;
pub mod container;
pub mod corpus;
pub mod counts;
pub mod discrete;
pub mod eval;
pub mod infer;
pub mod interop;
pub mod layout;
pub mod model;
pub mod prior;
pub mod random;
pub mod sampler;
pub mod simd;
pub mod special;
pub mod train;

pub use container::FileError;
pub use corpus::{
    BuildError, Corpus, CorpusBuilder, Date, Format, ReadError, ReadOptions, ReadReport, Vocabulary,
};
pub use eval::{
    Coherence, CoherenceOptions, CompletionError, CompletionOptions, Diagnostics,
    DocumentCompletion, LogJoint, Measure, Phi, Ranking, TopWord, coherence, diagnose,
    held_out_perplexity, top_words,
};
pub use infer::{
    Answer, Inference, InferenceError, Inferred, Method, RtLda, RtOptions, Session, Translation,
    TranslationError,
};
pub use model::{Provenance, TopicModel};
pub use prior::{Alpha, PriorError};
pub use sampler::{Proposals, Sampler};
pub use simd::Isa;
pub use train::{
    Assignments, Checkpoints, Choice, CountsError, EpochReport, Flow, HeldOut, Init, Lda, Learn,
    LearnAlpha, LevelOff, MemoryEstimate, Observer, OptionsError, PseudoCounts, PseudoCountsError,
    Resolved, ResumeError, SamplerKind, SamplerOptions, Snapshot, Start, TrainOptions, Trained,
    Trainer, Weight,
};

/// The README's example, compiled and run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
