//! Which sampler, where nobody asked for one.

use super::SamplerKind;
use crate::corpus::Corpus;

/// A sampler, and how long WarpLDA goes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The sampler.
    pub sampler: SamplerKind,
    /// Epochs of WarpLDA before its first.
    pub warm_up: u32,
}

impl Choice {
    /// A choice for `corpus` and `topics` topics, by a fixed rule: a run is the same on every machine.
    ///
    /// F+LDA, which is exact, after a [warm-up](super::Options::warm_up). It is F+LDA by document up
    /// to 3,162 topics where documents have 100 tokens or more on average, else by word (the speeds
    /// are at [`FPlusDoc`](crate::sampler::FPlusDoc)). The warm-up is 240 epochs of WarpLDA up to 316
    /// topics, 80 up to 3,162, or 200 where the corpus has five million tokens, and 160 above; and 640
    /// up to 316 topics where documents are shorter than 100 tokens: there WarpLDA is 1.6 to 2
    /// times as fast as F+LDA to every likelihood (acl below), which has only the last of its bias to
    /// mend. Of warm-ups from 40 to 640 epochs, 240 was first or close to it on kos, news20 and nips at
    /// K = 100; 40 took 1.2 to 1.5 times as long to 95, 98 and 99 %.
    ///
    /// CPU seconds of one thread to 95 / 99 / 99.8 % of the best log joint known, α = 50/K, β = 0.01,
    /// two runs at a time on two cores; the sampler alone and after its warm-up, one seed, and medians
    /// of three after 240 epochs:
    ///
    /// | K | | kos | nips | news20 | acl |
    /// |---|---|---|---|---|---|
    /// | 100 | alone | 0.7 / 2.8 / 6.3 | 3.9 / 13 / 26 | 2.8 / 9.9 / 18 | 8.1 / 24 / 50 |
    /// | | after | 0.4 / 1.6 / 4.1 | 2.5 / 11 / 23 | 1.7 / 7.0 / 15 | 4.1 / 13 / 25 |
    /// | 1,000 | alone | 1.1 / 4.2 / 7.5 | 6.8 / 19 / 29 | 4.9 / 14 / 24 | 8.8 / 25 / 50 |
    /// | | after | 0.9 / 3.0 / 5.9 | 5.5 / 18 / 27 | 3.9 / 14 / 24 | 6.7 / 20 / 37 |
    /// | 10,000 | alone | 2.4 / 7.2 / 10 | | 11 / 26 / 38 | 17 / 51 / 79 |
    /// | | after | 2.5 / 6.3 / 8.4 | | 6.9 / 16 / 26 | 13 / 41 / 66 |
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
            0..=316 => 240,
            317..=3162 => 80,
            _ => 160,
        };
        Self { sampler, warm_up }
    }
}
