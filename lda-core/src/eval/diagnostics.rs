//! Diagnostics of topics: size, spread over documents and words, and distinctness.

use serde::{Deserialize, Serialize};

use super::phi::Phi;
use crate::counts::{DocumentCounts, WordCounts};

/// Diagnostics of one topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicDiagnostics {
    /// Tokens C_k.
    pub tokens: u64,
    /// Number of documents with a token of the topic.
    pub documents: u64,
    /// Effective number of documents: exp of the entropy of C_dk / C_k over documents. 1 for a
    /// topic of one document.
    pub effective_documents: f64,
    /// Effective number of words: exp of the entropy of C_wk / C_k over words.
    pub effective_words: f64,
    /// Exclusivity of the top words: the mean of φ_kw / Σ_j φ_jw over them, 1/K to 1.
    pub exclusivity: f64,
}

/// Diagnostics of all topics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// One entry per topic.
    pub topics: Vec<TopicDiagnostics>,
    /// Share of distinct words among all top words ([`diversity`]).
    pub diversity: f64,
}

/// Computes the diagnostics of all topics; `top_words[k]` are the top words of topic k.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::train::{TrainOptions, Trainer};
///
/// let corpus = Corpus::from_words([["tree", "leaf", "root"], ["sea", "wave", "sand"]])?;
/// let mut trainer = Trainer::new(&corpus, &TrainOptions::new(2))?;
/// trainer.epoch();
/// let found = trainer.diagnose(10);
/// assert_eq!(found.topics.iter().map(|topic| topic.tokens).sum::<u64>(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the number of lists is not K, or a list contains a word outside φ's vocabulary.
pub fn diagnose<C, W>(counts: &C, phi: &Phi, top_words: &[W]) -> Diagnostics
where
    C: DocumentCounts + WordCounts + ?Sized,
    W: AsRef<[u32]>,
{
    let mut documents = TopicSpread::new(DocumentCounts::num_topics(counts));
    documents.add_documents(counts);
    diagnose_with(counts, &documents, phi, top_words)
}

/// As [`diagnose`], with the spread over documents that was found before.
pub(crate) fn diagnose_with<C, W>(
    counts: &C,
    documents: &TopicSpread,
    phi: &Phi,
    top_words: &[W],
) -> Diagnostics
where
    C: WordCounts + ?Sized,
    W: AsRef<[u32]>,
{
    let num_topics = counts.num_topics();
    assert_eq!(top_words.len(), num_topics, "lists of top words");
    let mut words = TopicSpread::new(num_topics);
    counts.visit_words(0..counts.num_words(), &mut |_, row| words.add(row));
    let floor_sum: f64 = phi.floors().iter().sum();
    let of_topic = |k: usize| {
        let tokens = counts.topic_total(k);
        let list = top_words[k].as_ref();
        let own = |&word: &u32| {
            let all = floor_sum + phi.row(word).1.iter().sum::<f64>();
            phi.probability(k, word) / all
        };
        TopicDiagnostics {
            tokens,
            documents: documents.rows[k],
            effective_documents: documents.effective_rows(k, tokens),
            effective_words: words.effective_rows(k, tokens),
            exclusivity: list.iter().map(own).sum::<f64>() / list.len().max(1) as f64,
        }
    };
    let topics = (0..num_topics).map(of_topic).collect();
    Diagnostics { topics, diversity: diversity(top_words) }
}

/// Spread of each topic over rows: documents or words.
#[derive(Clone, Debug)]
pub(crate) struct TopicSpread {
    /// Number of rows with a token of the topic.
    rows: Vec<u64>,
    /// Σ x ln x over the counts x of the rows.
    sums: Vec<f64>,
}

impl TopicSpread {
    /// The spread of `num_topics` topics over no rows.
    pub(crate) fn new(num_topics: usize) -> Self {
        Self { rows: vec![0; num_topics], sums: vec![0.0; num_topics] }
    }

    /// Adds documents.
    pub(crate) fn add_documents<C: DocumentCounts + ?Sized>(&mut self, counts: &C) {
        counts.visit_documents(0..counts.num_documents(), &mut |_, row| self.add(row));
    }

    /// Adds a row.
    fn add(&mut self, row: &[(u32, u32)]) {
        for &(topic, count) in row {
            let count = f64::from(count);
            self.sums[topic as usize] += count * count.ln();
            self.rows[topic as usize] += 1;
        }
    }

    /// exp of the entropy of the topic's tokens over rows: H = ln C_k − (Σ x ln x) / C_k.
    fn effective_rows(&self, topic: usize, tokens: u64) -> f64 {
        let total = tokens as f64;
        if tokens > 0 { (total.ln() - self.sums[topic] / total).exp() } else { 0.0 }
    }
}

/// Share of distinct words among all words of all lists (Dieng, Ruiz and Blei 2020): 1 if no two
/// topics share a word, 0 if there are no words.
///
/// ```
/// use lda_core::eval::diversity;
///
/// assert_eq!(diversity(&[[1, 2, 3], [3, 4, 5]]), 5.0 / 6.0);
/// ```
pub fn diversity<W: AsRef<[u32]>>(top_words: &[W]) -> f64 {
    let mut words: Vec<u32> = top_words.iter().flat_map(|list| list.as_ref()).copied().collect();
    let all = words.len();
    words.sort_unstable();
    words.dedup();
    words.len() as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::counts::VisitRow;

    /// Topic 0 is spread evenly over four documents and two words, topic 1 has one document and one
    /// word, topic 2 has no tokens.
    struct Counts;

    impl DocumentCounts for Counts {
        fn num_topics(&self) -> usize {
            3
        }
        fn num_documents(&self) -> usize {
            4
        }
        fn visit_documents(&self, documents: Range<usize>, visit: &mut VisitRow<'_>) {
            for d in documents {
                let row: &[(u32, u32)] = if d == 3 { &[(0, 2), (1, 5)] } else { &[(0, 2)] };
                visit(d, row);
            }
        }
    }

    impl WordCounts for Counts {
        fn num_topics(&self) -> usize {
            3
        }
        fn num_words(&self) -> usize {
            3
        }
        fn topic_total(&self, topic: usize) -> u64 {
            [8, 5, 0][topic]
        }
        fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
            words.for_each(|word| visit(word, [&[(0, 4)], &[(0, 4)], &[(1, 5)]][word]));
        }
    }

    #[test]
    fn spread_is_counted_in_documents_and_words() {
        let phi = Phi::from_counts(&Counts, 1e-6).unwrap();
        let found = diagnose(&Counts, &phi, &[vec![0, 1], vec![2], vec![2]]);
        let [wide, narrow, empty] = found.topics[..] else { panic!() };
        assert_eq!((wide.tokens, wide.documents), (8, 4));
        assert!((wide.effective_documents - 4.0).abs() < 1e-12);
        assert!((wide.effective_words - 2.0).abs() < 1e-12);
        assert!((narrow.effective_documents - 1.0).abs() < 1e-12);
        assert_eq!((empty.effective_documents, empty.documents), (0.0, 0));
        // Topic 2 is uniform: a word has probability 1/2 in topic 0 and 1/3 in topic 2.
        assert!((wide.exclusivity - 0.5 / (0.5 + 1.0 / 3.0)).abs() < 1e-5);
        assert_eq!(found.diversity, 0.75);
    }

    #[test]
    fn nothing_is_not_diverse() {
        let none: [Vec<u32>; 0] = [];
        assert_eq!(diversity(&none), 0.0);
    }
}
