//! Word axis of the layout: the range and position of each word.

use crate::layout::greedy_partition;

/// Words partitioned into ranges. A word's *position* counts through all ranges; its *local id*
/// counts from its range's start, most frequent word first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordRanges {
    /// Position → word id.
    order: Vec<u32>,
    /// Word id → position.
    position: Vec<u32>,
    /// Range → its first position; one more entry at the end.
    starts: Vec<u32>,
    /// Position → tokens.
    frequency: Vec<u64>,
}

impl WordRanges {
    /// Partitions words with the given frequencies (tokens of each word) into `ranges` ranges.
    pub fn new(frequencies: &[u64], ranges: usize) -> Self {
        let bins = greedy_partition(frequencies.iter().copied(), ranges.max(1));
        let mut starts = vec![0];
        let mut order = Vec::with_capacity(frequencies.len());
        for bin in bins {
            order.extend(bin);
            starts.push(order.len() as u32);
        }
        let mut position = vec![0; order.len()];
        for (p, &word) in order.iter().enumerate() {
            position[word as usize] = p as u32;
        }
        let frequency = order.iter().map(|&word| frequencies[word as usize]).collect();
        Self { order, position, starts, frequency }
    }

    /// Number of words V.
    pub fn num_words(&self) -> usize {
        self.order.len()
    }

    /// Number of ranges G.
    pub fn num_ranges(&self) -> usize {
        self.starts.len() - 1
    }

    /// Word ids of range `range`, by local id.
    pub fn words(&self, range: usize) -> &[u32] {
        &self.order[self.starts[range] as usize..self.starts[range + 1] as usize]
    }

    /// Tokens of each word of range `range`, by local id.
    pub fn frequencies(&self, range: usize) -> &[u64] {
        &self.frequency[self.starts[range] as usize..self.starts[range + 1] as usize]
    }

    /// Number of tokens of `word`.
    pub fn frequency(&self, word: u32) -> u64 {
        self.frequency[self.position(word) as usize]
    }

    /// Position of `word`.
    pub fn position(&self, word: u32) -> u32 {
        self.position[word as usize]
    }

    /// First position of range `range`.
    pub fn start(&self, range: usize) -> u32 {
        self.starts[range]
    }

    /// (range, local id) of `word`.
    pub fn locate(&self, word: u32) -> (usize, usize) {
        let position = self.position[word as usize];
        let range = self.starts.partition_point(|&start| start <= position) - 1;
        (range, (position - self.starts[range]) as usize)
    }

    /// Memory in bytes.
    pub fn memory(&self) -> u64 {
        (self.order.len() * (4 + 4 + 8) + self.starts.len() * 4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_at_its_position() {
        let frequencies: Vec<u64> = (0..100).map(|w| (w * 7919) % 101).collect();
        let ranges = WordRanges::new(&frequencies, 4);
        for word in 0..100 {
            let (range, local) = ranges.locate(word);
            assert_eq!(ranges.words(range)[local], word);
            assert_eq!(ranges.frequencies(range)[local], frequencies[word as usize]);
        }
        for range in 0..4 {
            assert!(ranges.frequencies(range).is_sorted_by(|a, b| a >= b));
        }
    }
}
