//! Where tokens lie, so that samplers walk memory and never search it.
//!
//! A corpus is cut into G ranges of documents and G ranges of words, about equal in tokens. Tokens
//! are **slots** of one array, block by block: a *block* (one document range × one word range) is one
//! contiguous slice, and inside it each word's tokens stand together, or each document's, whichever the
//! sampler visits ([`Order`]); where it visits both, first those that lie by word, then the others
//! ([`TokenOrder`]). G follows from the number of tokens alone ([`ranges_for`]) and never from the
//! number of threads, so the same job is cut the same way everywhere.
//!
//! Ranges are dealt, not sliced: the longest documents first, each to the lightest range; likewise
//! the most frequent words. Inside its range a document's *position* grows with its length and a
//! word's with its rarity. So neighbouring visits need similar work (branch predictors notice),
//! and corpora sorted by date or class do not make lopsided blocks.
//!
//! Memory: 4 bytes a token for the partner on the other axis, or for the inverse index where a sampler
//! walks documents by that (8 for a moment, while one is made from the other); 8 bytes a visit (a word
//! that occurs in a document range, or a document that has words of a word range). Assignments lie
//! beside: one topic a token, and M proposals.

mod token_layout;
mod words;

pub use token_layout::{BlockBounds, InverseIndex, Order, RowRun, TokenLayout, TokenOrder};
pub use words::WordRanges;

/// Ranges G for a corpus of `tokens` tokens: the power of two nearest to tokens / 2¹⁹, from 1 to
/// 64.
///
/// Finer grids cost F+LDA dearly, since each visit loads and unloads its word's counts; coarser
/// ones leave threads idle. More threads than G have nothing to do.
///
/// ```
/// use lda_core::layout::ranges_for;
/// assert_eq!(ranges_for(467_714), 1);
/// assert_eq!(ranges_for(10_000_000), 16);
/// assert_eq!(ranges_for(1 << 32), 64);
/// ```
pub fn ranges_for(tokens: u64) -> usize {
    // Nearest on a logarithmic scale: tokens² against the odd powers of two between.
    let square = u128::from(tokens) * u128::from(tokens);
    1 << (0..6).take_while(|e| square >= 1u128 << (2 * (19 + e) + 1)).count()
}

/// Deals `weights` to `ranges` bins, heaviest first, each to the lightest bin; ties go to the lower
/// index and the lower bin. Returns the items of each bin in the order dealt.
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
        // Items of weight 0 are spread too.
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
