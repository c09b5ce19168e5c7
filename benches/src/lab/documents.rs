//! Document statistics: number of topics per document, and document lengths.

use std::collections::BTreeMap;

use lda_core::Corpus;
use serde::{Deserialize, Serialize};

/// Bins per factor of ten. Above length 20, the next bin ends at most an eighth higher.
const BINS_A_DECADE: f64 = 20.0;

/// Mean number of distinct topics K_d of a document, weighted by its tokens: the work of F+LDA per
/// token. `None` without tokens.
///
/// `assigned` returns the topics of a document's tokens. O(1) per token.
pub(super) fn topics_per_document<'a>(
    assigned: impl Fn(usize) -> &'a [u32],
    documents: usize,
    topics: u32,
) -> Option<f64> {
    // Last document that had the topic, from 1.
    let mut seen = vec![0; topics as usize];
    let (mut tokens, mut sum) = (0, 0.0);
    for d in 0..documents {
        let z = assigned(d);
        let mut distinct = 0;
        for &topic in z {
            let last = &mut seen[topic as usize];
            distinct += u64::from(*last != d + 1);
            *last = d + 1;
        }
        tokens += z.len();
        sum += distinct as f64 * z.len() as f64;
    }
    (tokens > 0).then(|| sum / tokens as f64)
}

/// Documents of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LengthBin {
    /// Largest length in the bin; the smallest is one above the previous bin's.
    pub longest: u64,
    /// Number of documents.
    pub documents: u64,
    /// Tokens of these documents.
    pub tokens: u64,
}

/// Histogram of document lengths without empty bins, ascending. Lengths up to nine have bins of
/// their own.
pub(super) fn lengths_of(corpus: &Corpus) -> Vec<LengthBin> {
    let mut bins: BTreeMap<u64, LengthBin> = BTreeMap::new();
    for document in corpus.documents() {
        let tokens = document.len();
        let longest = longest_with(tokens);
        let bin = bins.entry(longest).or_insert(LengthBin { longest, documents: 0, tokens: 0 });
        bin.documents += 1;
        bin.tokens += tokens;
    }
    bins.into_values().collect()
}

/// Largest length of the bin that contains `length`: bins end at 10^(i / 20), rounded down.
fn longest_with(length: u64) -> u64 {
    if length == 0 {
        return 0;
    }
    let end = |i: f64| 10f64.powf(i / BINS_A_DECADE).floor() as u64;
    // Rounding of the logarithm can put it one too low or one too high.
    let near = ((length as f64).log10() * BINS_A_DECADE).ceil() - 1.0;
    (0..).map(|i| end(near + f64::from(i))).find(|&end| end >= length).unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use lda_core::corpus::CorpusBuilder;

    use super::*;

    #[test]
    fn topics_are_counted_once_per_document_and_weighted_by_tokens() {
        let z: [&[u32]; 4] = [&[0, 0, 0], &[], &[2, 0, 2, 1], &[1]];
        // 3 tokens of 1 topic, 4 of 3, 1 of 1.
        assert_eq!(topics_per_document(|d| z[d], 4, 3), Some(16.0 / 8.0));
        assert_eq!(topics_per_document(|_| &[], 4, 3), None);
    }

    #[test]
    fn every_length_is_in_one_bin() {
        let ends: Vec<u64> = (0..20_000).map(longest_with).collect();
        assert_eq!(ends[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 10][..10]);
        assert!(ends.is_sorted());
        for (length, &end) in ends.iter().enumerate() {
            assert!(end >= length as u64 && end as f64 <= 1.0 + 1.13 * length as f64, "{length}");
            // The end of a bin belongs to it.
            assert_eq!(longest_with(end), end);
        }
        assert_eq!(longest_with(1000), 1000);
    }

    #[test]
    fn lengths_add_up_to_the_corpus() {
        let mut builder = CorpusBuilder::new();
        for length in [0, 1, 1, 50, 51, 4000] {
            builder.push_tokens((0..length).map(|i| i % 7)).unwrap();
        }
        let corpus = builder.build().unwrap();
        let bins = lengths_of(&corpus);
        let short = |bin: &LengthBin| (bin.longest, bin.documents, bin.tokens);
        assert_eq!(bins[..2].iter().map(short).collect::<Vec<_>>(), [(0, 1, 0), (1, 2, 2)]);
        assert_eq!(bins.iter().map(|bin| bin.documents).sum::<u64>(), 6);
        assert_eq!(bins.iter().map(|bin| bin.tokens).sum::<u64>(), corpus.num_tokens());
    }
}
