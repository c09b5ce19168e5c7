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
    /// are at [`FPlusDoc`](crate::sampler::FPlusDoc)). The warm-up is 640 epochs of WarpLDA up to 316
    /// topics, which leaves F+LDA only the last of the bias to mend; 80 up to 3,162, but where the corpus
    /// has five million tokens 320, or 200 of short documents; and 160 above. Of warm-ups from 80 to 640
    /// epochs at K = 100, medians of five seeds, 640 was first to 99.8 % on nips (17.9 s, after 240 epochs
    /// 22.3) and on kos (2.4 and 3.7), and close to it on news20 (11.1, 10.7 after 400, 13.4 after 240);
    /// to 99 % it costs kos 0.2 s.
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
            0..=316 => 640,
            317..=3162 if large && short => 200,
            317..=3162 if large => 320,
            317..=3162 => 80,
            _ => 160,
        };
        Self { sampler, warm_up }
    }
}
