//! Which sampler, where nobody asked for one.

use super::SamplerKind;
use crate::corpus::Corpus;

/// A sampler, and how WarpLDA goes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The sampler.
    pub sampler: SamplerKind,
    /// Epochs of WarpLDA before its first.
    pub warm_up: u32,
}

impl Choice {
    /// A choice for `corpus` and `topics` topics, by a fixed rule: a run is the same on every machine.
    pub fn auto(topics: u32, corpus: &Corpus) -> Self {
        let documents = (0..corpus.num_documents()).filter(|&d| corpus.doc_length(d) > 0).count();
        let tokens = corpus.num_tokens();
        let (short, large) = (tokens / (documents.max(1) as u64) < 100, tokens >= 5_000_000);
        let sampler = match topics {
            0..=3162 if !short => SamplerKind::FPlusDoc,
            _ => SamplerKind::FPlus,
        };
        let warm_up = match topics {
            0..=316 if short => 640,
            0..=3162 if large => 200,
            0..=316 => 40,
            317..=3162 => 80,
            _ => 160,
        };
        Self { sampler, warm_up }
    }
}
