//! Which sampler, where nobody asked for one.

use super::SamplerKind;
use crate::corpus::Corpus;

impl SamplerKind {
    /// A sampler for `corpus` and `topics` topics, by a fixed rule: a run is the same on every machine.
    ///
    /// Up to 316 topics the hybrid, which then is WarpLDA: its epochs are so short that the many it
    /// needs come to less, up to 99 % of the best log joint; the last tenths of a percent an exact
    /// sampler reaches first (the times are at
    /// [`default_short_length`](crate::train::Options::default_short_length)). With more topics F+LDA, by
    /// document where documents have 100 tokens or more on average (the speeds are at
    /// [`FPlusDoc`](crate::sampler::FPlusDoc)).
    pub fn auto(topics: u32, corpus: &Corpus) -> Self {
        let documents = (0..corpus.num_documents()).filter(|&d| corpus.doc_length(d) > 0).count();
        let mean = corpus.num_tokens() / documents.max(1) as u64;
        match topics {
            0..=316 => Self::Hybrid,
            _ if mean < 100 => Self::FPlus,
            _ => Self::FPlusDoc,
        }
    }
}
