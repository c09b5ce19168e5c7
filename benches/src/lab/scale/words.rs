//! Word frequencies and document lengths of a corpus that is not available.
//!
//! The word of rank r occurs in proportion to 1 / (r + q)^s (Mandelbrot 1953; Zipf's law for q =
//! 0); word ids are shuffled over the ranks. Document lengths are log-normal.

use std::collections::BTreeMap;

use lda_core::Corpus;
use serde::{Deserialize, Serialize};

use super::rng::Rng;

/// Number of classes of a distribution of lengths.
const LENGTHS: u32 = 256;

/// Token frequency of each word, in random order.
pub(super) fn frequencies(
    words: u32,
    tokens: u64,
    exponent: f64,
    shift: f64,
    seed: u64,
) -> Vec<u64> {
    let weight = |rank: u32| (f64::from(rank) + 1.0 + shift).powf(-exponent);
    // Summed from the rarest word on, so that small terms are not lost.
    let all: f64 = (0..words).rev().map(weight).sum();
    let tokens = tokens as f64;
    let mut each: Vec<u64> =
        (0..words).map(|rank| ((tokens * weight(rank) / all).round() as u64).max(1)).collect();
    let mut rng = Rng::new(seed, 1);
    for at in (1..each.len()).rev() {
        each.swap(at, rng.below(at as u32 + 1) as usize);
    }
    each
}

/// Mean occurrences of a word in a document that contains it, as a function of its mean over all
/// documents: two bins per octave, interpolated linearly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// (ln of the mean over all documents, mean over documents that contain it), ascending.
    points: Vec<(f64, f64)>,
}

impl Repeats {
    /// Measures a corpus.
    pub fn of(corpus: &Corpus) -> Self {
        let mut documents = vec![0u64; corpus.num_words()];
        for document in corpus.documents() {
            document.iter().for_each(|(word, _)| documents[word as usize] += 1);
        }
        let all = corpus.num_documents() as f64;
        // Words, their tokens, their documents.
        let mut bins: BTreeMap<i64, (f64, f64, f64)> = BTreeMap::new();
        for (tokens, documents) in corpus.word_frequencies().into_iter().zip(documents) {
            if tokens > 0 {
                let at = (2.0 * (tokens as f64 / all).log2()).round() as i64;
                let bin = bins.entry(at).or_default();
                *bin = (bin.0 + 1.0, bin.1 + tokens as f64, bin.2 + documents as f64);
            }
        }
        let point = |&(words, tokens, documents): &(f64, f64, f64)| {
            ((tokens / words / all).ln(), tokens / documents)
        };
        Self { points: bins.values().map(point).collect() }
    }

    /// Mean occurrences in a document that contains the word, given its mean over all documents.
    pub fn mean(&self, of_all: f64) -> f64 {
        let at = of_all.ln();
        let Some((first, last)) = self.points.first().zip(self.points.last()) else { return 1.0 };
        let after = self.points.partition_point(|point| point.0 <= at);
        if after == 0 || after == self.points.len() {
            let end = if after == 0 { first.1 } else { last.1 };
            // At least one, and at least the mean over all documents.
            return end.max(of_all);
        }
        let (low, high) = (self.points[after - 1], self.points[after]);
        low.1 + (at - low.0) / (high.0 - low.0) * (high.1 - low.1)
    }
}

/// Distribution of document lengths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lengths {
    /// (length, number of documents), ascending.
    each: Vec<(u32, f64)>,
    /// Cumulative share of the tokens, by length class.
    up_to: Vec<f64>,
}

impl Lengths {
    /// Measures a corpus.
    pub fn of(corpus: &Corpus) -> Self {
        let mut all: Vec<u32> =
            corpus.documents().map(|document| document.len() as u32).filter(|&it| it > 0).collect();
        all.sort_unstable();
        let runs = all.chunk_by(|a, b| a == b);
        Self::new(runs.map(|run| (run[0], run.len() as f64)).collect())
    }

    /// Log-normal lengths with this mean; `spread` is the standard deviation of the logarithms.
    pub fn log_normal(documents: f64, mean: f64, spread: f64) -> Self {
        // Quantiles of a logistic curve close to the normal one (Tocher 1963), which is accurate
        // enough here.
        let quantile = |at: u32| {
            let share = (f64::from(at) + 0.5) / f64::from(LENGTHS);
            (share / (1.0 - share)).ln() / 1.702
        };
        let lengths: Vec<f64> = (0..LENGTHS).map(|at| (spread * quantile(at)).exp()).collect();
        let middle = mean * f64::from(LENGTHS) / lengths.iter().sum::<f64>();
        let share = documents / f64::from(LENGTHS);
        let mut each: Vec<(u32, f64)> = Vec::new();
        for length in lengths {
            let length = (length * middle).round().max(1.0) as u32;
            match each.last_mut() {
                Some(last) if last.0 == length => last.1 += share,
                _ => each.push((length, share)),
            }
        }
        Self::new(each)
    }

    fn new(each: Vec<(u32, f64)>) -> Self {
        let tokens = |&(length, documents): &(u32, f64)| f64::from(length) * documents;
        let all: f64 = each.iter().map(tokens).sum();
        let mut so_far = 0.0;
        let up_to = each.iter().map(|it| {
            so_far += tokens(it);
            so_far / all
        });
        Self { up_to: up_to.collect(), each }
    }

    /// A stratified sample of `count` documents: their length classes, ascending.
    pub fn some(&self, count: u32, rng: &mut Rng) -> Vec<usize> {
        let all: f64 = self.each.iter().map(|it| it.1).sum();
        let (mut at, mut so_far) = (0, self.each.first().map_or(0.0, |it| it.1));
        let some = (0..count).map(|number| {
            let wanted = all * (f64::from(number) + rng.unit()) / f64::from(count);
            while so_far < wanted && at + 1 < self.each.len() {
                at += 1;
                so_far += self.each[at].1;
            }
            at
        });
        some.collect()
    }

    /// Number of documents.
    pub fn documents(&self) -> f64 {
        self.each.iter().map(|it| it.1).sum()
    }

    /// (length, number of documents), ascending.
    pub fn each(&self) -> &[(u32, f64)] {
        &self.each
    }

    /// Length class of the document of a token drawn uniformly.
    pub fn of_token(&self, rng: &mut Rng) -> usize {
        let at = rng.unit();
        self.up_to.partition_point(|&up_to| up_to <= at).min(self.each.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        let each = frequencies(1000, 1_000_000, 1.0, 0.0, 1);
        let all: u64 = each.iter().sum();
        assert!(all.abs_diff(1_000_000) < 1000, "{all}");
        let mut sorted = each.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert!((sorted[0] as f64 / sorted[9] as f64 - 10.0).abs() < 0.01);
        assert!(each != sorted);
        assert_eq!(each, frequencies(1000, 1_000_000, 1.0, 0.0, 1));
        assert_eq!(frequencies(5, 1, 1.0, 0.0, 1), [1; 5]);
    }

    #[test]
    fn repeats_are_those_of_the_corpus() {
        let rare = (0..40).map(|at| if at % 20 == 0 { vec![1, 0] } else { vec![0, 0, 0] });
        let corpus = Corpus::from_tokens(rare).unwrap();
        let repeats = Repeats::of(&corpus);
        assert_eq!(repeats.mean(0.05), 1.0);
        assert!((repeats.mean(2.9) - 2.9).abs() < 1e-9, "{repeats:?}");
        let between = repeats.mean(0.4);
        assert!((1.0..2.9).contains(&between), "{between}");
        assert_eq!((repeats.mean(1e-9), repeats.mean(10.0)), (1.0, 10.0));
        assert_eq!(Repeats::default().mean(0.1), 1.0);
    }

    #[test]
    fn lengths_have_their_mean() {
        let lengths = Lengths::log_normal(1e6, 140.0, 1.0);
        let tokens = lengths.each().iter().map(|it| f64::from(it.0) * it.1).sum::<f64>();
        assert!((tokens / 1.4e8 - 1.0).abs() < 0.01);
        assert!((lengths.documents() - 1e6).abs() < 1.0);
        let corpus = Corpus::from_tokens([vec![0; 3], vec![0; 3], vec![0; 6]]).unwrap();
        let lengths = Lengths::of(&corpus);
        assert_eq!(lengths.each(), [(3, 2.0), (6, 1.0)]);
        let mut rng = Rng::new(1, 1);
        assert_eq!(lengths.some(3, &mut rng), [0, 0, 1]);
        let long = (0..10_000).filter(|_| lengths.of_token(&mut rng) == 1).count();
        assert!(long.abs_diff(5000) < 200, "{long}");
    }
}
