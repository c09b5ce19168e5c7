//! Token layout: tokens in memory order of the sampler's visits.
//!
//! A corpus is cut into G ranges of documents and G ranges of words with about equal numbers of
//! tokens. Tokens are **slots** of one array, block by block: a *block* (one document range × one
//! word range) is one contiguous slice. Within it the tokens of each word are contiguous, or those
//! of each document, depending on which the sampler visits ([`Order`]); if it visits both, first
//! those by word, then the others ([`TokenOrder`]). G depends only on the number of tokens
//! ([`ranges_for`]) and never on the number of threads, so the same job is cut in the same way
//! everywhere.
//!
//! Ranges are balanced by greedy partitioning: the longest documents first, each to the lightest
//! range; likewise the most frequent words. Within its range a document's *position* grows with its
//! length, and a word's with its rarity. So consecutive visits need similar work, which helps
//! branch prediction, and corpora sorted by date or class do not make unbalanced blocks.
//!
//! Memory: 4 bytes per token for the partner on the other axis, or for the inverse index if a
//! sampler walks documents by it (8 temporarily, while one is built from the other); 8 bytes per
//! visit (a word that occurs in a document range, or a document that has words of a word range).
//! Topic assignments are stored separately: one topic per token, and M proposals.

mod token_layout;
mod words;

pub(crate) use token_layout::LayoutParts;
pub use token_layout::{BlockBounds, InverseIndex, Order, RowRun, TokenLayout, TokenOrder};
pub use words::WordRanges;

/// Number of ranges G for a corpus of `tokens` tokens: the power of two nearest to tokens / 2¹⁹,
/// from 1 to 64.
///
/// Finer grids are expensive for F+LDA, because each visit loads and unloads its word's counts;
/// coarser ones leave threads idle. At most G threads can work at a time.
///
/// ```
/// use lda_core::layout::ranges_for;
/// assert_eq!(ranges_for(467_714), 1);
/// assert_eq!(ranges_for(10_000_000), 16);
/// assert_eq!(ranges_for(1 << 32), 64);
/// ```
pub fn ranges_for(tokens: u64) -> usize {
    // Nearest on a logarithmic scale: the boundary between 2^k and 2^(k+1) is 2^(k+1/2), so tokens²
    // is compared with odd powers of two.
    let square = u128::from(tokens) * u128::from(tokens);
    1 << (0..6).take_while(|e| square >= 1u128 << (2 * (19 + e) + 1)).count()
}

/// Partitions items with `weights` into `ranges` bins of similar weight: heaviest item first, each
/// to the lightest bin (LPT bin packing). Ties go to the lower index and the lower bin. Returns the
/// items of each bin, in order of assignment.
///
/// ```
/// use lda_core::layout::greedy_partition;
/// assert_eq!(greedy_partition([3, 9, 4, 4].into_iter(), 2), [vec![1], vec![2, 3, 0]]);
/// ```
///
/// # Panics
/// If there are items and no bins.
pub fn greedy_partition(weights: impl Iterator<Item = u64>, ranges: usize) -> Vec<Vec<u32>> {
    let mut items: Vec<(std::cmp::Reverse<u64>, u32)> =
        weights.enumerate().map(|(i, weight)| (std::cmp::Reverse(weight), i as u32)).collect();
    items.sort_unstable();
    let mut bins = vec![Vec::with_capacity(items.len() / ranges + 1); ranges];
    let mut lightest: std::collections::BinaryHeap<_> =
        (0..ranges).map(|bin| std::cmp::Reverse((0u64, bin))).collect();
    for (std::cmp::Reverse(weight), item) in items {
        let mut top = lightest.peek_mut().expect("there is at least one range");
        let std::cmp::Reverse((load, bin)) = *top;
        bins[bin].push(item);
        // Items of weight 0 count as 1, so that they are spread too.
        *top = std::cmp::Reverse((load + weight.max(1), bin));
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_nearest_power_of_two() {
        for (tokens, ranges) in
            [(0, 1), (1 << 19, 1), (741_455, 1), (741_456, 2), (1 << 20, 2), (25_801_436, 64)]
        {
            assert_eq!(ranges_for(tokens), ranges, "{tokens} tokens");
        }
    }

    #[test]
    fn bins_are_even_and_complete() {
        let weights: Vec<u64> = (0..1000).map(|i| i % 37).collect();
        let bins = greedy_partition(weights.iter().copied(), 8);
        let mut all: Vec<u32> = bins.concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        let loads: Vec<u64> =
            bins.iter().map(|bin| bin.iter().map(|&i| weights[i as usize]).sum()).collect();
        let (min, max) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(max - min <= 37, "{loads:?}");
    }
}
