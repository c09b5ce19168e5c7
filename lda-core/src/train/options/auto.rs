//! Choice of the sampler if none is set.

use super::SamplerKind;
use crate::corpus::Corpus;
use crate::train::document_sizes::DocumentSizes;

/// A sampler and the length of its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The sampler.
    pub sampler: SamplerKind,
    /// Number of epochs of WarpLDA before the first epoch of `sampler`.
    pub warm_up: u32,
}

impl Choice {
    /// The choice for `corpus` and `topics` topics. The rule is fixed, so that a run is the same on
    /// every machine.
    ///
    /// F+LDA, which is exact, after a [warm-up](super::TrainOptions::warm_up). It goes by document
    /// if there are at most 3,162 topics and documents have 100 tokens or more on average,
    /// otherwise by word (the speeds are at [`FPlus`](crate::sampler::FPlus)). Epochs of
    /// WarpLDA in the warm-up:
    ///
    /// | topics | epochs |
    /// |---|---|
    /// | up to 316 | 640, which leaves F+LDA only the last of the bias to remove |
    /// | up to 3,162 | 80; if the corpus has five million tokens or more 320, or 200 with shorter documents than 100 tokens on average |
    /// | more | 160 |
    ///
    /// Measured with warm-ups of 80 to 640 epochs at K = 100 (medians of five seeds): 640 reached
    /// 99.8 % first on nips (17.9 s; 22.3 s with 240 epochs) and on kos (2.4 s; 3.7 s with 240),
    /// and was close to the first on news20 (11.1 s; 10.7 s with 400, 13.4 s with 240). To 99 %, it
    /// costs 0.2 s on kos.
    ///
    /// CPU seconds of one thread to 95 / 99 / 99.8 % of the best log joint known, α = 50/K, β =
    /// 0.01, two runs at a time on two cores; the sampler alone and after its warm-up, medians of
    /// five seeds on kos and news20, one seed on the others (from `benches/records/table`, which
    /// has more samplers and corpora):
    ///
    /// | K | | kos | nips | news20 | acl |
    /// |---|---|---|---|---|---|
    /// | 100 | alone | 0.5 / 1.9 / 3.8 | 3.2 / 10 / 19 | 2.2 / 7.5 / 14 | 6.2 / 18 / 35 |
    /// | | after | 0.3 / 1.2 / 2.4 | 1.4 / 7.5 / 15 | 0.9 / 4.4 / 11 | 3.2 / 11 / 20 |
    /// | 1,000 | alone | 0.7 / 2.5 / 5.0 | 6.0 / 17 / 25 | 3.7 / 11 / 18 | 7.6 / 21 / 37 |
    /// | | after | 0.5 / 2.1 / 4.0 | 4.6 / 15 / 23 | 2.4 / 8.4 / 16 | 6.1 / 18 / 31 |
    /// | 10,000 | alone | 1.5 / 4.2 / 5.8 | 9.5 / 28 / 39 | 6.9 / 16 / 23 | 9.3 / 31 / 49 |
    /// | | after | 1.2 / 3.3 / 4.7 | 6.5 / 19 / 28 | 4.9 / 12 / 19 | 9.4 / 29 / 46 |
    pub fn auto(topics: u32, corpus: &Corpus) -> Self {
        Self::of(topics, corpus)
    }

    /// [`auto`](Self::auto), for documents in memory or in blocks.
    pub(crate) fn of(topics: u32, documents: &dyn DocumentSizes) -> Self {
        let (tokens, documents) = (documents.num_tokens(), documents.num_with_tokens());
        let (short, large) = (tokens / documents.max(1) < 100, tokens >= 5_000_000);
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
