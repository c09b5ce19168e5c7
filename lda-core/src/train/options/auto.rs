//! Which sampler, where nobody asked for one.

use super::SamplerKind;
use crate::corpus::Corpus;

impl SamplerKind {
    /// The sampler that reaches a likelihood soonest on `corpus` with `topics` topics, by a fixed
    /// table: a run is the same on every machine.
    ///
    /// CPU seconds to 99 % of the best log joint known are the measure (`table.toml` of the
    /// benchmarks' presets; its records say on what machine). Few topics: WarpLDA, whose epochs are
    /// so short that the many it needs come to less. Many topics: an exact sampler, by document where
    /// documents are long enough that a document's row serves many tokens before the next one's is
    /// loaded.
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
