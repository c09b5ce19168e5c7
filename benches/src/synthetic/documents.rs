//! Documents: lengths, topics of tokens, words.

use super::portable::{Purpose, Stream, exp, ln};
use super::spec::{Lengths, Spec};
use super::topics::Alias;

/// Documents of a run of numbers, as pairs by document.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// Distinct words of each document.
    pub(super) pairs: Vec<u32>,
    pub(super) words: Vec<u32>,
    pub(super) counts: Vec<u32>,
}

/// Draws documents; what it is built from is shared by all.
#[derive(Debug)]
pub(super) struct Author<'a> {
    spec: &'a Spec,
    seed: u64,
    topics: &'a [Alias],
    /// For each mode: the weight of it and the modes before, location and scale of the log length.
    modes: Vec<(f64, f64, f64)>,
}

impl<'a> Author<'a> {
    pub(super) fn new(spec: &'a Spec, seed: u64, topics: &'a [Alias]) -> Self {
        let mut before = 0.0;
        let mode = |&Lengths { weight, mean, sigma }: &Lengths| {
            before += weight;
            // E exp(μ + σN) = exp(μ + σ²/2)
            (before, ln(mean) - sigma * sigma / 2.0, sigma)
        };
        Self { spec, seed, topics, modes: spec.lengths.iter().map(mode).collect() }
    }

    /// The documents of a range of numbers, a function of seed and numbers alone.
    pub(super) fn write(&self, documents: std::ops::Range<usize>) -> Batch {
        let mut batch = Batch::default();
        let (mut topics, mut words) = (Vec::new(), Vec::new());
        for document in documents {
            let mut stream = Stream::new(self.seed, Purpose::Document, document as u64);
            let length = self.length(&mut stream);
            self.draw_words(length, &mut stream, &mut topics, &mut words);
            words.sort_unstable();
            let pairs_before = batch.words.len();
            for run in words.chunk_by(|a, b| a == b) {
                batch.words.push(run[0]);
                batch.counts.push(run.len() as u32);
            }
            batch.pairs.push((batch.words.len() - pairs_before) as u32);
        }
        batch
    }

    fn length(&self, stream: &mut Stream) -> usize {
        let last = self.modes[self.modes.len() - 1];
        let mark = stream.unit() * last.0;
        let &(_, location, scale) = self.modes.iter().find(|mode| mark < mode.0).unwrap_or(&last);
        let length = exp(location + scale * stream.normal());
        length.round().clamp(1.0, Spec::longest_document()) as usize
    }

    /// θ is integrated out: the topics of a document with θ ~ Dirichlet(α, …, α) are draws from
    /// Pólya's urn. Token i repeats the topic of one of the i tokens before it with probability
    /// i/(i + Kα), and has any of the K topics otherwise. One random number decides both.
    fn draw_words(
        &self,
        length: usize,
        stream: &mut Stream,
        topics: &mut Vec<u32>,
        words: &mut Vec<u32>,
    ) {
        topics.clear();
        words.clear();
        let num_topics = self.topics.len();
        let alpha_sum = self.spec.alpha * num_topics as f64;
        for token in 0..length {
            let mark = (stream.unit() * (token as f64 + alpha_sum)) as usize;
            let topic = match topics.get(mark) {
                Some(&earlier) => earlier,
                None => stream.below(num_topics as u64) as u32,
            };
            topics.push(topic);
            words.push(self.topics[topic as usize].draw(stream.bits()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_word_a_topic(num_topics: u32) -> Vec<Alias> {
        (0..num_topics).map(|topic| Alias::new(&[(topic, 1.0)])).collect()
    }

    /// With word = topic, a document's pairs are its topic counts: their moments are those of the
    /// Dirichlet-multinomial, of mean n/K and variance n (1/K)(1 − 1/K)(n + Kα)/(1 + Kα).
    #[test]
    fn topic_counts_are_dirichlet_multinomial() {
        let (k, n, repeats) = (5u32, 40.0, 40_000usize);
        let spec = Spec {
            num_topics: k as usize,
            alpha: 0.3,
            lengths: vec![Lengths { weight: 1.0, mean: n, sigma: 0.0 }],
            ..Spec::default()
        };
        let topics = one_word_a_topic(k);
        let batch = Author::new(&spec, 11, &topics).write(0..repeats);
        let mut sums = [(0.0, 0.0); 5];
        for (&word, &count) in batch.words.iter().zip(&batch.counts) {
            let count = f64::from(count);
            sums[word as usize].0 += count / repeats as f64;
            sums[word as usize].1 += count * count / repeats as f64;
        }
        let (p, a) = (1.0 / f64::from(k), 0.3 * f64::from(k));
        let variance = n * p * (1.0 - p) * (n + a) / (1.0 + a);
        for (mean, square) in sums {
            assert!((mean - n * p).abs() < 5.0 * (variance / repeats as f64).sqrt(), "{mean}");
            assert!(((square - mean * mean) / variance - 1.0).abs() < 0.05, "{square}");
        }
    }

    #[test]
    fn lengths_follow_their_modes() {
        let spec = Spec {
            num_topics: 1,
            lengths: vec![
                Lengths { weight: 3.0, mean: 20.0, sigma: 0.2 },
                Lengths { weight: 1.0, mean: 1_000.0, sigma: 0.3 },
            ],
            ..Spec::default()
        };
        let topics = one_word_a_topic(1);
        let batch = Author::new(&spec, 5, &topics).write(0..20_000);
        let (short, long): (Vec<f64>, Vec<f64>) =
            batch.counts.iter().map(|&count| f64::from(count)).partition(|&length| length < 150.0);
        let mean = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len() as f64;
        // Five standard errors: 20 · 0.2/√15,000, 1,000 · 0.3/√5,000, and of the share.
        assert!((mean(&short) - 20.0).abs() < 0.17, "{}", mean(&short));
        assert!((mean(&long) - 1_000.0).abs() < 22.0, "{}", mean(&long));
        assert!((long.len() as f64 / 20_000.0 - 0.25).abs() < 0.0154, "{}", long.len());
    }

    #[test]
    fn a_document_depends_on_its_number_alone() {
        let spec = Spec { num_topics: 4, ..Spec::default() };
        let topics = one_word_a_topic(4);
        let author = Author::new(&spec, 5, &topics);
        let whole = author.write(0..20);
        let tail = author.write(13..20);
        assert!(whole.words.ends_with(&tail.words));
        assert!(whole.counts.ends_with(&tail.counts));
    }
}
